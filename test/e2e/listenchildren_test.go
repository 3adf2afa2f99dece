package e2e

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/ndbridge/ndbridge/hostplugin"
	"github.com/ndbridge/ndbridge/test/internal/harness"
)

// TestForkedChildrenListen: below a program that listens without the shared heap, forked children listen under their own numbers, and those
// that they fork. They see nothing of it, and leave nothing, whichever way they end.
func TestForkedChildrenListen(t *testing.T) {
	for _, python := range harness.Pythons(t) {
		if strings.HasSuffix(filepath.Dir(filepath.Dir(python)), "-new") { // of each version one
			t.Run(filepath.Base(filepath.Dir(filepath.Dir(python))), func(t *testing.T) { forkedChildrenListen(t, python) })
		}
	}
}

func forkedChildrenListen(t *testing.T, python string) {
	t.Helper()
	dir := t.TempDir()
	t.Setenv("XDG_RUNTIME_DIR", dir) // where hosts look, too
	run := harness.RunAlone(t, `
import multiprocessing, ndbridge, os, remote, signal, sys, threading
path = ndbridge.listen("family")
main, imported = threading.get_ident(), []
sys.addaudithook(lambda event, args: event == "import" and threading.get_ident() != main and imported.append(args[0]))
print(path, flush=True)
gone, ready = os.pipe(), os.pipe()
mine = bytearray(4)
def descriptors(): return sorted(os.listdir("/proc/self/fd"))
def work(kind, before):
    mine[:] = os.getpid().to_bytes(4, "little")
    same = any(descriptors() == before for _ in range(1000)) and threading.active_count() == 1 # the thread may just look for what others have left
    os.write(ready[1], ("%s %d %s\n" % (kind, os.getpid(), same)).encode())
    os.read(gone[0], 1)
def fork(kind, end, *first):
    before = descriptors()
    pid = os.fork()
    if pid == 0:
        for f in first: f()
        work(kind, before)
        end()
    return pid
def normally(): sys.exit(0)
def grandchild():
    pid = fork("grandchild", normally)
    os.waitpid(pid, 0)
    normally()
waited = [fork("exit", normally), fork("_exit", lambda: os._exit(0)), fork("other", normally, lambda: ndbridge.listen("other"))]
parent = os.fork()
if parent == 0: grandchild()
waited.append(parent)
process = multiprocessing.get_context("fork").Process(target=work, args=("process", descriptors()))
process.start()
for _ in range(20): # these leave nothing, as none of them listens
    pid = os.fork()
    if pid == 0: os._exit(0)
    os.waitpid(pid, 0)
def end():
    os.write(gone[1], b"x" * 5)
    for pid in waited: os.waitpid(pid, 0)
    process.join()
    return sorted(os.listdir(os.path.dirname(path)))
text = b""
while text.count(b"\n") < 5: text += os.read(ready[0], 1000)
children = dict((line.split()[0], (int(line.split()[1]), line.split()[2])) for line in text.decode().splitlines())
signal.signal(signal.SIGUSR1, lambda *_: sys.exit(0))
remote.serve()
`, harness.RunningOptions{Python: python, Env: []string{"XDG_RUNTIME_DIR=" + dir}})
	host := harness.NewHost(t)
	children := harness.Eval[map[string][2]any](t, run.Remote, "children")
	parent := run.Attach(t, host) // which imports modules, as no fork likes it
	var found []hostplugin.Child
	harness.Eventually(t, harness.StartBound, "all children listen", func() bool {
		var err error
		if found, err = parent.Children(t.Context()); err != nil {
			t.Fatal(err)
		}
		return len(found) == 6 && !slices.ContainsFunc(found, func(c hostplugin.Child) bool { return c.Name == "" || c.Err != nil })
	})
	for kind, c := range children {
		pid := int(c[0].(float64)) //nolint:errcheck,forcetypeassert // JSON has no other numbers
		if c[1] != "True" && kind != "other" && kind != "process" {
			t.Errorf("%s: it has seen a descriptor or a thread of ndbridge's", kind)
		}
		i := slices.IndexFunc(found, func(f hostplugin.Child) bool { return f.PID == pid })
		if want := map[bool]string{true: "other", false: "family"}[kind == "other"]; i < 0 || found[i].Name != want {
			t.Errorf("%s is %d, which is not among %+v as %s", kind, pid, found, want)
			continue
		}
		child, err := host.Attach(t.Context(), hostplugin.PID(pid))
		if err != nil {
			t.Errorf("%s: %v", kind, err)
			continue
		}
		if got := numberIn(t, child); got != pid {
			t.Errorf("%s: %d has the array of %d", kind, pid, got)
		}
		if err := child.Close(); err != nil {
			t.Error(err)
		}
	}
	if names := harness.Eval[[]string](t, run.Remote, "imported"); len(names) > 0 {
		t.Errorf("another thread has imported %q: a child that is forked meanwhile would wait for that for ever", names)
	}
	left := harness.Eval[[]string](t, run.Remote, "end()")
	// What os._exit has left may be removed already, as others ended.
	exited := "family." + strconv.Itoa(int(children["_exit"][0].(float64))) //nolint:errcheck,forcetypeassert // likewise
	left = slices.DeleteFunc(left, func(file string) bool { return file == exited })
	if want := []string{filepath.Base(run.Socket)}; !slices.Equal(left, want) {
		t.Errorf("left are %v, want %v", left, want)
	}
	if err := syscall.Kill(run.PID, syscall.SIGUSR1); err != nil {
		t.Fatal(err)
	}
	if state := run.Wait(); !state.Success() || strings.Contains(run.Stderr(), "Traceback") || strings.Contains(run.Stderr(), "ignored") {
		t.Errorf("%v\n%s", state, run.Stderr())
	}
	if files, err := os.ReadDir(filepath.Dir(run.Socket)); err != nil || len(files) > 0 {
		t.Errorf("the program has left %v, %v", files, err)
	}
}
