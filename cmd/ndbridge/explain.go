package main

import (
	"context"
	"errors"
	"io"
	"strings"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/hostplugin"
	"github.com/ndbridge/ndbridge/internal/prose"
	"github.com/ndbridge/ndbridge/internal/render"
)

// problem is an error taken apart for a reader.
type problem struct {
	Category string `json:"category"`
	Message  string `json:"message"` // what was tried, on what, why it failed
	Remedy   string `json:"remedy"`
	Quirk    string `json:"quirk"`
}

// explain takes an error apart.
func explain(err error) problem {
	p := problem{Category: core.Category(err), Message: err.Error()}
	e, ok := errors.AsType[*core.Error](err)
	if !ok {
		return p
	}
	plain := *e
	plain.Remedy, plain.Quirk = "", ""
	if whole := e.Error(); strings.Contains(p.Message, whole) {
		p.Message = strings.Replace(p.Message, whole, plain.Error(), 1)
	}
	for inner := e; ok; inner, ok = errors.AsType[*core.Error](inner.Err) {
		if p.Remedy == "" {
			p.Remedy = inner.Remedy
		}
		if p.Quirk == "" {
			p.Quirk = string(inner.Quirk)
		}
	}
	return p
}

// report tells the user of an error: what happened and why, and on lines of their own what to do and
// which quirk decided. Mistakes in a configuration are shown where they stand. Users who interrupt know
// that they did.
func (e *environ) report(err error) {
	if errors.Is(err, context.Canceled) {
		return
	}
	if mistakes, ok := errors.AsType[*hostplugin.ConfigError](err); ok {
		columns, tty := render.Columns(e.stderr.Unwrap())
		if mistakes.Report(e.stderr, uint(max(columns, 0)), tty && render.DepthOf(e.stderr.Unwrap(), render.Auto) > render.Mono) == nil { //nolint:gosec // not negative
			return
		}
	}
	writeProblem(e.stderr, explain(err))
}

func writeProblem(w io.Writer, p problem) {
	var b strings.Builder
	line := func(head, text string) {
		if text != "" {
			b.WriteString(head + strings.ReplaceAll(prose.Text(text), "\n", "\n  ") + "\n")
		}
	}
	line("ndbridge: ", p.Message)
	line("  remedy: ", p.Remedy)
	line("  quirk:  ", p.Quirk)
	_, _ = io.WriteString(w, b.String()) // standard error has no better place to go
}

// about makes an error that concerns a program as a whole one of an array that was wanted of it.
func about(err error, w wanted) error {
	e, ok := errors.AsType[*core.Error](err)
	if !ok || e.Object != "" || w.name == "" {
		return err
	}
	mine := *e
	mine.Op, mine.Program, mine.Object = "view", w.program, w.name
	return &mine
}
