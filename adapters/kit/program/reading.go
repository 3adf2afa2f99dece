package program

import (
	"errors"
	"fmt"
	"strings"

	"github.com/ndbridge/ndbridge/adapters/kit"
	"github.com/ndbridge/ndbridge/adapters/kit/py"
	"github.com/ndbridge/ndbridge/core"
)

// reading is what an object said about its memory.
type reading struct {
	array     kit.Array
	quirks    []core.QuirkID
	temporary bool // the memory was made for the answer
	hold      bool // a lease that shares the memory holds what is in holds
	holds     []hold
}

// hold is one thing that keeps memory as it is: an object, or a DLPack tensor.
type hold struct {
	object            py.Object
	deleter, argument uintptr
}

// drop gives the thing back. Python may run any code then.
func (h hold) drop(g *py.GIL) {
	if h.object != 0 {
		g.Drop(h.object)
	}
	if h.deleter != 0 {
		g.CallDeleter(h.deleter, h.argument)
	}
}

// drop gives back all that the reading still holds.
func (r *reading) drop(g *py.GIL) {
	holds := r.holds
	r.holds = nil
	for _, h := range holds {
		h.drop(g)
	}
}

// answer is what one protocol says, unchecked.
type answer struct {
	spec   core.LayoutSpec
	addr   uintptr // of the element with index [0, ..., 0]
	copied bool    // the framework says that it made a copy
	holds  []hold
}

// read carries out a plan. The caller drops the reading in the same scope, which also holds what the
// memory needs until then.
func read(g *py.GIL, o py.Object, plan *Plan) (*reading, error) {
	if plan.Refuse != nil {
		return nil, plan.Refuse
	}
	for _, step := range plan.Through {
		var err error
		if o, err = g.CallMethod(o, step.Name, step.Args, nil); err != nil {
			return nil, err
		}
	}
	var refusals []error
	for _, protocol := range plan.Protocols {
		a, ok, err := ask(g, o, protocol, plan)
		if err == nil && !ok {
			continue
		}
		if err == nil {
			r, err := plan.accept(a, protocol)
			if err == nil {
				return r, nil
			}
			for _, h := range a.holds {
				h.drop(g)
			}
			refusals = append(refusals, err)
		} else {
			refusals = append(refusals, err)
		}
		last := refusals[len(refusals)-1]
		if !plan.AnyProtocol || errors.Is(last, core.ErrDevice) {
			return nil, last
		}
	}
	if len(refusals) == 0 {
		return nil, &core.Error{
			Kind:   core.ErrUnsupported,
			Err:    fmt.Errorf("%s is not an array", g.TypeName(o)),
			Remedy: "name an array, or an object with DLPack, the array interface or the buffer protocol",
		}
	}
	return nil, allRefused(refusals)
}

// allRefused makes one error of several refusals, in the category of the first.
func allRefused(refusals []error) error {
	if len(refusals) == 1 {
		return refusals[0]
	}
	first := about("", "", "", refusals[0])
	e, _ := errors.AsType[*core.Error](first)
	all := *e
	all.Err = &refusedError{refusals}
	return &all
}

// refusedError tells of every refusal, but has the identity of the first only, since an error has
// one category.
type refusedError struct{ refusals []error }

func (e *refusedError) Error() string {
	var texts []string
	for _, r := range e.refusals {
		if inner, ok := errors.AsType[*core.Error](r); ok && inner.Err != nil {
			r = inner.Err
		}
		texts = append(texts, r.Error())
	}
	return strings.Join(texts, "; then ")
}

func (e *refusedError) Unwrap() error { return e.refusals[0] }

func ask(g *py.GIL, o py.Object, protocol Protocol, plan *Plan) (answer, bool, error) {
	switch protocol {
	case Exchange:
		return askExchange(g, o, plan)
	case DLPack:
		return askDLPack(g, o, plan)
	case CUDAInterface:
		return askCUDAInterface(g, o)
	case ArrayInterface:
		return askArrayInterface(g, o, plan)
	case Buffer:
		return askBuffer(g, o)
	default:
		return answer{}, false, fmt.Errorf("unknown protocol %q", protocol)
	}
}

// attribute gives o.name, or false if there is none.
func (p *Plan) attribute(g *py.GIL, o py.Object, name string) (py.Object, bool, error) {
	if p.Class != 0 {
		return g.AttrOf(p.Class, o, name)
	}
	return g.AttrOK(o, name)
}

// accept checks an answer, and changes it as the plan says.
func (p *Plan) accept(a answer, protocol Protocol) (*reading, error) {
	spec := a.spec
	spec.ReadOnly = spec.ReadOnly || p.ReadOnly
	if p.DType != core.Invalid {
		if p.DType.Size() != spec.DType.Size() {
			return nil, &core.Error{Kind: core.ErrDType, Err: fmt.Errorf(
				"%v has %d bytes, the %s says %d", p.DType, p.DType.Size(), protocol, spec.DType.Size(),
			)}
		}
		spec.DType, spec.Tag = p.DType, ""
	}
	if p.Tag != "" && spec.DType.Opaque() {
		spec.Tag = p.Tag
	}
	l, err := core.NewLayout(spec)
	if err != nil {
		return nil, err
	}
	return &reading{
		array:     kit.Array{Addr: a.addr, Layout: l},
		quirks:    p.tookPart(protocol),
		temporary: a.copied || p.Temporary,
		hold:      p.Hold,
		holds:     a.holds,
	}, nil
}
