package main

import (
	"io"
)

// environ is what a command has around it.
type environ struct {
	stdout  io.Writer
	stderr  *console
	running bool // the command line was understood
}

func newEnviron(stdout, stderr io.Writer) *environ {
	return &environ{stdout: stdout, stderr: newConsole(stderr)}
}
