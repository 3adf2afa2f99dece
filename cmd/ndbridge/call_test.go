package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// onCall is on for "call", whose programs are not awaited.
func onCall(tb testing.TB, args ...string) result {
	tb.Helper()
	return command(tb, append([]string{"call", "--script", "testdata/model.py", "--python", python(tb)}, args...)...)
}

// numpy runs code in the tests' Python.
func numpy(tb testing.TB, code string, args ...string) string {
	tb.Helper()
	out, err := exec.CommandContext(tb.Context(), python(tb), append([]string{"-c", "import sys, numpy as np\n" + code}, args...)...).CombinedOutput()
	if err != nil {
		tb.Fatalf("%v: %s", err, out)
	}
	return strings.TrimSpace(string(out))
}

// TestCallWithFiles gives a function arrays of files, and writes what it returns.
func TestCallWithFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	in, fortran, out, all := filepath.Join(dir, "x.npy"), filepath.Join(dir, "f.npy"), filepath.Join(dir, "y.npy"), filepath.Join(dir, "y.npz")
	numpy(t, "x = np.arange(6, dtype='f4').reshape(2, 3); np.save(sys.argv[1], x); np.save(sys.argv[2], np.asfortranarray(x))", in, fortran)
	for _, file := range []string{in, fortran} {
		r := onCall(t, "--in", file, "--out", out, "double")
		r.want(t, statusOK, "", "wrote "+out)
		if r.stdout != "" {
			t.Errorf("a result that was written is printed, too: %s", r.stdout)
		}
		if got := numpy(t, "print(np.load(sys.argv[1]).tolist())", out); got != "[[0.0, 2.0, 4.0], [6.0, 8.0, 10.0]]" {
			t.Errorf("%s, doubled, is %s", file, got)
		}
	}
	r := onCall(t, "--in", "x="+in, "--out", all, "predict", "top=5", "scale=0.5")
	r.want(t, statusOK, `"top":5`, "said on stdout []\n")
	if scores, ok := r.objects(t)[0]["scores"].(map[string]any); !ok || scores["dtype"] != "float32" {
		t.Errorf("the array is shown as %v", r.stdout)
	}
	if got := numpy(t, "z = np.load(sys.argv[1]); print(sorted(z), z['scores'].tolist(), z['sums'].tolist())", all); got != "['scores', 'sums'] [[0.0, 0.5, 1.0], [1.5, 2.0, 2.5]] [3.0, 5.0, 7.0]" {
		t.Errorf("the file has %s", got)
	}
	onCall(t, "--in", in, "--out", out, "predict").want(t, statusFailed, "", "remedy: name an .npz file")
	onCall(t, "--out", out, "echo").want(t, statusFailed, "", "0 arrays")
	onCall(t, "--in", "testdata/model.py", "double").want(t, statusFailed, "", "not an .npy file")
	// What is wrong with a file starts no program: nothing of what interrupts its start is printed.
	command(t, "call", "--script", "testdata/model.py", "--python", "/nothing", "--in", filepath.Join(dir, "none.npy"), "double").want(t, statusFailed, "", "remedy: name an .npy file")
}

// TestCallWithValues gives a function plain values, and prints what it returns.
func TestCallWithValues(t *testing.T) {
	t.Parallel()
	onCall(t, "json:dumps", "[1, 2.5]").want(t, statusOK, "\"[1, 2.5]\"\n", "")
	onCall(t, "echo", "5", "a b", "text", "[1, 2.5, null]", "9007199254740993", "k=true", `s="5"`).want(t, statusOK,
		`[[5,"a b","text",[1,2.5,null],9007199254740993],{"k":true,"s":"5"},[1,2],"NaN","0+1i",{"[1 2]":"t"}]`+"\n", "")
	onCall(t, "--arg", "k=true", "echo", "5", "--arg", `s="a=b"`, "l=[1]", "--", "--arg", "x=1").want(t, statusOK,
		`[[5],{"k":true,"l":[1],"s":"a=b"},[1,2],`, "said on stdout ['--arg', 'x=1']\n")
	onCall(t, "fails").want(t, statusFailed, "", "in fails\n")
	onCall(t, "fails").want(t, statusFailed, "", "ValueError: no such thing")
	onCall(t, "feils").want(t, statusFailed, "", `did you mean "fails"?`)
	onCall(t, "double").want(t, statusFailed, "", "TypeError")
	onCall(t, "double", "x=1", "x=2").want(t, statusUsage, "", "x is given twice")
	onCall(t, "double", "--arg", "x=1", "x=2").want(t, statusUsage, "", "x is given twice")
	onCall(t, "double", "--arg", "5").want(t, statusUsage, "", "--arg 5: expected NAME=VALUE; arguments of the program stand behind --")
	onCall(t).want(t, statusUsage, "", "which function?")
	onCall(t, "--out", "y.txt", "double").want(t, statusUsage, "", "an .npy or .npz file")
	script, err := filepath.Abs("testdata/model.py")
	if err != nil {
		t.Fatal(err)
	}
	patient := file(t, t.TempDir(), "patient.hcl", fmt.Sprintf("program \"model\" {\n  python = %q\n  script = %q\n  on_stuck = \"end\"\n  stuck_timeout = \"60s\"\n}\n", python(t), script))
	command(t, "call", "-c", patient, "--timeout", "2s", "sleeps").want(t, statusFailed, "", "the function was interrupted")
}

// TestCallIsInterrupted: whoever ends the command cancels the call.
func TestCallIsInterrupted(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	read, stderr := io.Pipe()
	said := make(chan string)
	go func() {
		var all strings.Builder
		lines := bufio.NewScanner(read)
		for lines.Scan() {
			if all.WriteString(lines.Text() + "\n"); strings.Contains(lines.Text(), "sleeping") {
				cancel()
			}
		}
		said <- all.String()
	}()
	status := run(ctx, []string{"call", "--script", "testdata/model.py", "--python", python(t), "sleeps"}, io.Discard, stderr)
	stderr.Close()
	if all := <-said; status != statusInterrupted || !strings.Contains(all, "sleeping") {
		t.Errorf("status %d, want %d: %s", status, statusInterrupted, all)
	}
}
