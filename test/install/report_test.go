package install

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
)

var report = flag.String("install.report", "", "start with no build cache, and write the figures into the documentation in this folder")

// goals are the rows of the report, in their order, with their goals.
var goals = []struct{ figure, goal string }{
	{"from an empty folder to the first element: `go mod init`, `go get` from files, `go build`, first run", "60 s"},
	{"of this: the first run, which unpacks", "5 s"},
	{"a later run", ""},
	{"added to a host's executable", "6 MB"},
	{"unpacking, once", "150 ms"},
	{"checking what was unpacked, at each start", "5 ms"},
	{"start of a session over the bare interpreter's, p50", "100 ms"},
	{"memory of the program over the bare one's, with NumPy: resident, private and shared", "15 MB"},
	{"of this: its own; the rest is the plugin's file, which all programs share", ""},
	{"threads of the program over the bare one's", ""},
	{"descriptors of the program over the bare one's", ""},
	{"Go memory of the host, for each session", ""},
	{"descriptors of the host, for each session", ""},
}

// figures are what was measured.
var figures struct {
	sync.Mutex

	measured map[string]string
}

func figure(what, value string) {
	figures.Lock()
	defer figures.Unlock()
	if figures.measured == nil {
		figures.measured = map[string]string{}
	}
	figures.measured[what] = value
}

// table has all figures, or fails: a row that was not measured anew would be of another day.
func table() (string, error) {
	var text strings.Builder
	text.WriteString("| figure | measured | goal |\n| --- | --- | --- |\n")
	for _, g := range goals {
		value, ok := figures.measured[g.figure]
		if !ok {
			return "", fmt.Errorf("%q was not measured", g.figure)
		}
		delete(figures.measured, g.figure)
		_, _ = fmt.Fprintf(&text, "| %s | %s | %s |\n", g.figure, value, g.goal) // a builder takes all
	}
	if len(figures.measured) > 0 {
		return "", fmt.Errorf("no rows for %v", figures.measured)
	}
	return text.String(), nil
}

// The table stands between these in docs/install.md.
const begin, end = "<!-- written by make figures -->\n", "<!-- end of the figures -->\n"

// write writes the figures into the documentation.
func write(docs string) error {
	rows, err := table()
	if err != nil {
		return err
	}
	how := fmt.Sprintf("Written by `make figures`, with %s on %s/%s, %d processors.\n\n", runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.NumCPU())
	page := filepath.Join(docs, "install.md")
	text, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	before, rest, ok := strings.Cut(string(text), begin)
	_, after, also := strings.Cut(rest, end)
	if !ok || !also {
		return fmt.Errorf("%s has no place for the figures", page)
	}
	for file, content := range map[string]string{
		page: before + begin + rows + end + after,
		filepath.Join(docs, "results/install.md"): "# What an installation takes\n\n" + how + rows,
	} {
		if err := os.WriteFile(file, []byte(content), 0o644); err != nil { //nolint:gosec // for everybody to read
			return err
		}
	}
	return nil
}

func TestMain(m *testing.M) {
	flag.Parse()
	status := m.Run()
	err := errors.Join(os.RemoveAll(built.dir), os.RemoveAll(released.dir))
	if err == nil && *report != "" && status == 0 {
		err = write(*report)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		status = 1
	}
	os.Exit(status)
}
