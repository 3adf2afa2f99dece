package torch

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"math/bits"

	"github.com/ndbridge/ndbridge/adapters/kit/program"
	"github.com/ndbridge/ndbridge/adapters/kit/py"
	"github.com/ndbridge/ndbridge/core/dlpack"
)

const (
	word       = 8
	objectSize = 4 * word  // the least that the C struct of a tensor's object takes
	implSize   = 22 * word // the least that the C++ object takes to which that leads
)

// keySet finds where o's C++ object has the set of dispatch keys, which tells of lazy conjugates and negatives: to ask for
// these by Python takes longer than all the rest, and gives the GIL back. PyTorch does not say where the set is, so the bit
// of negatives is switched in a tensor made for it, and all else of that must stay as it was. The zero value says that this
// was not so.
func (a *adapter) keySet(g *py.GIL, env *program.Env, class, o py.Object) py.BehindMark {
	found := a.keys.Load()
	if found == nil {
		found = new(py.BehindMark)
		if err := g.Nested(func() error { return switchNegative(g, env, class, o, found) }); err != nil {
			found.Word = 0
		}
		a.keys.Store(found)
	}
	impl, err := implOf(g, class, o)
	object, errObject := dlpack.Live()(uintptr(o), objectSize)
	if found.Word == 0 || err != nil || errObject != nil {
		return py.BehindMark{}
	}
	for at := 2 * word; at < objectSize; at += word { // behind the header
		if uintptr(binary.NativeEndian.Uint64(object[at:])) == impl {
			return py.BehindMark{Pointer: uint32(at), Word: found.Word}
		}
	}
	return py.BehindMark{}
}

// switchNegative finds the only word that is another one in the C++ object of a negative. All that it calls is in C.
func switchNegative(g *py.GIL, env *program.Env, class, o py.Object, found *py.BehindMark) error {
	internals, err := g.Attr(env.Module, "_C")
	if err != nil {
		return err
	}
	set, err := g.Attr(internals, "_set_neg")
	if err != nil {
		return err
	}
	t, ok, err := g.AttrOf(class, o, "data") // another tensor over the same memory
	if !ok || err != nil {
		return err
	}
	impl, err := implOf(g, class, t)
	if err != nil {
		return err
	}
	memory, err := dlpack.Live()(impl, implSize)
	if err != nil {
		return err
	}
	var states [3][]byte
	for i, value := range []py.Object{g.False(), g.True(), g.False()} {
		if _, err := g.CallC(set, t, value); err != nil {
			return err
		}
		states[i] = bytes.Clone(memory)
	}
	changed := 0
	for at := 0; at < implSize; at += word {
		off, on := binary.NativeEndian.Uint64(states[0][at:]), binary.NativeEndian.Uint64(states[1][at:])
		changed += bits.OnesCount64(off ^ on)
		if off != on {
			found.Word = uint32(at)
		}
	}
	if changed != 1 || !bytes.Equal(states[0], states[2]) {
		found.Word = 0
	}
	return nil
}

// implOf gives the address of a tensor's C++ object.
func implOf(g *py.GIL, class, o py.Object) (uintptr, error) {
	n, ok, err := g.AttrOf(class, o, "_cdata")
	if !ok || err != nil {
		return 0, cmp.Or(err, errNoImpl)
	}
	addr, err := g.Uint64(n)
	return uintptr(addr), err
}

var errNoImpl = errors.New("the tensor does not say where its C++ object is")
