package hostplugin_test

import (
	"bytes"
	"errors"
	"io"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/hostplugin"
	"github.com/ndbridge/ndbridge/hostplugin/bootstrap/bootstraptest"
)

// mistaken gives the error of a file with two mistakes.
func mistaken(t *testing.T, src string) *hostplugin.ConfigError {
	t.Helper()
	_, err := hostplugin.Parse("nd.hcl", []byte(src))
	mistakes, ok := errors.AsType[*hostplugin.ConfigError](err)
	if !ok {
		t.Fatalf("Parse = %v", err)
	}
	return mistakes
}

// TestConfigErrorIsOfOneCategory: from a file or from Go, it is core.ErrConfig and nothing else, and has all mistakes.
func TestConfigErrorIsOfOneCategory(t *testing.T) {
	t.Parallel()
	_, ofGo := hostplugin.New(hostplugin.Config{Programs: []hostplugin.Program{{Name: "a", Script: "a.py"}, {Name: "a", Module: "b.py"}}})
	for what, err := range map[string]error{
		"file": mistaken(t, "program \"a\" {\n  module = \"b.py\"\n}\nprogram \"a\" { script = \"a.py\" }\n"),
		"Go":   ofGo,
	} {
		for _, wrapped := range []error{err, &core.Error{Op: "load", Kind: core.ErrConfig, Err: err}} {
			if !errors.Is(wrapped, core.ErrConfig) || errors.Is(wrapped, core.ErrNotFound) || errors.Is(wrapped, core.ErrUnavailable) {
				t.Errorf("%s: %v is of another category", what, wrapped)
			}
		}
		diags, ok := errors.AsType[hcl.Diagnostics](err)
		if !ok || len(diags) != 2 {
			t.Errorf("%s: diagnostics %v", what, diags)
		}
		for _, d := range diags {
			if (d.Subject == nil) != (what == "Go") {
				t.Errorf("%s: a mistake at %v", what, d.Subject)
			}
		}
		if text := err.Error(); !strings.Contains(text, "duplicate program") || !strings.Contains(text, "b.py") || strings.Count(text, "\n") != 1 {
			t.Errorf("%s: text %q", what, text)
		}
	}
}

// full takes no more than a number of bytes.
type full int

func (f *full) Write(p []byte) (int, error) {
	if len(p) > int(*f) {
		return 0, io.ErrShortWrite
	}
	*f -= full(len(p))
	return len(p), nil
}

// TestReport: the report shows the lines, in colours only where it is safe, and keeps the error of its writer.
func TestReport(t *testing.T) {
	t.Parallel()
	plain := mistaken(t, "program \"a\" {\n  scrpt = \"a.py\"\n}\n")
	hostile := mistaken(t, "program \"a\" {\n  scrpt = \"\x1b[2Ja.py\"\n}\n")
	for name, c := range map[string]struct {
		mistakes *hostplugin.ConfigError
		colour   bool
		escapes  bool // the text has what a terminal obeys
	}{
		"plain":                {plain, false, false},
		"in colours":           {plain, true, true},
		"hostile":              {hostile, false, false},
		"hostile, and colours": {hostile, true, false},
	} {
		var out bytes.Buffer
		if err := c.mistakes.Report(&out, 80, c.colour); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if text := out.String(); strings.Contains(text, "\x1b") != c.escapes || !strings.Contains(text, "scrpt") || !strings.Contains(text, `Did you mean "script"?`) {
			t.Errorf("%s: %q", name, text)
		}
		if err := c.mistakes.Report(new(full), 80, c.colour); !errors.Is(err, io.ErrShortWrite) || !strings.Contains(err.Error(), "report of 2 mistakes") {
			t.Errorf("%s: to a writer that is full: %v", name, err)
		}
	}
	var narrow bytes.Buffer
	if err := plain.Report(&narrow, 30, false); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(narrow.String(), "\n")
	if long := slices.MaxFunc(lines, func(a, b string) int { return len(a) - len(b) }); len(long) > 40 || len(lines) < 8 {
		t.Errorf("30 columns gave %d lines, one of them %q", len(lines), long)
	}
}

// TestWritersOfPrograms: each program prints where its own writers are, and a stream without one goes to the log.
func TestWritersOfPrograms(t *testing.T) {
	t.Parallel()
	var log, first, second bootstraptest.Buffer
	a, b, c := fake("serve", "hello"), fake("serve", "hello"), fake("serve", "hello")
	a.Name, b.Name, c.Name = "a", "b", "c"
	a.Stdout, b.Stdout, b.Stderr = &first, &second, &second
	host := newHostWith(t, hostplugin.Config{Programs: []hostplugin.Program{a, b, c}, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	for _, name := range []string{"a", "b", "c"} {
		if _, err := host.Start(t.Context(), name); err != nil {
			t.Fatal(err)
		}
	}
	said := func(b *bootstraptest.Buffer, want ...string) func() bool {
		return func() bool {
			return !slices.ContainsFunc(want, func(text string) bool { return !strings.Contains(b.String(), text) })
		}
	}
	eventually(t, "what the first prints", said(&first, "hello by descriptor 1\n"))
	eventually(t, "what the second prints", said(&second, "hello by descriptor 1\n", "hello by descriptor 2\n"))
	eventually(t, "the rest in the log", said(&log, "program=a stream=stderr", "program=c stream=stdout", "program=c stream=stderr"))
	for _, wrong := range []string{"program=a stream=stdout", "program=b stream="} {
		if strings.Contains(log.String(), wrong) {
			t.Errorf("the log has %q, which has a writer", wrong)
		}
	}
	if strings.Contains(first.String(), "descriptor 2") {
		t.Errorf("what goes to the log is written, too: %q", first.String())
	}
}
