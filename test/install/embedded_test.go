package install

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/ndbridge/ndbridge/internal/wire"
)

// TestEmbeddedWithoutHome: a command that embeds its plugin unpacks it where there is no home and the system is read-only but for
// /tmp, as in many containers. Where it can unpack nowhere, it says what is wrong with each place.
func TestEmbeddedWithoutHome(t *testing.T) {
	out := dist(t)
	r := aRoot(t, "")
	archive := "ndbridge-" + wire.Release + "-linux-amd64"
	dir := t.TempDir()
	r.must(r.command("tar", "-xf", filepath.Join(out, archive+".tar.gz"), "-C", dir, archive+"/ndbridge"))
	r.put(filepath.Join(dir, archive, "ndbridge"), "/opt/ndbridge")
	r.put("../../examples/container/camera.py", "/opt/camera.py")
	r.must(r.command("chmod", "755", filepath.Join(r.dir, "opt/ndbridge")))

	view := []string{"/opt/ndbridge", "view", "--script", "/opt/camera.py", "frame"}
	if got := r.must(r.readOnly(view...)); !strings.Contains(got, "shared-heap") {
		t.Errorf("without HOME: %s", got)
	}
	r.must(r.in("sh", "-c", "mkdir /mnt/other && chown 12345 /mnt/other"))
	said, err := r.full(append([]string{"env", "XDG_CACHE_HOME=/mnt/other"}, view...)...).CombinedOutput()
	if err == nil {
		t.Fatalf("it works: %s", said)
	}
	for _, want := range []string{"cannot be unpacked anywhere", "/mnt/other belongs to another user (12345)", "/tmp/ndbridge-0/", "no space left on device", "set XDG_CACHE_HOME"} {
		if !strings.Contains(string(said), want) {
			t.Errorf("it lacks %q: %s", want, said)
		}
	}
}

// TestLicences: a module without a licence is not passed over.
func TestLicences(t *testing.T) {
	s := sandbox{t: t, dir: t.TempDir(), env: []string{"PATH=/usr/bin:/bin"}}
	s.run("bash", "-c", `mkdir go module && touch go/LICENSE
		printf '#!/bin/sh\ncase $1 in env) [ $2 = GOROOT ] && echo %s/go || echo go1 ;; list) echo example.com/module v1.0.0 %s/module %s/module ;; esac\n' "$PWD" "$PWD" "$PWD" >tool
		chmod +x tool`)
	script, err := filepath.Abs("../../native/licences.sh")
	if err != nil {
		t.Fatal(err)
	}
	const check = `! "$0" "$PWD/tool" 2>says && grep "example.com/module v1.0.0 has no licence" says && touch module/LICENSE && "$0" "$PWD/tool"`
	if got := s.run("bash", "-c", check, script); !strings.Contains(got, "==== example.com/module v1.0.0: LICENSE") {
		t.Error(got)
	}
}
