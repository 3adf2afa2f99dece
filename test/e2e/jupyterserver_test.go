package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/ndbridge/ndbridge/hostplugin"
	"github.com/ndbridge/ndbridge/hostplugin/bootstrap/bootstraptest"
	"github.com/ndbridge/ndbridge/test/internal/harness"
)

// server is a server of Jupyter's.
type server struct {
	command []string // that runs it
	runtime string   // where its kernels have their files
	client  *http.Client
}

// newServer readies a server, which listens at a path. All that is asked of it has this token.
func newServer(t *testing.T) *server {
	t.Helper()
	runtime := jupyter(t)
	socket := filepath.Join(t.TempDir(), "api")
	return &server{
		command: []string{
			beside(harness.PythonLaunchers(t), "jupyter"), "lab", "--no-browser", "--allow-root", "--sock=" + socket, "--IdentityProvider.token=tested",
		},
		runtime: runtime, client: overSocket(socket),
	}
}

// overSocket gives a client that asks what listens at this path.
func overSocket(path string) *http.Client {
	return &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var dialer net.Dialer
		return dialer.DialContext(ctx, "unix", path)
	}}}
}

// await waits until the server, which runs, answers.
func (s *server) await(t *testing.T) {
	t.Helper()
	harness.Eventually(t, harness.StartBound, "the server has begun", func() bool {
		_, err := s.tries(t, http.MethodGet, "kernels", "")
		return err == nil
	})
}

// ask sends a request, which the server is to carry out, and gives the id in its answer.
func (s *server) ask(t *testing.T, method, path, body string) string {
	t.Helper()
	id, err := s.tries(t, method, path, body)
	if err != nil {
		t.Fatalf("%s %s: %v", method, path, err)
	}
	return id
}

func (s *server) tries(t *testing.T, method, path, body string) (id string, err error) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, "http://localhost/api/"+path, strings.NewReader(body))
	if err != nil {
		return "", err
	}
	request.Header.Set("Authorization", "token tested")
	response, err := s.client.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return "", err
	}
	if response.StatusCode >= http.StatusBadRequest {
		return "", fmt.Errorf("%s: %s", response.Status, text)
	}
	var answer struct{ ID string }
	_ = json.Unmarshal(text, &answer) // some have no answer, or another one
	return answer.ID, nil
}

// start starts a kernel of this specification.
func (s *server) start(t *testing.T, specification string) *servedKernel {
	t.Helper()
	id := s.ask(t, http.MethodPost, "kernels", fmt.Sprintf(`{"name": %q}`, specification))
	k := &servedKernel{server: s, path: "kernels/" + id, file: filepath.Join(s.runtime, "kernel-"+id+".json")}
	k.connect(t)
	return k
}

// servedKernel is a kernel of a server's, with a front end.
type servedKernel struct {
	*server

	path, file string
	front      *notebook
	pid        int
}

// connect connects a front end.
func (k *servedKernel) connect(t *testing.T) {
	t.Helper()
	k.front = connect(t, k.file)
	if _, err := fmt.Sscan(k.front.run(t, "import os; os.getpid()", "ok"), &k.pid); err != nil {
		t.Fatal(err)
	}
}

// interrupt interrupts a cell that runs.
func (k *servedKernel) interrupt(t *testing.T) {
	t.Helper()
	runs := filepath.Join(t.TempDir(), "runs")
	done := make(chan struct{})
	go func() {
		defer close(done)
		cell := fmt.Sprintf("import time\nopen(%q, 'w').close()\ntime.sleep(50)", runs)
		if said := k.front.run(t, cell, "error"); said != "KeyboardInterrupt" {
			t.Errorf("an interrupted cell says %s", said)
		}
	}()
	harness.Eventually(t, harness.StartBound, "the cell runs", func() bool {
		_, err := os.Stat(runs)
		return err == nil
	})
	k.ask(t, http.MethodPost, k.path+"/interrupt", "")
	<-done
}

// restart restarts the kernel: it is another process then.
func (k *servedKernel) restart(t *testing.T) {
	t.Helper()
	before := k.pid
	k.ask(t, http.MethodPost, k.path+"/restart", "")
	k.connect(t)
	if k.pid == before || harness.Alive(before) {
		t.Errorf("process %d, before %d", k.pid, before)
	}
	k.front.run(t, "a", "error")
}

// end ends the kernel.
func (k *servedKernel) end(t *testing.T) {
	t.Helper()
	k.ask(t, http.MethodDelete, k.path, "")
	harness.Eventually(t, harness.StartBound, "the kernel has ended", func() bool { return !harness.Alive(k.pid) })
}

// hosted does to a kernel that listens what its users do, and holds that hosts see its arrays.
func (k *servedKernel) hosted(t *testing.T, name string) {
	t.Helper()
	host := harness.NewHost(t)
	look := func(target hostplugin.Target) *hostplugin.Session {
		session, err := host.Attach(t.Context(), target)
		if err != nil {
			t.Fatal(err)
		}
		k.front.run(t, "import numpy as np; a = np.full(1 << 17, 5.0)", "ok")
		v, err := session.View(t.Context(), "a")
		if err != nil {
			t.Fatal(err)
		}
		k.front.run(t, "a[3] = 7", "ok")
		if data := slice[float64](t, v); data[3] != 7 || data[4] != 5 || v.Copied() {
			t.Errorf("%s: %v, %v", name, data[3:5], v.Reason())
		}
		return session
	}
	first := look(hostplugin.Name(name))
	k.interrupt(t)
	k.front.run(t, "a[3]", "ok")
	if err := first.Err(); err != nil {
		t.Errorf("after an interrupt: %v", err)
	}
	k.restart(t)
	<-first.Done()
	second := look(hostplugin.PID(k.pid))
	k.end(t)
	<-second.Done()
	for _, s := range []*hostplugin.Session{first, second} {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestShareJupyter: a kernel of a server below "ndbridge run --share" lets hosts come, and is interrupted, restarted and ended as ever.
func TestShareJupyter(t *testing.T) {
	server := newServer(t)
	s := share(t, nil, server.command...)
	s.Dir = t.TempDir()
	s.start(t)
	server.await(t)
	if err := s.attach(t, harness.NewHost(t), hostplugin.Name("jupyter-lab")).Close(); err != nil {
		t.Error(err)
	}
	server.start(t, "python3").hosted(t, "ipykernel_launcher")
	server.ask(t, http.MethodPost, "shutdown", "")
	if status := s.end(t); status != 0 || strings.Contains(s.stderr.String(), "listen as") || strings.Contains(s.stderr.String(), "Traceback") {
		t.Errorf("status %d: %s", status, s.stderr.String())
	}
	if left := s.left(t); len(left) != 0 {
		t.Errorf("left %v", left)
	}
}

// TestJupyterKernels: a server that was started without ndbridge has a kernel of "ndbridge jupyter install", to which hosts come, and one that
// a host starts, as docs/jupyter.md says.
func TestJupyterKernels(t *testing.T) {
	server := newServer(t)
	run := t.TempDir()
	t.Setenv("XDG_RUNTIME_DIR", run)
	python := harness.PythonLaunchers(t)
	command := func(name string, args ...string) string {
		out, err := exec.CommandContext(t.Context(), name, args...).CombinedOutput()
		if err != nil {
			t.Fatalf("%s %s: %v: %s", name, args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	installed := command(bridge(t), "jupyter", "install", "--python", python, "--name", "lab")
	page, err := os.ReadFile("../../docs/jupyter.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(page), "```json\n")
	text, _, _ = strings.Cut(text, "```\n")
	text = strings.NewReplacer(`["ndbridge"`, fmt.Sprintf("[%q", bridge(t)), `"python3"`, fmt.Sprintf("%q", python)).Replace(text)
	started := filepath.Join(filepath.Dir(filepath.Dir(installed)), "started")
	if err := os.Mkdir(started, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(started, "kernel.json"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}

	cmd := exec.CommandContext(t.Context(), server.command[0], server.command[1:]...)
	var said bootstraptest.Buffer
	cmd.Dir, cmd.Stdout, cmd.Stderr = t.TempDir(), &said, &said
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		_ = cmd.Wait()
		if t.Failed() {
			t.Log(said.String())
		}
	})
	server.await(t)
	server.start(t, "lab").hosted(t, "lab")
	k := server.start(t, "started")
	if connected := k.front.run(t, "import ndbridge; ndbridge.connected", "ok"); connected != "True" {
		t.Errorf("connected: %s", connected)
	}
	k.interrupt(t)
	k.restart(t)
	k.end(t)
	server.ask(t, http.MethodPost, "shutdown", "")
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	command(beside(python, "jupyter"), "kernelspec", "remove", "-y", "lab")
	if _, err := os.Stat(filepath.Dir(installed)); !os.IsNotExist(err) {
		t.Errorf("jupyter kernelspec remove has left %s", installed)
	}
	if left, err := os.ReadDir(filepath.Join(run, "ndbridge")); err != nil || len(left) != 0 {
		t.Errorf("left %v, %v", left, err)
	}
}
