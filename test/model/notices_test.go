package model

import (
	"fmt"
	"testing"
	"time"

	"github.com/ndbridge/ndbridge/hostplugin"
	"github.com/ndbridge/ndbridge/test/internal/harness"
)

func statements(lines ...string) []event {
	var events []event
	for _, line := range lines {
		events = append(events, event{kind: text, name: line, keep: -1})
	}
	return events
}

func looked(name string, keep int) event {
	return event{kind: look, name: name, keep: keep}
}

// TestModelNotices has programs lie, since a model that finds nothing might look at nothing. Of one lie, the events
// around it are cut away.
func TestModelNotices(t *testing.T) {
	s := setup{
		name: "lies", python: harness.Python(t), frameworks: "numpy", plugin: harness.Library(t, "ndbridge-all.so"),
		change: func(p *hostplugin.Program) { p.SharedHeap.Threshold = 4096 },
	}
	array := `x0 = mk((3000,), "<f8", 7)`
	for kind, events := range map[string][]event{
		"layout":                append(statements(array, `import places; places.numpy_dtype = lambda d: ("int64", "")`), looked("x0", -1)),
		"elements":              append(statements(array, `import places; places.Memory.bytes = lambda m: b"other"`), looked("x0", -1)),
		"read-only":             append(statements(array, `import places; places.jax = 0; m = places.numpy_memory; places.numpy_memory = lambda a: (lambda r: (setattr(r, "read_only", True), r)[1])(m(a))`), looked("x0", -1)),
		"view is given":         append(statements(array, `import helpers; helpers.model.places.get = lambda path: None`), looked("x0", -1)),
		"view fails: not found": append(statements(array, `import helpers; o0 = x0; helpers.model.places.get = lambda path: o0`, "del x0"), looked("x0", -1)),
		"list":                  append(statements(array, `import helpers; helpers.model.places.paths.remove("x0")`, "x1 = x0"), event{kind: listed, keep: -1}),
		"kept live":             append(append(statements(array), looked("x0", 1)), statements(`import watches; watches.Watch.say = lambda w: [w.state, 1]`)...),
		"behaves":               statements(array, `import ndbridge; assert not ndbridge.__doc__`),
		"values":                statements(`import ndbridge`, `x0 = np.zeros(3) if ndbridge.__doc__ else np.ones(3)`),
		"died":                  statements(array, "os._exit(3)"),
	} {
		t.Run(kind, func(t *testing.T) { notices(t, s, kind, events) })
	}
}

func notices(t *testing.T, s setup, kind string, lie []event) {
	p := &reproducer{ctx: t.Context(), setup: s, script: modelScript(t), kind: kind, tries: 1, single: kind == died}
	defer p.close()
	if !p.fails(lie) {
		t.Fatal("the model does not notice")
	}
	if kind != "elements" {
		return
	}
	var events []event
	for i := range 4 { // what has nothing to do with it
		events = append(events, statements(fmt.Sprintf("x7 = mk((%d,), 'u1', %d)", 100*i, i))...)
		if i == 2 {
			events = append(events, lie[:2]...)
		}
	}
	events = append(append(events, looked("x7", 2)), lie[2], looked("x6", -1))
	if short := minimise(events, time.Hour, p.fresh); len(short) > len(lie) {
		t.Errorf("%d events are left of %d that matter:\n%s", len(short), len(lie), writeEvents(short))
	}
}

// TestWords: contents that are mixed, somebody else's, or nobody's do not pass.
func TestWords(t *testing.T) {
	one, two, other := wordBytes(3, 7), wordBytes(3, 8), wordBytes(4, 7)
	zero := make([]byte, 8)
	join := func(parts ...[]byte) (all []byte) {
		for _, p := range parts {
			all = append(all, p...)
		}
		return all
	}
	for name, c := range map[string]struct {
		bytes []byte
		want  contents
		bad   bool
	}{
		"one value":         {join(one, one, one), contents{7, 7, 0, false}, false},
		"two generations":   {join(one, two), contents{7, 8, 0, true}, false},
		"zeros at the end":  {join(one, zero, zero), contents{7, 7, 2, false}, false},
		"zeros between":     {join(one, zero, one), contents{7, 7, 1, true}, false},
		"another array's":   {join(one, other), contents{}, true},
		"another's alone":   {join(other, other), contents{}, true},
		"poison":            {join(one, []byte("\xdd\xdd\xdd\xdd\xdd\xdd\xdd\xdd")), contents{}, true},
		"zeros alone":       {join(zero, zero), contents{}, true},
		"a word that broke": {join(one, one[4:], one[:4]), contents{}, true},
	} {
		got, err := read(c.bytes, 3, false)
		if (err != nil) != c.bad || err == nil && got != c.want {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

func wordBytes(number, generation uint64) []byte {
	w := word(0xa5<<56 | number<<48 | generation<<8)
	w |= (w>>48 ^ w>>32 ^ w>>16 ^ w>>8) & 0xff
	b := make([]byte, 8)
	for i := range b {
		b[i] = byte(w >> (8 * i))
	}
	return b
}
