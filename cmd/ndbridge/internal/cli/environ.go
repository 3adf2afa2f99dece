package cli

import (
	"io"

	"github.com/ndbridge/ndbridge/internal/render"
)

// environ is what a command has around it.
type environ struct {
	stdout  io.Writer
	stderr  *console
	running bool // the command line was understood
}

func newEnviron(stdout, stderr io.Writer) *environ {
	_, tty := render.Columns(stderr)
	return &environ{stdout: stdout, stderr: newConsole(stderr, tty)}
}
