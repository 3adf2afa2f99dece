package engine

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ndbridge/ndbridge/adapters/kit/internal/holds"
	"github.com/ndbridge/ndbridge/adapters/kit/internal/routes"
	"github.com/ndbridge/ndbridge/adapters/kit/program"
	"github.com/ndbridge/ndbridge/adapters/kit/py"
	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
	"github.com/ndbridge/ndbridge/internal/gpu"
	"github.com/ndbridge/ndbridge/internal/gpu/export"
)

// reading is what an object said about its memory.
type reading struct {
	array     routes.Located
	full      routes.Array // of which array is a part, or all
	order     routes.Order // if the CUDA driver knows the memory
	sync      contract.SyncPolicy
	quirks    []core.QuirkID
	temporary bool        // the memory was made for the answer
	spared    core.Reason // why it is a copy that the framework made for the lease; "" if it is none
	hold      bool        // a lease that shares the memory holds what is in holds
	holds     []holds.Hold

	still func() (bool, error) // whether the array has the same memory yet; nil: it has as long as the GIL is held
}

// takeOrder gives the order to who takes its queue over.
func (r *reading) takeOrder() routes.Order {
	order := r.order
	r.order.Queue = nil
	return order
}

// drop gives back all that the reading still holds.
func (r *reading) drop(g *py.GIL) {
	if q := r.takeOrder().Queue; q != nil {
		q.Close()
	}
	held := r.holds
	r.holds = nil
	for _, h := range held {
		h.Drop(g)
	}
}

// answer is what one protocol says, unchecked.
type answer struct {
	spec        core.LayoutSpec
	addr        uintptr     // of the element with index [0, ..., 0]
	deviceKnown bool        // the protocol says which GPU it is
	stream      uintptr     // on which the array is made: a CUstream; 0 if the protocol names none
	ordered     bool        // the reader's queue waits for what the array needs
	copied      bool        // the framework says that it made a copy
	spared      core.Reason // why the framework was made to copy the array; "" if it was not
	buffer      *py.Buffer  // that it is from, which must be as long as the elements; nil: it is from none
	holds       []holds.Hold
}

// reader carries out a plan.
type reader struct {
	*program.Plan
	router *routes.Router
	sync   contract.SyncPolicy // SyncDevice or SyncStream
	mark   *export.Mark        // what was published with the array; nil: the policy holds
	look   bool                // the memory is not going to be touched

	published bool          // the program has published the array
	queue     *export.Queue // that the framework was given; nil: none

	storage func(g *py.GIL, o py.Object) (program.Storage, bool, error) // nil: the memory stays while the GIL is held

	hopeless bool // the array is on a GPU, and nothing there can be had: no protocol will do better
}

// asksFramework says whether it is the framework that is to order the work on an array on a GPU.
func (r *reader) asksFramework() bool {
	return r.sync == contract.SyncStream && r.mark == nil && !r.look
}

// read carries out a plan. The caller drops the reading in the same scope, which also holds what the
// memory needs until then.
func (r *reader) read(g *py.GIL, o py.Object) (*reading, error) {
	plan := r.Plan
	if plan.Refuse != nil {
		return nil, plan.Refuse
	}
	if plan.Spare != nil && r.look && !r.published {
		l, err := plan.Spare.Describe(g, o)
		if err != nil {
			return nil, err
		}
		return &reading{array: routes.Located{Array: routes.Array{Layout: l}}}, nil
	}
	for _, step := range plan.Through {
		var err error
		if o, err = stepThrough(g, o, step); err != nil {
			return nil, err
		}
	}
	var refusals []error
	for _, protocol := range r.protocols() {
		result, ok, err := r.settled(g, o, protocol)
		if err == nil && !ok {
			continue
		}
		if err == nil {
			return result, nil
		}
		if plan.Gone != nil {
			if gone := plan.Gone(g, o); gone != nil {
				return nil, gone
			}
		}
		refusals = append(refusals, err)
		if !plan.AnyProtocol || errors.Is(err, core.ErrDevice) || r.hopeless {
			return nil, err
		}
	}
	if len(refusals) == 0 {
		return nil, &core.Error{Kind: core.ErrUnsupported, Err: noArrayError(g.TypeName(o)), Remedy: anyArray}
	}
	return nil, refused(refusals)
}

// protocols gives those of the plan. DLPack from C orders nothing.
func (r *reader) protocols() []program.Protocol {
	if !r.asksFramework() || len(r.Protocols) < 2 || gpu.InUse() != nil {
		return r.Protocols
	}
	return slices.DeleteFunc(slices.Clone(r.Protocols), func(p program.Protocol) bool { return p == program.Exchange })
}

// settled is try, again if the array is just being given other memory.
func (r *reader) settled(g *py.GIL, o py.Object, protocol program.Protocol) (result *reading, ok bool, err error) {
	const attempts, pause = 30, 300 * time.Microsecond
	for i := range attempts {
		result, ok, err = r.try(g, o, protocol)
		if r.storage == nil || result == nil || result.temporary || result.array.Layout.Len() == 0 {
			return result, ok, err
		}
		s, known, err := r.storage(g, o)
		if err != nil {
			result.drop(g)
			return nil, true, err
		}
		if !known {
			return result, true, nil
		}
		result.still = func() (bool, error) {
			s, _, err := r.storage(g, o)
			return result.array.Inside(s.Addr, s.Size), err
		}
		if result.array.Inside(s.Addr, s.Size) { // so it has this memory now, and the scope keeps that
			if result.hold { // only that: the program may look at how many references there are to the array
				for _, h := range result.holds {
					h.Drop(g)
				}
				result.holds = []holds.Hold{{Object: g.Keep(s.Object), OnMain: r.EndOnMain}}
			}
			return result, true, nil
		}
		result.drop(g)
		if i > 0 { // the thread may be waiting for the GIL, to end what was there before
			g.Unlocked(func() { <-time.After(pause) })
		}
	}
	return nil, true, errMoving
}

// errMoving says that a thread of the program was in the middle of a change all the time.
var errMoving = &core.Error{
	Kind: core.ErrPointer, Err: errors.New("a thread of the program is giving the array other memory"), Remedy: "look again",
}

// try asks by one protocol, and gives everything back if the answer is not accepted.
func (r *reader) try(g *py.GIL, o py.Object, protocol program.Protocol) (result *reading, ok bool, err error) {
	a, ok, err := r.ask(g, o, protocol)
	if err == nil && ok {
		result, err = r.accept(a, protocol)
	}
	if result != nil && r.Doubted && !result.array.OnGPU {
		return r.askAgain(g, o, protocol, result)
	}
	if result == nil {
		for _, h := range a.holds {
			h.Drop(g)
		}
		if r.queue != nil {
			r.queue.Close()
			r.queue = nil
		}
	}
	return result, ok, err
}

// askAgain asks a second time, while what the first answer holds is alive: if the memory is that of the answer,
// the second one has other memory. That is the one which is taken: the object may have kept what it made last.
func (r *reader) askAgain(g *py.GIL, o py.Object, protocol program.Protocol, first *reading) (*reading, bool, error) {
	a, ok, err := r.ask(g, o, protocol)
	var second *reading
	if err == nil && ok {
		second, err = r.accept(a, protocol)
	}
	if second == nil {
		for _, h := range a.holds {
			h.Drop(g)
		}
		first.drop(g)
		return nil, ok, err
	}
	second.temporary = second.temporary || second.array.Addr != first.array.Addr
	first.drop(g)
	return second, true, nil
}

func (r *reader) ask(g *py.GIL, o py.Object, protocol program.Protocol) (answer, bool, error) {
	switch protocol {
	case program.Exchange:
		return askExchange(g, o, r.Plan)
	case program.DLPack:
		return r.askDLPack(g, o)
	case program.CUDAInterface:
		return r.askCUDAInterface(g, o)
	case program.ArrayInterface:
		return askArrayInterface(g, o, r.Plan)
	case program.Buffer:
		return askBuffer(g, o, r.Plan)
	default:
		return answer{}, false, fmt.Errorf("unknown protocol %q", protocol)
	}
}

// attributeOf gives o.name as a plan has it looked up, or false if there is none.
func attributeOf(g *py.GIL, p *program.Plan, o py.Object, name string) (py.Object, bool, error) {
	if p.Class != 0 {
		return g.AttrOf(p.Class, o, name)
	}
	return g.AttrOK(o, name)
}

// accept checks an answer, and changes it as the plan says.
func (r *reader) accept(a answer, protocol program.Protocol) (*reading, error) {
	spec := a.spec
	spec.ReadOnly = spec.ReadOnly || r.ReadOnly
	if r.DType != core.Invalid {
		if r.DType.Size() != spec.DType.Size() {
			return nil, &core.Error{Kind: core.ErrDType, Err: fmt.Errorf(
				"%v has %d bytes, the %s says %d", r.DType, r.DType.Size(), protocol, spec.DType.Size(),
			)}
		}
		spec.DType, spec.Tag = r.DType, ""
	}
	if r.Tag != "" && spec.DType.Opaque() {
		spec.Tag = r.Tag
	}
	l, err := core.NewLayout(spec)
	if err != nil {
		return nil, err
	}
	if b := a.buffer; b != nil && l.NBytes() > int64(b.Len) {
		return nil, &core.Error{Kind: core.ErrProtocol, Err: fmt.Errorf(
			"the buffer says that it has %d bytes, and %d elements of %d", b.Len, l.Len(), b.ItemSize,
		)}
	}
	located, err := r.router.Inspect(routes.Array{Addr: a.addr, Layout: l}, a.deviceKnown)
	if err != nil {
		return nil, err
	}
	result := &reading{
		array:     located,
		sync:      r.sync,
		quirks:    tookPart(r.Plan, protocol),
		temporary: a.copied || r.Temporary,
		spared:    a.spared,
		hold:      r.Hold || located.OnGPU, // no heap of ours keeps that memory
		holds:     a.holds,
	}
	result.order = routes.Order{Mark: r.mark, Queue: r.queue}
	if r.asksFramework() {
		result.order.Stream, result.order.Framework = a.stream, a.ordered
	}
	r.queue = nil
	return result, nil
}

// tookPart gives the quirks that mattered to a reading by this protocol: those that led to it, and
// those that concern it, or all protocols.
func tookPart(p *program.Plan, used program.Protocol) []core.QuirkID {
	var ids []core.QuirkID
	for _, q := range p.Applied {
		if q.Effect == contract.EffectReroute || q.Protocol == "" || q.Protocol == string(used) {
			ids = append(ids, q.ID)
		}
	}
	return ids
}

// stepThrough gives what a step of a plan leads to from o.
func stepThrough(g *py.GIL, o py.Object, c program.MethodCall) (py.Object, error) {
	if c.Attribute {
		return g.Attr(o, c.Name)
	}
	return g.CallMethod(o, c.Name, c.Args, nil)
}
