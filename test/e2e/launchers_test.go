package e2e

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/ndbridge/ndbridge/hostplugin"
	"github.com/ndbridge/ndbridge/test/internal/harness"
)

// beside gives the command that lies beside an interpreter in its environment.
func beside(python, name string) string { return filepath.Join(filepath.Dir(python), name) }

// listeners waits until n children of a session's program listen.
func listeners(t *testing.T, s *hostplugin.Session, n int) []hostplugin.Child {
	t.Helper()
	var children []hostplugin.Child
	harness.Eventually(t, harness.StartBound, fmt.Sprintf("%d children listen", n), func() bool {
		all, err := s.Children(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		children = slices.DeleteFunc(all, func(c hostplugin.Child) bool { return c.Err != nil })
		return len(children) == n
	})
	return children
}

// served is an app of WSGI with arrays. It answers with its process and how often that has answered.
const served = `
import os, time
import numpy as np

weights = np.arange(float(1 << 17))
answered = np.zeros(1 << 17)

def app(environ, start):
    taken = weights * 2
    time.sleep(float(environ["PATH_INFO"][1:]))
    answered[0] += 1
    start("200 OK", [])
    return [b"%d %d" % (os.getpid(), answered[0])]
`

// TestShareGunicorn attaches to the workers of gunicorn, which import the app or fork with it. A worker that is killed takes its own session
// along and no other, and the one in its place lets hosts in. The end is in order, with hosts there and a request that is not answered yet.
func TestShareGunicorn(t *testing.T) {
	for _, preload := range []bool{false, true} {
		t.Run(fmt.Sprintf("preload %v", preload), func(t *testing.T) { shareGunicorn(t, preload) })
	}
}

// serving is what a test knows of gunicorn's workers, by their numbers.
type serving struct {
	get      *http.Client
	sessions map[int]*hostplugin.Session
	answered map[int][]float64 // views of how often each has answered
}

// come attaches to a worker, and looks at the app's arrays in it.
func (w *serving) come(t *testing.T, host *hostplugin.Host, pid int) {
	t.Helper()
	session, err := host.Attach(t.Context(), hostplugin.PID(pid))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = session.Close() })
	w.sessions[pid] = session
	for _, name := range []string{"weights", "answered"} {
		v, err := session.View(t.Context(), `sys.modules["served"].`+name)
		if err != nil {
			t.Fatal(err)
		}
		data := slice[float64](t, v)
		if v.Copied() || name == "weights" && (data[1] != 1 || data[1<<17-1] != 1<<17-1) {
			t.Errorf("%s: %v, %v", name, v.Reason(), data[1])
		}
		w.answered[pid] = data
	}
}

// ask sends a request that takes so many seconds, and holds that the view of the worker that answers has its number.
func (w *serving) ask(t *testing.T, seconds string) (pid int) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://app/"+seconds, nil)
	if err != nil {
		t.Error(err)
		return 0
	}
	response, err := w.get.Do(request)
	if err != nil {
		t.Error(err)
		return 0
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	var n float64
	if err == nil {
		_, err = fmt.Sscan(string(text), &pid, &n)
	}
	if seen := w.answered[pid]; err != nil || seen == nil || seen[0] < n {
		t.Errorf("%q, %v", text, err)
	}
	return pid
}

// all asks until each worker has answered.
func (w *serving) all(t *testing.T) {
	t.Helper()
	var mu sync.Mutex
	by := make(map[int]int)
	for range 20 {
		var asking sync.WaitGroup
		for range 4 {
			asking.Go(func() {
				pid := w.ask(t, "0.05")
				mu.Lock()
				defer mu.Unlock()
				by[pid]++
			})
		}
		asking.Wait()
		if len(by) == len(w.sessions) {
			return
		}
	}
	t.Errorf("answers came from %v", by)
}

func shareGunicorn(t *testing.T, preload bool) {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "served.py"), []byte(served), 0o600); err != nil {
		t.Fatal(err)
	}
	socket := filepath.Join(dir, "app")
	command := []string{beside(harness.PythonLaunchers(t), "gunicorn"), "--no-control-socket", "-w", "2", "-b", "unix:" + socket}
	name, flags := "gunicorn", []string(nil)
	if preload {
		name, flags = "api", []string{"--name", "api"}
		command = append(command, "--preload")
	}
	s := share(t, flags, append(command, "served:app")...)
	s.Dir = dir
	s.start(t)
	host := harness.NewHost(t)
	main := s.attach(t, host, hostplugin.PID(s.Process.Pid))
	defer main.Close()
	w := &serving{overSocket(socket), make(map[int]*hostplugin.Session), make(map[int][]float64)}
	for _, c := range listeners(t, main, 2) {
		w.come(t, host, c.PID)
	}
	w.all(t)

	killed := listeners(t, main, 2)[0].PID
	if err := syscall.Kill(killed, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	<-w.sessions[killed].Done()
	delete(w.sessions, killed)
	harness.Eventually(t, harness.StartBound, "another worker has its place", func() bool {
		for _, c := range listeners(t, main, 2) {
			if w.answered[c.PID] == nil {
				w.come(t, host, c.PID)
				return true
			}
		}
		return false
	})
	w.all(t)
	for pid, session := range w.sessions {
		if err := session.Err(); err != nil {
			t.Errorf("%d: %v", pid, err)
		}
	}

	last := make(chan int)
	go func() { last <- w.ask(t, "0.5") }()
	var busy *hostplugin.Session
	harness.Eventually(t, harness.StartBound, "a worker has the request", func() bool {
		for _, session := range w.sessions {
			if v, err := session.View(t.Context(), "app().taken", hostplugin.NoWait()); err == nil {
				busy = session
				return slice[float64](t, v)[9] == 18
			}
		}
		return false
	})
	if err := s.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if pid := <-last; w.sessions[pid] != busy {
		t.Errorf("%d has answered", pid)
	}
	if status := s.end(t); status != 0 || strings.Contains(s.stderr.String(), "Traceback") || strings.Contains(s.stderr.String(), "listen as") {
		t.Errorf("status %d, %s", status, s.stderr.String())
	}
	for pid, session := range w.sessions {
		<-session.Done()
		if _, err := os.Stat(filepath.Join(s.run, name+"."+itoa(pid))); err == nil {
			t.Errorf("%d has left its socket", pid)
		}
	}
	if left := s.left(t); len(left) != 0 {
		t.Errorf("left %v", left)
	}
}

// tested are tests of each outcome, the first of which waits for a file.
const tested = `
import os, sys, time
import numpy as np
import pytest

@pytest.fixture
def grid():
    grid = np.full(1 << 17, 4.0)
    yield grid
    grid[:] = 0

def test_waits(grid):
    twice = grid * 2
    while not os.path.exists(os.environ["GOES_ON"]):
        time.sleep(0.01)
    assert twice[3] == 8

@pytest.mark.parametrize("n", range(5))
def test_counts(n):
    print("counts", n)
    assert np.arange(5)[n] != 3

@pytest.mark.xfail(strict=True)
def test_passes_though_it_should_not(): pass

@pytest.mark.skip(reason="it is skipped")
def test_skipped(): pass

def test_forks(recwarn, capfd):
    import threading
    os.waitpid(os.fork() or os._exit(0), 0)
    said = capfd.readouterr()
    print(threading.active_count(), [str(w.message).split("pid=")[0] for w in recwarn], said)
`

// varies is what differs from one run of pytest to the next: how long it took, which worker had the tests, and what is said until they are ready.
var varies = regexp.MustCompile(`(?s)^.*?\n\n|in [0-9.]+s|\[gw\d\]|=+`)

// TestSharePytest looks at the arrays of a test that runs, in pytest and in the worker of xdist that runs it. The results and the status are
// those of pytest without ndbridge.
func TestSharePytest(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "test_grid.py"), []byte(tested), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, workers := range []int{0, 2} {
		goesOn := filepath.Join(dir, "goes-on-"+itoa(workers))
		t.Setenv("GOES_ON", goesOn)
		command := []string{harness.Python(t), "-m", "pytest", "-p", "no:cacheprovider", "-v", "-rA", "--color", "no", dir}
		if workers > 0 {
			command = append(command, "-n", itoa(workers), "--dist", "loadfile") // one worker has all tests, in their order
		}
		s := share(t, nil, command...)
		s.start(t)
		host := harness.NewHost(t)
		main := s.attach(t, host, hostplugin.Name("pytest"))
		sessions := []*hostplugin.Session{main}
		if workers > 0 {
			for _, c := range listeners(t, main, workers) {
				if c.Name != "python" {
					t.Errorf("a worker is called %s", c.Name)
				}
				session, err := host.Attach(t.Context(), hostplugin.PID(c.PID))
				if err != nil {
					t.Fatal(err)
				}
				sessions = append(sessions, session)
			}
		}
		var twice []float64
		harness.Eventually(t, harness.StartBound, "the test is seen", func() bool {
			for _, session := range sessions {
				if v, err := session.View(t.Context(), "test_waits().twice", hostplugin.NoWait()); err == nil {
					twice = slice[float64](t, v)
					return !v.Copied()
				}
			}
			return false
		})
		if twice[7] != 8 {
			t.Errorf("%v", twice[7])
		}
		if err := os.WriteFile(goesOn, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		status := s.end(t)
		alone := exec.CommandContext(t.Context(), command[0], command[1:]...)
		var out bytes.Buffer
		alone.Stdout = &out
		_ = alone.Run()
		got, want := varies.ReplaceAllString(s.stdout.String(), ""), varies.ReplaceAllString(out.String(), "")
		if status != 1 || alone.ProcessState.ExitCode() != 1 || got != want || !strings.Contains(want, "2 failed, 6 passed, 1 skipped") || s.stderr.String() != "" {
			t.Errorf("%d workers: status %d\n%s\n%s\nwithout ndbridge\n%s", workers, status, got, s.stderr.String(), want)
		}
		for _, session := range sessions {
			if err := session.Close(); err != nil {
				t.Error(err)
			}
		}
		if left := s.left(t); len(left) != 0 {
			t.Errorf("left %v", left)
		}
	}
}

// TestShareUV attaches to a script that "uv run" runs. The script's
// status is uv's.
func TestShareUV(t *testing.T) {
	dir := t.TempDir()
	script := filepath.Join(dir, "orbit.py")
	if err := os.WriteFile(script, []byte(reads), 0o600); err != nil {
		t.Fatal(err)
	}
	s := share(t, nil, harness.UV(t), "run", "--offline", "--no-project", "--no-config", "--no-cache", "--python", harness.Python(t), script)
	s.start(t)
	session := s.attach(t, harness.NewHost(t), hostplugin.Name("orbit"))
	v, err := session.View(t.Context(), "x")
	if err != nil {
		t.Fatal(err)
	}
	if data := slice[float64](t, v); data[5] != 2 || v.Copied() {
		t.Errorf("%v, %v", data[5], v.Reason())
	}
	if err := session.Close(); err != nil {
		t.Error(err)
	}
	if status := s.end(t); status != 7 || s.stderr.String() != "" || s.stdout.String() != "" {
		t.Errorf("status %d, %q, %q", status, s.stdout.String(), s.stderr.String())
	}
	if left := s.left(t); len(left) != 0 {
		t.Errorf("left %v", left)
	}
}
