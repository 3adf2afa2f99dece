package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/ndbridge/ndbridge/hostplugin/bootstrap/bootstraptest"
)

// TestJupyterInstall writes a specification where Jupyter looks for it, of an interpreter that has ipykernel.
func TestJupyterInstall(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("JUPYTER_DATA_DIR", dir)
	with := bootstraptest.WriteProgram(t, "python3", "#!/bin/sh\nexit 0\n")
	file := filepath.Join(dir, "kernels", "lab", "kernel.json")
	command(t, "jupyter", "install", "--python", with, "--name", "Lab").want(t, 0, file+"\n", "")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var spec struct {
		Argv     []string
		Display  string `json:"display_name"`
		Language string
	}
	if err := json.Unmarshal(text, &spec); err != nil {
		t.Fatal(err)
	}
	want := []string{"run", "--share", "--name", "Lab", "--", with, "-m", "ipykernel_launcher", "-f", "{connection_file}"}
	if len(spec.Argv) != len(want)+1 || !filepath.IsAbs(spec.Argv[0]) || !slices.Equal(spec.Argv[1:], want) || spec.Display != "Python (Lab)" || spec.Language != "python" {
		t.Errorf("%s", text)
	}
	without := bootstraptest.WriteProgram(t, "python3", "#!/bin/sh\necho \"ModuleNotFoundError: No module named 'ipykernel'\" >&2\nexit 1\n")
	command(t, "jupyter", "install", "--python", without).want(t, 1, "", "cannot import ipykernel: ModuleNotFoundError: No module named 'ipykernel'")
	command(t, "jupyter", "install", "--python", filepath.Join(dir, "none")).want(t, 1, "", "the interpreter does not exist")
	command(t, "jupyter", "install", "--name", "a b").want(t, 2, "", "--name a b: expected letters")
	command(t, "jupyter", "wrong").want(t, 2, "", "jupyter takes no arguments")
	command(t, "jupyter").want(t, 2, "", "install")
	if entries, err := os.ReadDir(filepath.Join(dir, "kernels")); err != nil || len(entries) != 1 {
		t.Errorf("%v, %v", entries, err)
	}
}
