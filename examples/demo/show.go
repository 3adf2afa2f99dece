package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"text/tabwriter"
	"time"
	"unicode/utf8"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
	"github.com/ndbridge/ndbridge/internal/render"
)

const (
	pictureColumns = 24 // three pictures fit on 80 columns
	pictureRows    = pictureColumns / 2
)

// show writes what people see. It keeps the first error, and is silent after it.
type show struct {
	w     io.Writer
	depth render.Depth
	err   error
}

func newShow(w io.Writer) *show { return &show{w: w, depth: render.DepthOf(w, render.Auto)} }

func (s *show) printf(format string, args ...any) {
	if s.err == nil {
		_, s.err = fmt.Fprintf(s.w, format, args...)
	}
}

// strong makes text stand out where there are colours.
func (s *show) strong(text string) string {
	if s.depth == render.Mono {
		return text
	}
	return "\x1b[1m" + text + "\x1b[0m"
}

// program says what runs.
func (s *show) program(info contract.Info, since time.Duration) {
	s.printf("\nA Go program runs %s and takes views of its arrays.\n", s.strong("examples/demo/program.py"))
	s.printf("It is process %d", info.PID)
	if interpreter, _, ok := strings.Cut(info.Interpreter, " ("); ok {
		s.printf(", %s", interpreter)
	}
	for _, f := range info.Frameworks {
		s.printf(", %s %s", f.Name, f.Version)
	}
	s.printf("; it had made its arrays after %.1f s.\n\n", since.Seconds())
}

// table says what the views are and what they took.
func (s *show) table(all []taken) {
	var text bytes.Buffer
	columns := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(columns, "array\tdtype\tshape\tstrides\tsize\troute\tcopied\ttime")
	for _, t := range all {
		copied := "no"
		if t.Copied() {
			copied = string(t.Reason())
		}
		_, _ = fmt.Fprintf(columns, "%s\t%v\t%s\t%s\t%s\t%v\t%s\t%.2f ms\n", t.Name(), t.DType(), render.Shape(t.Layout()),
			strings.ReplaceAll(strings.Trim(fmt.Sprint(t.Strides()), "[]"), " ", ", "),
			render.Size(t.NBytes()), t.Route(), copied, float64(t.took.Microseconds())/1000)
	}
	_ = columns.Flush() // a buffer takes it all
	head, rows, _ := strings.Cut(text.String(), "\n")
	s.printf("%s\n%s\n", s.strong(head), rows)
}

// gallery draws views beside one another, under their names.
func (s *show) gallery(ctx context.Context, views ...*core.View) error {
	titles := make([]string, len(views))
	for i, v := range views {
		titles[i] = v.Name()
	}
	return s.titled(ctx, titles, views)
}

// titled draws views beside one another, each under its title.
func (s *show) titled(ctx context.Context, titles []string, views []*core.View) error {
	pictures := make([][]string, len(views))
	for i, v := range views {
		var text bytes.Buffer
		opts := render.TextOptions{Columns: pictureColumns, Rows: pictureRows, Depth: s.depth}
		if err := render.Text(ctx, &text, v, opts); err != nil {
			return err
		}
		lines := strings.Split(strings.TrimSuffix(text.String(), "\n"), "\n")
		pictures[i] = append([]string{s.strong(titles[i])}, lines...)
	}
	for y := range pictureRows + 1 {
		var line strings.Builder
		for _, picture := range pictures {
			part := ""
			if y < len(picture) {
				part = picture[y]
			}
			fmt.Fprintf(&line, "  %s%*s", part, pictureColumns-columnsOf(part), "")
		}
		s.printf("%s\n", strings.TrimRight(line.String(), " "))
	}
	s.printf("\n")
	return nil
}

// columnsOf counts the characters that a terminal shows.
func columnsOf(line string) int {
	return utf8.RuneCountInString(regexp.MustCompile("\x1b\\[[0-9;]*m").ReplaceAllString(line, ""))
}

// marked tells of the writing and of what Python says to it.
func (s *show) marked(pixels int, said string) {
	s.printf("Go inverts a frame of %d pixels in face, in place. Python prints:\n", pixels)
	s.printf("  %s\n", s.strong(said))
	s.printf("The views that were taken before show it too: they are the same memory.\n\n")
}

// blended tells of the call and of its result.
func (s *show) blended(result *core.View, took time.Duration) {
	s.printf("Go draws a disc in memory of its own, and calls the program's function blend with it (%.2f ms).\n",
		float64(took.Microseconds())/1000)
	s.printf("The function got a NumPy array over that memory; its result is read in place (%v):\n", result.Route())
}

// visited says what was seen of a program that ran already.
func (s *show) visited(program *os.Process, weights *core.View, before, after float64) {
	s.printf("Another script runs already, by ndbridge run --share: process %d, %s.\n", program.Pid, s.strong(script))
	s.printf("The host attaches to it, and looks at a variable of its function main (%v, %s).\n", weights.Route(), map[bool]string{false: "not copied", true: "a copy"}[weights.Copied()])
	s.printf("The mean of its weights is %.2f, and a second later %.2f. The host leaves, and the script goes on.\n\n", before, after)
}

// end says where the pictures are, and what to do next.
func (s *show) end(dir, config string) {
	s.printf("Pictures of all of them are in %s.\n\n", s.strong(dir))
	s.printf("Try next, or with --script and --python of your own:\n")
	s.printf("  build/ndbridge view -c %s spectrum heartbeat\n", config)
	s.printf("  build/ndbridge view -c %s --json face\n", config)
	s.printf("  build/ndbridge ls --script examples/demo/program.py --python build/venv/demo/bin/python\n")
}

// page says where the training can be seen in a browser, and ends with the address.
func (s *show) page(address string, stays bool) {
	if stays {
		s.printf("\nA page shows the arrays of the training while it goes on, until you press Ctrl-C (or %.0f minutes are over):\n", shown.Minutes())
	} else {
		s.printf("\nA page shows the arrays of such a training in a browser, with this command:\n")
		s.printf("  build/ndbridge inspect --script %s --python build/venv/demo/bin/python\n", script)
		s.printf("Without a terminal the demo ends here, and with it the page, which it has fetched from\n")
	}
	s.printf("  %s\n", s.strong(address))
}

// draw makes a PNG file of each view.
func draw(ctx context.Context, dir string, all []taken) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, t := range all {
		if err := drawOne(ctx, dir, t.Name(), t.View); err != nil {
			return err
		}
	}
	return nil
}

func drawOne(ctx context.Context, dir, name string, v *core.View) error {
	f, err := os.Create(filepath.Join(dir, name+".png"))
	if err != nil {
		return err
	}
	err = render.PNG(ctx, f, v, render.PNGOptions{})
	if closed := f.Close(); err == nil {
		err = closed
	}
	return err
}
