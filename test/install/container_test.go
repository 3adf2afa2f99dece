package install

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ndbridge/ndbridge/internal/golden"
)

// step is an instruction of a Containerfile.
type step struct{ name, text string }

// steps reads the Containerfile, which docs/containers.md shows.
func steps(t *testing.T) []step {
	t.Helper()
	text, err := os.ReadFile("../../examples/container/Containerfile")
	if err != nil {
		t.Fatal(err)
	}
	golden.Shown(t, "../../docs/containers.md", "dockerfile", string(text))
	var all []step
	for line := range strings.Lines(strings.ReplaceAll(string(text), "\\\n", " ")) {
		if name, rest, ok := strings.Cut(strings.TrimSpace(line), " "); ok && name != "#" {
			all = append(all, step{name, strings.TrimSpace(rest)})
		}
	}
	return all
}

// TestContainerfile carries out the documented Containerfile in a clean system of its base image's release, as there is no engine for
// containers. Then it runs the image's command: as in a container, and in one that is read-only but for /tmp and has no capabilities.
func TestContainerfile(t *testing.T) {
	context := t.TempDir()
	for _, file := range []string{filepath.Join(dist(t), debName), "../../examples/container/camera.py"} {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(context, filepath.Base(file)), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var r clean
	var command []string
	user, dir := "root", "/"
	for _, step := range steps(t) {
		switch step.name {
		case "FROM":
			suite, _ := strings.CutPrefix(step.text, "debian:")
			r = aRoot(t, strings.TrimSuffix(suite, "-slim"))
			r.put("/etc/resolv.conf", "/etc/resolv.conf") // as an engine does
		case "COPY":
			pattern, to, _ := strings.Cut(step.text, " ")
			files, err := filepath.Glob(filepath.Join(context, pattern))
			if err != nil || len(files) != 1 || !strings.HasSuffix(to, "/") {
				t.Fatalf("COPY %s: %v, %v", step.text, files, err)
			}
			r.put(files[0], to+filepath.Base(files[0]))
		case "RUN":
			t.Log(r.must(r.in("sh", "-c", "cd "+dir+" && "+step.text)))
		case "WORKDIR":
			dir = step.text
		case "USER":
			user = step.text
		case "CMD":
			if err := json.Unmarshal([]byte(step.text), &command); err != nil {
				t.Fatal(err)
			}
		default:
			t.Fatalf("this test does not know %s", step.name)
		}
	}
	if left := r.must(r.in("find", "/tmp", "/var/lib/apt/lists", "-type", "f", "!", "-name", "lock")); left != "" {
		t.Errorf("the image holds %s", left)
	}
	as := func(options ...string) []string {
		args := append([]string{"setpriv", "--reuid", user, "--regid", "nogroup", "--clear-groups", "--no-new-privs"}, options...)
		return append(append(args, "sh", "-c", "cd "+dir+` && exec "$@"`, "sh"), command...)
	}
	readme, err := os.ReadFile("../../examples/container/README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, shown, _ := strings.Cut(string(readme), "\n```text\n")
	shown, _, ok := strings.Cut(shown, "```\n")
	for _, out := range []string{r.must(r.in(as()...)), r.must(r.readOnly(as("--bounding-set", "-all")...))} {
		if !ok || !strings.Contains(out, shown) {
			t.Errorf("%q prints\n%s\nexamples/container/README.md shows\n%s", command, out, shown)
		}
	}
}
