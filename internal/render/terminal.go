package render

import (
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"golang.org/x/sys/unix"
)

// Columns gives how many characters a line of w has, if w is a terminal.
func Columns(w io.Writer) (columns int, terminal bool) {
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

// width is how wide text is set where nobody says how wide the place is.
const width = 100

// Width is how wide lines may be that are written to w.
func Width(w io.Writer) int {
	if columns, terminal := Columns(w); terminal && columns >= 40 {
		return columns
	}
	return width
}

// When says whether to draw in colours.
type When string

// The choices.
const (
	Auto   When = "auto" // if it is a terminal that has them, and NO_COLOR is not set
	Always When = "always"
	Never  When = "never"
)

// DepthOf decides what colours to draw on w with. The terminal says what it can by TERM and COLORTERM.
func DepthOf(w io.Writer, when When) Depth {
	_, terminal := Columns(w)
	term := os.Getenv("TERM")
	if when == Never || when == Auto && (!terminal || os.Getenv("NO_COLOR") != "" || term == "dumb" || term == "") {
		return Mono
	}
	switch depth := os.Getenv("COLORTERM"); {
	case depth == "truecolor" || depth == "24bit" || strings.HasSuffix(term, "-direct"):
		return TrueColour
	case !terminal:
		return TrueColour // asked for: the reader of the file or pipe can take it
	}
	return Colours256
}

// Clip cuts a line to so many characters; 0 is any number.
func Clip(text string, columns int) string {
	if columns <= 0 || utf8.RuneCountInString(text) <= columns {
		return text
	}
	return string([]rune(text)[:columns-1]) + "…"
}
