package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"strings"
	"syscall"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/internal/running"
)

// The exit statuses of a command that cannot be run, as those of shells and env.
const (
	statusNotExecutable = 126
	statusNoCommand     = 127
)

// share becomes a command whose Pythons let hosts come to them.
func (r *runner) share(args []string) error {
	heap, err := heapFile("run")
	if err != nil {
		return err
	}
	if strings.ContainsAny(heap, ": \t\n$") {
		return &core.Error{
			Op: "run", Kind: core.ErrConfig, Err: fmt.Errorf("LD_PRELOAD cannot hold the path %q", heap),
			Remedy: "set NDBRIDGE_LIB to a directory whose path has no spaces, colons and dollar signs",
		}
	}
	directory, err := running.Directory()
	if err != nil {
		return err
	}
	set := map[string]string{"LD_PRELOAD": heap, "NDBRIDGE_HEAP_LISTEN": directory}
	if r.name != "" {
		set["NDBRIDGE_HEAP_NAME"] = r.name
	}
	if old := running.WithoutHeap(os.Getenv("LD_PRELOAD")); old != "" {
		set["LD_PRELOAD"] += ":" + old
	}
	if r.target.logLevel == "debug" {
		set["NDBRIDGE_HEAP_SAY"] = "1"
	}
	for key, value := range set {
		if err := os.Setenv(key, value); err != nil {
			return err
		}
	}
	path, err := exec.LookPath(args[0])
	if err == nil || errors.Is(err, exec.ErrDot) {
		err = syscall.Exec(path, args, os.Environ()) //nolint:gosec // it is what the user has asked for
	}
	writeProblem(r.env.stderr, problem{Message: fmt.Sprintf("run: %v", err)})
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, exec.ErrNotFound) {
		return &statusError{statusNoCommand}
	}
	return &statusError{statusNotExecutable}
}
