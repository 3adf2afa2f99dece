package hostplugin

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/hashicorp/hcl/v2"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/internal/prose"
)

// ConfigError lists every mistake of a configuration. It matches [core.ErrConfig].
type ConfigError struct {
	diags hcl.Diagnostics
	files map[string]*hcl.File
}

func newConfigError(diags hcl.Diagnostics, files map[string]*hcl.File) *ConfigError {
	return &ConfigError{diags: diags, files: files}
}

// Error gives one line for each mistake: place, what is wrong, what is right.
func (e *ConfigError) Error() string {
	lines := make([]string, len(e.diags))
	for i, d := range e.diags {
		var b strings.Builder
		if d.Subject != nil {
			b.WriteString(d.Subject.String() + ": ")
		}
		first, size := utf8.DecodeRuneInString(d.Summary)
		b.WriteRune(unicode.ToLower(first))
		b.WriteString(d.Summary[size:])
		if d.Detail != "" {
			b.WriteString(": " + strings.ReplaceAll(d.Detail, "\n", " "))
		}
		lines[i] = b.String()
	}
	return strings.Join(lines, "\n")
}

// Unwrap gives core.ErrConfig and the hcl.Diagnostics. Those of a Config written in Go have no Subject.
func (e *ConfigError) Unwrap() []error { return []error{core.ErrConfig, e.diags} }

// Report writes the mistakes for people, each with the lines of the file that it is about, wrapped
// at width columns (0 does not wrap) and with terminal colours if color is true. What a terminal would
// obey in the file is escaped; then there are no colours.
func (e *ConfigError) Report(w io.Writer, width uint, color bool) error {
	var b strings.Builder
	err := hcl.NewDiagnosticTextWriter(&b, e.files, width, false).WriteDiagnostics(e.diags)
	text := prose.Text(b.String())
	switch {
	case err != nil: // which a strings.Builder does not cause
	case color && text == b.String():
		err = hcl.NewDiagnosticTextWriter(w, e.files, width, true).WriteDiagnostics(e.diags)
	default:
		_, err = io.WriteString(w, text)
	}
	if err != nil {
		return fmt.Errorf("report of %d mistakes: %w", len(e.diags), err)
	}
	return nil
}

// unwrapPath drops the operation and path from a file error whose text names them already.
func unwrapPath(err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err
	}
	return err
}
