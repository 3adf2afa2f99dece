package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ndbridge/ndbridge/hostplugin"
	"github.com/ndbridge/ndbridge/test/internal/harness"
)

const (
	hostConfigEnv = "E2E_HOST_CONFIG" // makes the test binary a host that runs this configuration
	hostLooksEnv  = "E2E_HOST_LOOKS"  // makes it take views until it is killed
	hostCallsEnv  = "E2E_HOST_CALLS"  // makes it call functions before it says so
	markEnv       = "E2E_MARK"        // inherited by every process that such a host starts
)

// runHost is a host in a process of its own: it starts its program, takes a view, says so, and waits
// to be killed.
func runHost(config string) int {
	fail := func(err error) int {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	var cfg hostplugin.Config
	if err := json.Unmarshal([]byte(config), &cfg); err != nil {
		return fail(err)
	}
	host, err := hostplugin.New(cfg)
	if err != nil {
		return fail(err)
	}
	ctx := contextOfProcess()
	session, err := host.Start(ctx, cfg.Programs[0].Name)
	if err != nil {
		return fail(err)
	}
	if err := session.Handle("wait", func(ctx context.Context, _ hostplugin.Args) (any, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}); err != nil {
		return fail(err)
	}
	if _, err := session.View(ctx, "frame"); err != nil {
		return fail(err)
	}
	if os.Getenv(hostCallsEnv) != "" {
		if _, err := beginCalls(ctx, session); err != nil {
			return fail(err)
		}
	}
	if _, err := fmt.Fprintln(os.Stdout, "ready"); err != nil {
		return fail(err)
	}
	for os.Getenv(hostLooksEnv) != "" {
		view, err := session.View(ctx, "frame")
		if err == nil {
			err = view.Close()
		}
		if err != nil {
			return fail(err)
		}
	}
	_, _ = io.Copy(io.Discard, os.Stdin)
	return 0
}

// TestProgramEndsWithItsHost kills hosts with SIGKILL: whatever their programs are doing, two
// seconds later no process is left, and no file.
func TestProgramEndsWithItsHost(t *testing.T) {
	const frame = "import os, signal, subprocess, sys, threading, time\nimport numpy as np\nframe = np.zeros(1 << 16)\n"
	for name, script := range map[string]string{
		"script has ended": ``,
		"sleeping":         `time.sleep(3600)`,
		"busy in Python":   "while True: pass",
		"busy in C":        "a = np.random.rand(1000, 1000)\nwhile True: a @ a",
		"catches everything": `
while True:
    try: time.sleep(3600)
    except BaseException: pass
`,
		"ignores signals": `
for s in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP): signal.signal(s, signal.SIG_IGN)
while True: time.sleep(1)
`,
		"waits for a thread": "threading.Thread(target=time.sleep, args=(3600,)).start()",
		"has children":       "child = subprocess.Popen(['sleep', '3600'])\nchild.wait()",
		"has multiprocessing children": `
import multiprocessing
context = multiprocessing.get_context("fork")
pool = context.Pool(2)
pool.map(time.sleep, [3600] * 4)
`,
		"has children that ignore signals": `
if os.fork() == 0:
    for s in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP): signal.signal(s, signal.SIG_IGN)
    while True: time.sleep(1)
time.sleep(3600)
`,
	} {
		t.Run(name, func(t *testing.T) {
			killHost(t, frame+script, 0, 0)
		})
	}
}

// TestStoppedProgramEndsWithItsHost, also where another process of the session adopts it, as inits of containers do: then
// the kernel does not let it go on.
func TestStoppedProgramEndsWithItsHost(t *testing.T) {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0); err != nil {
			t.Error(err)
		}
	}()
	killHost(t, `
import os, signal, threading, numpy as np
frame = np.zeros(1 << 16)
threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGSTOP)).start()
`, 0, time.Second)
}

// TestWaitingForTheHostEndsWithIt: threads that wait for a function of a host that is killed get an exception.
func TestWaitingForTheHostEndsWithIt(t *testing.T) {
	said := filepath.Join(t.TempDir(), "said")
	killHost(t, fmt.Sprintf(`
import ndbridge, os, threading, time, numpy as np
said = os.open(%q, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
def wait():
    try: ndbridge.host.wait()
    except Exception as e: os.write(said, (type(e).__name__ + "\n").encode())
while not hasattr(ndbridge.host, "wait"): time.sleep(0.01)
threads = [threading.Thread(target=wait) for i in range(3)]
for thread in threads: thread.start()
time.sleep(1) # all three wait by now
frame = np.zeros(1 << 16)
def join():
    for thread in threads: thread.join()
try: join()
except KeyboardInterrupt: join() # by which the program is told to end: a script that has ended is not asked
`, said), 0, time.Second)
	if text, err := os.ReadFile(said); string(text) != strings.Repeat("ConnectionError\n", 3) || err != nil {
		t.Errorf("the threads said %q, %v", text, err)
	}
}

// killHost kills a host of a program: at once when it has a view, or, if looking is not 0, so long after that, while
// it takes views, or after a pause.
func killHost(t *testing.T, script string, looking, pause time.Duration) {
	t.Helper()
	bound := 2 * time.Second
	if looking > 0 {
		bound = 10 * time.Second // killed again and again, some of them on a busy machine
	}
	cfg, _ := harness.Config(t, script, harness.Options{Configs: promoting})
	config, err := json.Marshal(cfg)
	if err != nil {
		t.Fatal(err)
	}
	mark := filepath.Base(t.TempDir()) + "-" + itoa(os.Getpid()) + "-" + t.Name()
	tmp := t.TempDir()
	host := exec.CommandContext(t.Context(), os.Args[0])
	host.Env = append(os.Environ(), hostConfigEnv+"="+string(config), markEnv+"="+mark, "TMPDIR="+tmp)
	if looking > 0 {
		host.Env = append(host.Env, hostLooksEnv+"=1")
	}
	host.Stderr = os.Stderr
	if _, err := host.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := host.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	sharedMemory := list(t, "/dev/shm")
	if err := host.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "ready\n" {
		t.Fatalf("the host said %q: %v", line, err)
	}
	if running := marked(t, mark); len(running) < 2 {
		t.Fatalf("marked processes %v; want the host and its program", running)
	}
	if left := list(t, tmp); len(left) > 0 {
		t.Errorf("in the temporary folder while the program runs: %v", left)
	}

	// Those that other tests make later are not ours to answer for.
	ours := slices.DeleteFunc(list(t, "/dev/shm"), func(name string) bool { return slices.Contains(sharedMemory, name) })
	time.Sleep(looking + pause) // any moment will do
	if err := host.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	took := harness.Eventually(t, bound, "the program has ended", func() bool { return len(marked(t, mark)) == 0 })
	t.Logf("no process was left after %v", took)
	if err := host.Wait(); err == nil {
		t.Error("the host ended well, though it was killed")
	}
	if left := list(t, tmp); len(left) > 0 {
		t.Errorf("left in the temporary folder: %v", left)
	}
	// Among them may be some of other tests, which go away too, but later.
	harness.Eventually(t, 60*time.Second, "nothing new is left in /dev/shm", func() bool {
		return !slices.ContainsFunc(list(t, "/dev/shm"), func(name string) bool { return slices.Contains(ours, name) })
	})
}

// marked lists the processes that carry a mark in their environment; a zombie has none.
func marked(t *testing.T, mark string) []string {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		t.Fatal(err)
	}
	var pids []string
	for _, file := range files {
		env, err := os.ReadFile(file)
		if err == nil && strings.Contains("\x00"+string(env), "\x00"+markEnv+"="+mark+"\x00") {
			pids = append(pids, filepath.Base(filepath.Dir(file)))
		}
	}
	return pids
}

func list(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	return names
}
