package cli

import (
	"io"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/ndbridge/ndbridge/internal/render"
)

// environ is what a command has around it.
type environ struct {
	stdout  io.Writer
	stderr  *console
	running bool // the command line was understood
}

func newEnviron(stdout, stderr io.Writer) *environ {
	_, tty := width(stderr)
	return &environ{stdout: stdout, stderr: newConsole(stderr, tty)}
}

// width gives the number of columns if w is a terminal.
func width(w io.Writer) (columns int, tty bool) {
	f, ok := w.(*os.File)
	if !ok {
		return 0, false
	}
	size, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	if err != nil {
		return 0, false
	}
	if size.Col == 0 {
		return 80, true // a terminal that does not say
	}
	return int(size.Col), true
}

// colours decides what colours to draw on w with: those that the user asks for ("always", "never"), or
// with "auto" those that the terminal has.
func colours(w io.Writer, when string) render.Depth {
	_, tty := width(w)
	term := os.Getenv("TERM")
	if when == "never" || when == "auto" && (!tty || os.Getenv("NO_COLOR") != "" || term == "dumb" || term == "") {
		return render.Mono
	}
	switch depth := os.Getenv("COLORTERM"); {
	case depth == "truecolor" || depth == "24bit" || strings.HasSuffix(term, "-direct"):
		return render.TrueColour
	case !tty:
		return render.TrueColour // asked for: the reader of the file or pipe can take it
	}
	return render.Colours256
}
