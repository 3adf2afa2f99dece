package programtest

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
)

// Witness is an array that a quirk is about: what becomes of it with the quirk, and without. It counts
// in the versions that the quirk applies to.
type Witness struct {
	ID    core.QuirkID
	Array string // a Python expression, which must have a value in every version
	// With and Without are patterns for what became of the array: "view of float64[3] writable, staged
	// below-threshold: 0000803f" with its first bytes, or an error's category and its text.
	With, Without string
	// Alone says that without this quirk other witnesses show its fault instead of their own.
	Alone bool
	// Never holds quirks that are off in any case, since they hide this one. It implies Alone.
	Never []core.QuirkID
}

// Quirks is an adapter's table of quirks and the witnesses to prove it by.
type Quirks struct {
	Framework string
	Table     []contract.Quirk
	Plugin    string   // as in Options
	Env       []string // as in Options
	Setup     string   // Python code before the arrays
	Witnesses []Witness
}

// Prove shows for each quirk that applies to the interpreter's version of the framework that the array
// fares as With says, and as Without says while the quirk is off. It gives the quirks that it proved.
func (q *Quirks) Prove(t *testing.T, python string) []core.QuirkID {
	t.Helper()
	var together []core.QuirkID
	for _, w := range q.Witnesses {
		if !w.alone() {
			together = append(together, w.ID)
		}
	}
	usual, without := q.start(t, python), q.start(t, python, together...)
	var proven []core.QuirkID
	for i, w := range q.Witnesses {
		name := fmt.Sprintf("witness[%d]", i)
		if !q.applies(w.ID, usual.version) {
			if text, took := outcome(t, usual.Program, name, w.ID); took == w.ID {
				t.Errorf("%s takes part in version %s: %s", w.ID, usual.version, text)
			}
			continue
		}
		with, bare := usual, without
		if len(w.Never) > 0 {
			with = q.start(t, python, w.Never...)
		}
		if w.alone() {
			bare = q.start(t, python, append(slices.Clone(w.Never), w.ID)...)
		}
		if text, took := outcome(t, with.Program, name, w.ID); !named(took, w.ID, text) || !matches(w.With, text) {
			t.Errorf("with %s, version %s: %s (%q), want %s", w.ID, usual.version, text, took, w.With)
		}
		if text, took := outcome(t, bare.Program, name, w.ID); took == w.ID || !matches(w.Without, text) {
			t.Errorf("without %s, version %s: %s (%q), want %s", w.ID, usual.version, text, took, w.Without)
		}
		proven = append(proven, w.ID)
	}
	usual.tell(t, q.Framework, "quirks", len(proven))
	return proven
}

func (w *Witness) alone() bool { return w.Alone || len(w.Never) > 0 }

// running is a program in which the witnesses are made, and the framework's version.
type running struct {
	*Program
	version string
}

func (q *Quirks) start(t *testing.T, python string, disabled ...core.QuirkID) running {
	t.Helper()
	var script strings.Builder
	script.WriteString(q.Setup + "\nwitness = []\n")
	for _, w := range q.Witnesses {
		fmt.Fprintf(&script, "witness.append(%s)\n", w.Array)
	}
	p := Start(t, script.String(), Options{Python: python, Plugin: q.Plugin, Env: q.Env, Settings: contract.Settings{
		Adapters: []contract.AdapterSettings{{Name: q.Framework, DisabledQuirks: disabled}},
	}})
	p.Finish(t)
	ctx, cancel := context.WithTimeout(t.Context(), Patience)
	defer cancel()
	info, err := p.Info(ctx)
	check(t, err)
	i := slices.IndexFunc(info.Frameworks, func(f contract.Framework) bool { return f.Name == q.Framework })
	if i < 0 {
		t.Fatalf("the frameworks are %+v", info.Frameworks)
	}
	f := info.Frameworks[i]
	for _, quirk := range q.Table {
		want := quirk.Applies(f.Version) && !slices.Contains(disabled, quirk.ID)
		if slices.ContainsFunc(f.Quirks, func(q contract.Quirk) bool { return q.ID == quirk.ID }) != want {
			t.Errorf("version %s without %v: %s is in force: %v", f.Version, disabled, quirk.ID, !want)
		}
	}
	return running{p, f.Version}
}

func (q *Quirks) applies(id core.QuirkID, version string) bool {
	return slices.ContainsFunc(q.Table, func(r contract.Quirk) bool { return r.ID == id && r.Applies(version) })
}

// outcome says what became of an array, and gives the quirk that refused it, or id if that took part.
func outcome(tb testing.TB, p *Program, name string, id core.QuirkID) (text string, took core.QuirkID) {
	tb.Helper()
	v, err := p.View(tb, name, contract.Request{})
	if err != nil {
		if e, ok := errors.AsType[*core.Error](err); ok {
			took = e.Quirk
		}
		return core.Category(err) + ": " + err.Error(), took
	}
	defer func() { _ = v.Close() }()
	access := "writable"
	if v.ReadOnly() {
		access = "read-only"
	}
	data := make([]byte, v.NBytes())
	_, err = core.CopyBytes(tb.Context(), data, v)
	check(tb, err)
	if slices.Contains(v.Quirks(), id) {
		took = id
	}
	return fmt.Sprintf("view of %v %s, %v %v: %s", v.Layout(), access, v.Route(), v.Reason(),
		hex.EncodeToString(data[:min(len(data), 16)])), took
}

// named reports whether the outcome names the quirk, which an exception that Python raised cannot.
func named(took, id core.QuirkID, text string) bool {
	return took == id || strings.HasPrefix(text, "python error: ")
}

func matches(pattern, text string) bool {
	return regexp.MustCompile(`(?s)` + pattern).MatchString(text)
}
