package main

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// listening runs a program that lets hosts come to it as "waiter", and gives its process and the path of its socket.
func listening(t *testing.T) (pid int, socket string) {
	t.Helper()
	run := t.TempDir()
	t.Setenv("XDG_RUNTIME_DIR", run) // of the host in this process, too
	script := file(t, run, "wait.py", `
import ndbridge, numpy as np, sys
x = np.full(1 << 17, 1.5)
def double(a): return a * 2
def main():
    y = np.arange(1 << 17)
    print(ndbridge.listen("waiter"), flush=True)
    sys.stdin.read()
main()
`)
	cmd := exec.Command(python(t), script) //nolint:noctx // it ends by itself when the test does
	cmd.Env = append(os.Environ(), "PYTHONPATH="+filepath.Join(os.Getenv("NDBRIDGE_LIB"), "python"),
		"LD_PRELOAD="+filepath.Join(os.Getenv("NDBRIDGE_LIB"), "libndbridge-heap.so"))
	socket = starts(t, cmd)
	return cmd.Process.Pid, socket
}

// starts starts a program that reads its input until the test ends, and gives the first line that it prints.
func starts(t *testing.T, cmd *exec.Cmd) string {
	t.Helper()
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
		if err := stdin.Close(); err != nil {
			t.Error(err)
		}
		if err := cmd.Wait(); err != nil {
			t.Errorf("the program did not go on to its own end: %v", err)
		}
	})
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(line)
}

// TestAttach looks at a program that runs already, by its name, its process and its socket, and leaves it running.
func TestAttach(t *testing.T) { //nolint:paralleltest // it sets the environment
	pid, socket := listening(t)
	for _, target := range []string{"waiter", strconv.Itoa(pid), socket} {
		command(t, "ls", "--attach", target).want(t, 0, "main().y", "")
		command(t, "view", "--attach", target, "--json", "x").want(t, 0, `"address_shared":true`, "")
	}
	command(t, "call", "--attach", "waiter", "double", "21").want(t, 0, "42", "")
	listed := command(t, "ps").stdout
	if !regexp.MustCompile(`(?m)^` + strconv.Itoa(pid) + ` +waiter +` + regexp.QuoteMeta(socket) + `$`).MatchString(listed) { // others may run, too
		t.Errorf("ps does not list the program:\n%s", listed)
	}
	found := false
	for _, p := range command(t, "ps", "--json").objects(t) {
		found = found || p["pid"] == float64(pid) && p["name"] == "waiter" && p["socket"] == socket
	}
	if !found {
		t.Error("ps --json does not list the program")
	}
	missing := command(t, "view", "--attach", "waiter", "--patience", "100ms", "xx")
	missing.want(t, 1, "", "not found: the program has no global variable, has published nothing, "+
		"and runs no function with a variable, of that name; looked among the global variables of __main__, the variables of (main())\n")
	missing.want(t, 1, "", `remedy: did you mean "x"?`)
	if some := command(t, "view", "--attach", "waiter", "--patience", "100ms", "--json", "xx", "x").objects(t); len(some) != 2 ||
		some[0]["name"] != "x" || some[0]["dtype"] == nil || some[1]["name"] != "xx" { // what is there does not wait for what is not
		t.Errorf("x and xx: %v", some)
	}
	command(t, "view", "--attach", "waiter", "--wait", "--json", "x").want(t, 0, `"address_shared":true`, "")
	command(t, "view", "--attach", "waitor", "--wait", "--timeout", "100ms", "x").want(t, 1, "", "no answer within 100ms: the program has not begun to listen: no program of this user")
	command(t, "view", "--script", "x.py", "--wait", "x").want(t, 2, "", "which --attach names")
	config := file(t, t.TempDir(), "c.hcl", "program \"other\" { script = \"o.py\" }\nprogram \"waiter\" {\n script = \"x.py\"\n handoff = false\n}\n")
	command(t, "view", "--attach", "waiter", "-c", config, "--json", "waiter/x").want(t, 0, `"address_shared":true`, "")
	command(t, "call", "--attach", "waiter", "-c", config, "double", "21").want(t, 1, "", "leave handoff on")
	command(t, "call", "--attach", socket, "-c", config, "double", "21").want(t, 1, "", "leave handoff on")
	command(t, "view", "--attach", "waiter", "-c", config, "--program", "other", "x").want(t, 2, "", "--attach and --program")
	command(t, "ls", "--attach", "waitor").want(t, 1, "", `did you mean`)
	command(t, "ls", "--attach", strconv.Itoa(os.Getpid())).want(t, 1, "", "the process runs no Python")
	command(t, "ls", "--attach", "waiter", "--script", "x.py").want(t, 2, "", "only one of them")
	command(t, "ls", "--attach", "waiter", "--plugin", "numpy").want(t, 2, "", "that is for programs that are started")
	command(t, "ls", "--attach", "waiter", "--", "x").want(t, 2, "", "takes no arguments")
	command(t, "run", "--attach", "waiter").want(t, 2, "", "unknown flag")
	command(t, "run", "--share", "python3", "-c", "pass").want(t, 2, "", "the command with its options stands behind --")
}

// TestPsOthers lists a Python that does not listen, and why nobody can attach.
func TestPsOthers(t *testing.T) {
	t.Parallel()
	cmd := exec.Command(python(t), "-c", "import sys; print(flush=True); sys.stdin.read()") //nolint:noctx // it ends by itself when the test does
	starts(t, cmd)
	pid := strconv.Itoa(cmd.Process.Pid)
	listed := false
	for line := range strings.Lines(command(t, "ps").stdout) {
		listed = listed || strings.HasPrefix(line, pid+" ") && strings.Contains(line, "does not listen, and the process runs a Python older than 3.14")
	}
	if !listed {
		t.Error("ps does not list it")
	}
	command(t, "ls", "--attach", pid).want(t, 1, "", "older than 3.14, which cannot be asked to let a host in\n  remedy: let the program call ndbridge.listen(), run it by ndbridge run --share, or use Python 3.14")
}
