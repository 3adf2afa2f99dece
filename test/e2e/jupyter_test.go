package e2e

import (
	"bufio"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/hostplugin"
	"github.com/ndbridge/ndbridge/test/internal/harness"
)

// jupyter gives Jupyter folders of its own for the test, and that for the connections of kernels.
func jupyter(t *testing.T) (runtime string) {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"JUPYTER_DATA_DIR", "JUPYTER_CONFIG_DIR", "JUPYTER_RUNTIME_DIR", "IPYTHONDIR"} {
		path := filepath.Join(dir, name)
		if err := os.Mkdir(path, 0o700); err != nil {
			t.Fatal(err)
		}
		t.Setenv(name, path)
	}
	t.Setenv("PYTHONWARNINGS", "")
	return filepath.Join(dir, "JUPYTER_RUNTIME_DIR")
}

// frontEnd runs cells in a kernel, as a notebook does.
const frontEnd = `
import json, sys
from jupyter_client import BlockingKernelClient
client = BlockingKernelClient()
client.load_connection_file(sys.argv[1])
client.start_channels()
for tries in range(60):
    try:
        client.wait_for_ready(60)
        break
    except RuntimeError:  # a kernel that starts slowly counts as dead until its heart beats
        if tries == 59: raise
print("[]", flush=True)
for line in sys.stdin:
    code, said = json.loads(line), []
    if code is None:
        client.shutdown(reply=True, timeout=60)
        print("[]", flush=True)
        continue
    def hook(message):
        content = message["content"]
        said.append(content.get("text") or content.get("data", {}).get("text/plain") or content.get("ename") or "")
    reply = client.execute_interactive(code, output_hook=hook, timeout=60)
    print(json.dumps([reply["content"]["status"], "".join(said)]), flush=True)
`

// notebook is a front end that is connected to a kernel.
type notebook struct {
	ask     *json.Encoder
	answers *bufio.Reader
}

// connect connects a front end to the kernel that has written this file.
func connect(t *testing.T, file string) *notebook {
	t.Helper()
	harness.Eventually(t, harness.StartBound, "the kernel has written its file", func() bool {
		text, err := os.ReadFile(file)
		return err == nil && json.Valid(text)
	})
	cmd := exec.CommandContext(t.Context(), harness.PythonLaunchers(t), "-c", frontEnd, file)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = stdin.Close()
		_ = cmd.Wait()
	})
	n := &notebook{json.NewEncoder(stdin), bufio.NewReader(stdout)}
	n.answer(t)
	return n
}

func (n *notebook) answer(t *testing.T) []string {
	t.Helper()
	var answer []string
	line, err := n.answers.ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, &answer)
	}
	if err != nil {
		t.Errorf("the front end: %v", err)
	}
	return answer
}

// run runs a cell, which is to end so, and gives what it has said: its output, its value, or the name of its exception.
func (n *notebook) run(t *testing.T, code, status string) string {
	t.Helper()
	if err := n.ask.Encode(code); err != nil {
		t.Error(err)
	}
	answer := n.answer(t)
	if len(answer) != 2 || answer[0] != status {
		t.Errorf("%s: %q; want %s", code, answer, status)
		return ""
	}
	return answer[1]
}

// shutDown has the front end end the kernel.
func (n *notebook) shutDown(t *testing.T) {
	t.Helper()
	if err := n.ask.Encode(nil); err != nil {
		t.Error(err)
	}
	n.answer(t)
}

// started starts a kernel as a host's program.
func started(t *testing.T, file, promote string) (*hostplugin.Session, *harness.Log) {
	t.Helper()
	log := harness.NewLog()
	host, err := hostplugin.New(hostplugin.Config{Logger: log.Logger(), Programs: []hostplugin.Program{{
		Name: "notebook", Python: harness.PythonLaunchers(t), Module: "ipykernel_launcher", Args: []string{"-f", file},
		Plugin: harness.Library(t, "ndbridge-all.so"), StopTimeout: time.Second, SharedHeap: hostplugin.HeapOptions{Promote: promote},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := host.Close(); err != nil && !errors.Is(err, core.ErrUnavailable) { // a kernel that runs is killed
			t.Error(err)
		}
		if t.Failed() {
			t.Log(log.Text())
		}
	})
	session, err := host.Start(t.Context(), "notebook")
	if err != nil {
		t.Fatal(err)
	}
	return session, log
}

// TestJupyterHostStarts holds what docs/jupyter.md says of a kernel that a host has started.
func TestJupyterHostStarts(t *testing.T) {
	runtime := jupyter(t)
	file := filepath.Join(t.TempDir(), "notebook.json")
	session, log := started(t, file, "")
	front := connect(t, file)
	early := make(chan []float64)
	go func() {
		defer close(early)
		if v, err := session.View(t.Context(), "a"); err != nil {
			t.Error(err)
		} else {
			early <- slice[float64](t, v)
		}
	}()
	front.run(t, "import numpy as np, ndbridge; a = np.full(1 << 17, 5.0)", "ok")
	data := <-early
	if data == nil {
		t.FailNow()
	}
	front.run(t, "a[3] = 7", "ok")
	if data[3] != 7 || data[4] != 5 {
		t.Errorf("%v", data[3:5])
	}
	if said := front.run(t, "ndbridge.connected", "ok"); said != "True" {
		t.Errorf("connected: %s", said)
	}
	front.run(t, "ndbridge.publish('p', a * 2)", "ok")
	if v, err := session.View(t.Context(), "p"); err != nil || v.Version() != 1 || slice[float64](t, v)[3] != 14 {
		t.Errorf("published: %v", err)
	}
	if said := front.run(t, "print('from a cell')", "ok"); said != "from a cell\n" || log.Contains("from a cell") {
		t.Errorf("said %q, log %s", said, log.Text())
	}
	if said := front.run(t, "1 / 0", "error"); said != "ZeroDivisionError" || session.Err() != nil {
		t.Errorf("%s, %v", said, session.Err())
	}
	front.run(t, "a + 1", "ok")
	for _, name := range []string{"_", "Out[7]"} {
		if v, err := session.View(t.Context(), name, hostplugin.NoWait()); err != nil || slice[float64](t, v)[3] != 8 {
			t.Errorf("%s: %v", name, err)
		}
	}
	front.shutDown(t)
	if err := session.Wait(t.Context()); err != nil {
		t.Error(err)
	}
	if v, err := session.View(t.Context(), "a"); err != nil || slice[float64](t, v)[3] != 7 {
		t.Errorf("after the end: %v", err)
	}

	// A file without a folder is in Jupyter's own, and Close kills a kernel that runs.
	other, _ := started(t, "relative.json", "")
	front = connect(t, filepath.Join(runtime, "relative.json"))
	front.run(t, "import time", "ok")
	info, err := other.Info(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := other.Close(); !errors.Is(err, core.ErrUnavailable) {
		t.Errorf("Close of a kernel that runs: %v", err)
	}
	if harness.Alive(info.PID) {
		t.Error("Close has left the kernel")
	}
}

// TestJupyterShellCommands holds the table of cells that fork in docs/jupyter.md, where no array is promoted.
func TestJupyterShellCommands(t *testing.T) {
	jupyter(t)
	page, err := os.ReadFile("../../docs/jupyter.md")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "notebook.json")
	session, _ := started(t, file, "never")
	front := connect(t, file)
	front.run(t, "import multiprocessing, numpy as np, subprocess", "ok")
	cells := map[string]string{
		"!command":            "!true",
		"lines = !command":    "lines = !true",
		"!!command":           "!!true",
		"%system command":     "%system true",
		"%%bash":              "%%bash\ntrue",
		"subprocess.run(...)": "subprocess.run(['true'])",
		"multiprocessing":     "p = multiprocessing.get_context('fork').Process(target=abs, args=(1,)); p.start(); p.join()",
		"DataLoader":          "", // of PyTorch, whose workers multiprocessing makes
	}
	rows := 0
	for line := range strings.Lines(string(page)) {
		says := strings.HasSuffix(line, "| freezes them |\n")
		if !says && !strings.HasSuffix(line, "| does nothing to them |\n") && !strings.HasSuffix(line, "| does nothing to them, with Python 3.10 and newer |\n") {
			continue
		}
		for i, text := range strings.Split(line, "`") {
			if i%2 == 0 || text == "fork" {
				continue
			}
			cell, ok := cells[text]
			if !ok {
				t.Errorf("what is %s?", text)
			}
			if rows++; cell == "" {
				continue
			}
			front.run(t, "a = np.full(1 << 17, 5.0)", "ok")
			v, err := session.View(t.Context(), "a")
			if err != nil {
				t.Fatal(err)
			}
			front.run(t, cell, "ok")
			front.run(t, "a[3] = 7", "ok")
			if now := slice[float64](t, v)[3]; v.Live() == says || (now == 5) != says {
				t.Errorf("%s: live %v, %v", cell, v.Live(), now)
			}
			if v, err = session.View(t.Context(), "a"); err != nil || slice[float64](t, v)[3] != 7 || v.Copied() != says {
				t.Errorf("%s: a new view: %v", cell, err)
			}
		}
	}
	if rows != len(cells) {
		t.Errorf("the table has %d of %d cells", rows, len(cells))
	}
}

// TestIPythonRunsAFile: the names of a file that IPython runs are in __main__. An interactive interpreter ends at once, for it has no input.
func TestIPythonRunsAFile(t *testing.T) {
	jupyter(t)
	script := filepath.Join(t.TempDir(), "script.ipy")
	if err := os.WriteFile(script, []byte("import numpy as np\na = np.full(1 << 17, 5.0)\nlines = !echo 7\na[3] = int(lines[0])\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	python := harness.PythonLaunchers(t)
	out, err := exec.CommandContext(t.Context(), bridge(t), "view", "--module", "IPython", "--python", python, "--json", "--arg", script, "a[3]").CombinedOutput()
	if err != nil || !strings.Contains(string(out), `"dtype":"float64"`) {
		t.Errorf("%v: %s", err, out)
	}
	for _, args := range [][]string{{"--module", "IPython"}, {"--module", "code"}} {
		run := exec.CommandContext(t.Context(), bridge(t), append([]string{"run", "--python", python}, args...)...)
		run.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
		stdin, err := run.StdinPipe() // which says nothing, and does not end
		if err != nil {
			t.Fatal(err)
		}
		if out, err := run.CombinedOutput(); err != nil {
			t.Errorf("%v: %v: %s", args, err, out)
		}
		if err := stdin.Close(); err != nil && !errors.Is(err, fs.ErrClosed) {
			t.Error(err)
		}
	}
}
