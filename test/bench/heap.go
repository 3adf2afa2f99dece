package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
)

// measureHeap runs the shared heap's own benchmark: the frameworks' speed with it on and off.
func measureHeap(ctx context.Context, opts options, brief bool) (json.RawMessage, error) {
	file, err := os.CreateTemp("", "ndbench*.json")
	if err != nil {
		return nil, err
	}
	defer os.Remove(file.Name())
	if err := file.Close(); err != nil {
		return nil, err
	}
	args := []string{opts.heap, "--json", file.Name()}
	if brief {
		args = append(args, "--brief")
	}
	process := exec.CommandContext(ctx, opts.python, args...)
	process.Stdout, process.Stderr = os.Stdout, os.Stderr
	if err := process.Run(); err != nil {
		return nil, fmt.Errorf("%s: %w", opts.heap, err)
	}
	return os.ReadFile(file.Name())
}
