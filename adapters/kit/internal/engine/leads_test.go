package engine_test

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/ndbridge/ndbridge/adapters/kit/program/programtest"
	"github.com/ndbridge/ndbridge/core/contract"
)

// leadsScript has arrays that functions, methods, generators and the like lead to. The function of a library has one, too.
const leadsScript = `
import functools, types
class Holder: pass
class Cell:
    def __init__(self): self.w = number(1)
    def method(self): pass
def made():
    frame, unset = number(1), None
    def step(x, scale=number(1), *, bias=number(1)): return frame * x * scale + (unset or 0)
    del unset
    return step
library = {"__name__": "library", "__file__": "/usr/lib/python3/library.py", "number": number}
exec("def outer():\n frame = number(1)\n return lambda: frame\nmade = outer()", library)
def produces():
    batch = [number(1)]
    def inner():
        deep, _own = number(1), number(1)
        yield deep
    yield from inner()
async def awaits():
    x = number(1)
    await streams().asend(None)
async def streams():
    v = number(1)
    yield
leads = Holder()
leads.made, leads.library = made(), library["made"]
leads.made.cache = number(1)
leads.partial = functools.partial(number, number(1), n=number(1))
leads.method = Cell().method
leads.proxy = types.MappingProxyType({"x": number(1)})
leads.user = types.MappingProxyType(collections.UserDict(x=number(1)))
leads.gen = produces()
next(leads.gen)
leads.co, leads.ended = awaits(), produces()
for _ in leads.ended: pass
audited = []
sys.addaudithook(lambda event, args: event == "object.__getattr__" and "look" in events and "looked" not in events and audited.append(args[1]))
`

// foundByLeads looks for what is in leadsScript.
func foundByLeads(t *testing.T, p *programtest.Program) {
	t.Helper()
	trigger(t, p, "look")
	var all []string
	for pattern, want := range map[string][]string{
		"leads.**": {
			`leads.gen.gi_frame.f_locals["batch"][0]`, `leads.gen.gi_yieldfrom.gi_frame.f_locals["deep"]`, "leads.made.__closure__[0].cell_contents",
			"leads.made.__defaults__[0]", `leads.made.__kwdefaults__["bias"]`, "leads.made.cache", "leads.method.__self__.w", "leads.partial.args[0]",
			`leads.partial.keywords["n"]`, `leads.proxy["x"]`,
		},
		`leads.gen.gi_frame.f_locals["*"].**`:       {`leads.gen.gi_frame.f_locals["batch"][0]`},
		`leads.gen.gi_frame.f_locals.**`:            {`leads.gen.gi_frame.f_locals["batch"][0]`},
		`leads.gen.gi_frame.f_locals["batch"][*]`:   {`leads.gen.gi_frame.f_locals["batch"][0]`},
		`leads.*.gi_yieldfrom.gi_frame.f_locals[*]`: {`leads.gen.gi_yieldfrom.gi_frame.f_locals["deep"]`},
		`leads.gen[*].**`:                           nil,
		`leads.gen.*.**`:                            {`leads.gen.gi_yieldfrom.gi_frame.f_locals["deep"]`},
		`leads.proxy["*"]`:                          {`leads.proxy["x"]`},
		`leads.made.__closure__[*].cell_*`:          {"leads.made.__closure__[0].cell_contents"},
		`leads.p*.keywords["n"]`:                    {`leads.partial.keywords["n"]`},
	} {
		found, err := p.Search(t.Context(), contract.Search{Pattern: pattern})
		if err != nil {
			t.Errorf("%s: %v", pattern, err)
		}
		var got []string
		for _, e := range found.Entries {
			got = append(got, e.Name)
		}
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("%s means %q, want %q", pattern, got, want)
		}
		all = append(all, got...)
	}
	trigger(t, p, "looked") // what follows goes by Python's own attributes
	for _, name := range all {
		if first(t, p, name) != 1 {
			t.Errorf("%s is another array", name)
		}
	}
}

// TestLeadsBesideLibrary has a library of the program's with a symbol that is called as a class of Python's is.
func TestLeadsBesideLibrary(t *testing.T) {
	t.Parallel()
	source, library := filepath.Join(t.TempDir(), "partial.c"), filepath.Join(t.TempDir(), "partial.so")
	if err := os.WriteFile(source, []byte("long partial[128];\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), cmp.Or(os.Getenv("CC"), "gcc"), "-shared", "-fPIC", "-o", library, source).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	p := programtest.Start(t, fmt.Sprintf(`
import ctypes, functools
import numpy as np
library = ctypes.CDLL(%q, ctypes.RTLD_GLOBAL)
class Holder: pass
leads = Holder()
leads.partial = functools.partial(print, np.full(1, 1.0))
`, library), programtest.Options{})
	p.Finish(t)
	found, err := p.Search(t.Context(), contract.Search{Pattern: "leads.**"})
	if err != nil || len(found.Entries) != 1 || found.Entries[0].Name != "leads.partial.args[0]" {
		t.Errorf("%+v, %v", found.Entries, err)
	}
}
