package e2e

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ndbridge/ndbridge/hostplugin"
	"github.com/ndbridge/ndbridge/test/internal/harness"
)

// TestAttachTableIsWhole: docs/results/attach.md has a row for each interpreter of the matrix and each way in which it lets hosts in, and
// what it says of the arrays is what TestAttachSees holds.
func TestAttachTableIsWhole(t *testing.T) {
	t.Parallel()
	table, err := os.ReadFile("../../docs/results/attach.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := make(map[string]int)
	for line := range strings.Lines(string(table)) {
		cells := strings.Split(strings.Trim(line, "|\n "), " | ")
		if len(cells) != 5 || !strings.HasPrefix(cells[0], "3.") {
			continue
		}
		i := slices.IndexFunc(ways, func(w way) bool { return w.how == cells[1] })
		if i < 0 {
			t.Errorf("%s is not tested", cells[1])
			continue
		}
		want := "live, not copied, from the second look on"
		if ways[i].heap {
			want = "live, not copied"
		}
		if slices.ContainsFunc(cells[2:], func(cell string) bool { return cell != want }) {
			t.Errorf("%q; want %q", cells, want)
		}
		version := strings.Join(strings.SplitN(cells[0], ".", 3)[:2], ".")
		rows[version+" "+ways[i].how]++
	}
	for _, python := range harness.Pythons(t) {
		version := python[strings.LastIndex(python[:strings.LastIndex(python, "-")], "/")+1 : strings.LastIndex(python, "-")]
		for _, w := range ways {
			want := 2 // the older NumPy and the newer one
			if !w.lets(python) {
				want = 0
			}
			if n := rows[version+" "+w.how]; n != want {
				t.Errorf("Python %s has %d rows of %s, want %d", version, n, w.how, want)
			}
		}
	}
}

// TestLaunchersAreTested: each command in the table of docs/attach.md has a test of its name.
func TestLaunchersAreTested(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/attach.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, ok := bytes.Cut(page, []byte("| command below `ndbridge run --share` | "))
	table, _, _ = bytes.Cut(table, []byte("\n\n"))
	files, err := filepath.Glob("*_test.go")
	if !ok || err != nil {
		t.Fatalf("docs/attach.md has no table of commands: %v", err)
	}
	var tests []byte
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		tests = append(tests, text...)
	}
	rows := bytes.Split(table, []byte("\n"))[2:]
	for _, row := range rows {
		cells := strings.Split(strings.Trim(string(row), "| "), " | ")
		if name := strings.Trim(cells[len(cells)-1], "`"); !bytes.Contains(tests, []byte("\nfunc "+name+"(")) {
			t.Errorf("%s: there is no %s", cells[0], name)
		}
	}
	if len(rows) < 5 {
		t.Errorf("%d rows", len(rows))
	}
}

// tabled has a child of each row of the table of children in docs/attach.md.
const tabled = `
import multiprocessing, os, subprocess, sys, time
def main():
    time.sleep(1000)
if __name__ == "__main__":
    try:
        import ndbridge
        ndbridge.listen()
    except ImportError:  # below run --share
        pass
    print("runs", flush=True)
    made = [multiprocessing.get_context(kind).Process(target=main, daemon=True) for kind in ("fork", "spawn", "forkserver")]
    for process in made:
        process.start()
    other = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(1000)"])
    import array
    children = array.array("q", [process.pid for process in made] + [other.pid])
    main()
`

// TestChildrenAreAsTheTableSays holds each cell of the table of children in docs/attach.md to what a child does.
func TestChildrenAreAsTheTableSays(t *testing.T) {
	text, err := os.ReadFile("../../docs/attach.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text, ok := bytes.Cut(text, []byte("| child | of a program that listens"))
	if !ok {
		t.Fatal("docs/attach.md has no table of children")
	}
	var rows [][]string
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(strings.Trim(line, "|\n "), " | ")
		if len(cells) == 4 && !strings.HasPrefix(cells[0], "---") && len(rows) < 4 {
			rows = append(rows, cells)
		}
	}
	rows = rows[len(rows)-4:]
	host := harness.NewHost(t)
	script := filepath.Join(t.TempDir(), "tabled.py")
	if err := os.WriteFile(script, []byte(tabled), 0o600); err != nil {
		t.Fatal(err)
	}
	for column, begin := range []func() *hostplugin.Session{
		func() *hostplugin.Session {
			dir := t.TempDir()
			t.Setenv("XDG_RUNTIME_DIR", dir)
			run := harness.RunAlone(t, tabled, harness.RunningOptions{Heap: true, Env: []string{"XDG_RUNTIME_DIR=" + dir}})
			return awaited(t, host, hostplugin.PID(run.PID))
		},
		func() *hostplugin.Session {
			s := share(t, nil, harness.Python(t), script)
			s.start(t)
			return awaited(t, host, hostplugin.PID(s.Process.Pid))
		},
		func() *hostplugin.Session { return harness.Start(t, tabled, harness.Options{}).Session },
	} {
		session := begin()
		v, err := session.View(t.Context(), "children")
		if err != nil {
			t.Fatal(err)
		}
		above := ""
		for row, pid := range slice[int64](t, v) {
			says := rows[row][column+1]
			if !strings.HasPrefix(says, "likewise") {
				above = says
			}
			want := strings.HasPrefix(above, "listens")
			if column > 0 && row == 0 { // which is as the first column says
				want = strings.HasPrefix(rows[0][1], "listens")
			}
			listens := func() bool {
				found, err := session.Children(t.Context())
				return err == nil && slices.ContainsFunc(found, func(c hostplugin.Child) bool { return c.PID == int(pid) && c.Name != "" && c.Err == nil })
			}
			if want {
				harness.Eventually(t, harness.StartBound, rows[row][0]+" listens", listens)
			} else if listens() {
				t.Errorf("column %d: %q listens, but the table says %q", column+1, rows[row][0], says)
			}
		}
	}
}

func awaited(t *testing.T, host *hostplugin.Host, target hostplugin.Target) *hostplugin.Session {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), harness.StartBound)
	defer cancel()
	s, err := host.Attach(ctx, target.Await())
	if err != nil {
		t.Fatal(err)
	}
	return s
}
