package jax_test

import (
	"testing"
	"time"

	"github.com/ndbridge/ndbridge/adapters/kit/program/programtest"
	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
)

// givenScript lets the host have arrays given away, by the name give.deleted or give.donated; the answer
// says whether the memory was used again at once.
const givenScript = `
import jax, jax.numpy as jnp, numpy as np

add = jax.jit(lambda x: x + 1, donate_argnums=0)
add(jnp.zeros(100000, "f4")).block_until_ready()


def new():
    return jnp.arange(100000, dtype="f4").block_until_ready()


class Give:
    @property
    def deleted(self):
        address = deleted.unsafe_buffer_pointer()
        deleted.delete()
        self.others = [jnp.full(100000, -1, "f4").block_until_ready() for _ in range(20)]
        return np.array([float(any(x.unsafe_buffer_pointer() == address for x in self.others))])

    @property
    def donated(self):
        address = donated.unsafe_buffer_pointer()
        self.result = add(donated).block_until_ready()
        return np.array([float(self.result.unsafe_buffer_pointer() == address)])

    @property
    def forgotten(self):
        global forgotten
        address = forgotten.unsafe_buffer_pointer()
        forgotten = None
        self.others = [jnp.full(100000, -1, "f4").block_until_ready() for _ in range(20)]
        return np.array([float(any(x.unsafe_buffer_pointer() == address for x in self.others))])

    @property
    def back(self):
        global donated
        donated = new()
        return np.zeros(1)


give = Give()
deleted, donated, forgotten = new(), new(), new()

passing = new()
dlpack = type(passing).__dlpack__


def overtaken(x, **kw):
    global passing
    if x is passing:  # as another thread may do while JAX waits for the array
        passing, kept[:] = new(), []
        x.delete()
    return dlpack(x, **kw)


kept = [passing]
type(passing).__dlpack__ = lambda x, **kw: overtaken(x, **kw) if kept else dlpack(x, **kw)
`

// TestGivenAway deletes, donates and forgets arrays that are leased: the view keeps its values. After
// the lease JAX has the memory back.
func TestGivenAway(t *testing.T) {
	t.Parallel()
	for version, python := range pythons(t) {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			p := programtest.Start(t, givenScript, programtest.Options{Python: python})
			p.Finish(t)
			givenAwayUnderALook(t, p)
			for _, name := range []string{"deleted", "donated", "forgotten"} {
				v, err := p.View(t, name, contract.Request{Copy: contract.CopyNever})
				if err != nil {
					t.Fatal(err)
				}
				if numbers(t, p, "give."+name)[0] != 0 {
					t.Errorf("the memory of the %s array was used again while it is leased", name)
				}
				if !counts(t, v) {
					t.Errorf("the %s array changed while it is leased", name)
				}
				if err := v.Close(); err != nil {
					t.Fatal(err)
				}
			}
			for end := time.Now().Add(programtest.Patience); ; {
				numbers(t, p, "give.back")
				v, err := p.View(t, "donated", contract.Request{})
				if err != nil {
					t.Fatal(err)
				}
				if err := v.Close(); err != nil {
					t.Fatal(err)
				}
				if numbers(t, p, "give.donated")[0] == 1 {
					break
				}
				if time.Now().After(end) {
					t.Fatal("an array that is leased no more is still held")
				}
			}
		})
	}
}

// givenAwayUnderALook deletes an array while the host looks at its name, which leads to another one then: that comes.
func givenAwayUnderALook(t *testing.T, p *programtest.Program) {
	t.Helper()
	v, err := p.View(t, "passing", contract.Request{})
	if err != nil {
		t.Fatal(err)
	}
	if !counts(t, v) {
		t.Error("the array that came is not the next one")
	}
	if err := v.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestMemoryReused is the witness of the quirk of that name: without it, the array is overwritten.
func TestMemoryReused(t *testing.T) {
	t.Parallel()
	for version, python := range pythons(t) {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			p := programtest.Start(t, givenScript, programtest.Options{
				Python: python,
				Settings: contract.Settings{Adapters: []contract.AdapterSettings{
					{Name: "jax", DisabledQuirks: []core.QuirkID{witnessElsewhere}},
				}},
			})
			p.Finish(t)
			v, err := p.View(t, "donated", contract.Request{})
			if err != nil {
				t.Fatal(err)
			}
			if numbers(t, p, "give.donated")[0] != 1 || counts(t, v) {
				t.Error("the array is intact without the quirk")
			}
		})
	}
}

// counts reports whether a view holds 0, 1, 2 and so on.
func counts(t *testing.T, v *core.View) bool {
	t.Helper()
	x, err := core.Slice[float32](v)
	if err != nil {
		t.Fatal(err)
	}
	for i := range x {
		if x[i] != float32(i) {
			return false
		}
	}
	return true
}
