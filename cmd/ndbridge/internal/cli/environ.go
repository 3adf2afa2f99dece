package cli

import (
	"io"

	"github.com/ndbridge/ndbridge/cmd/ndbridge/internal/console"
)

// environ is what a command has around it.
type environ struct {
	stdout  io.Writer
	stderr  *console.Console
	running bool // the command line was understood
}

func newEnviron(stdout, stderr io.Writer) *environ {
	return &environ{stdout: stdout, stderr: console.New(stderr)}
}
