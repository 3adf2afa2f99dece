package install

import (
	"os"
	"path/filepath"
	"testing"
)

const solver = `package main

import (
	"github.com/ndbridge/ndbridge/bridges/gonum"
	"github.com/ndbridge/ndbridge/core"
)

func main() {
	_, err := gonum.Dense(new(core.View))
	println(err.Error())
}
`

// TestBridgeOfARelease gets a bridge as a user does: with the module that it belongs to, of the same release, and with checksums
// that are right.
func TestBridgeOfARelease(t *testing.T) {
	sandbox{t: t, dir: filepath.Join(root, "bridges/gonum"), env: os.Environ()}.run("go", "mod", "download", "gonum.org/v1/gonum")
	proxy, tagged := release(t)
	env := append(goEnv(t, proxy), "PATH="+os.Getenv("PATH"), "CGO_ENABLED=0")
	sandbox{t: t, dir: filepath.Join(tagged, "bridges/gonum"), env: env}.run("go", "list", "-mod=readonly", "-test", "-deps", "./...")

	s := sandbox{t: t, dir: t.TempDir(), env: env}
	if err := os.WriteFile(filepath.Join(s.dir, "main.go"), []byte(solver), 0o600); err != nil {
		t.Fatal(err)
	}
	s.run("go", "mod", "init", "example.com/solver")
	s.run("go", "get", module+"/bridges/gonum")
	if got, want := s.run("go", "run", "."), "dense: read-only: a matrix of Gonum may be written to, and the view is not writable; "+
		"use Matrix, General64 or Vector64, or take the view with hostplugin.Writable()\n"; got != want {
		t.Errorf("it prints %q", got)
	}
}
