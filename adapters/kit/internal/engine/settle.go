package engine

import (
	"context"
	"errors"
	"slices"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/internal/calls"
	"github.com/ndbridge/ndbridge/internal/gpu/driver"
)

var errNotOfNumPy error = &core.Error{
	Kind: core.ErrConfig, Err: errors.New("NumPy has no arrays on a GPU"),
	Remedy: `annotate the parameter, or say whose array it becomes: hostplugin.As("torch"); As("python") is an object that speaks DLPack and ` +
		`the CUDA array interface`,
}

// gpus gives the devices on which arrays of a request are.
func (w *worker) gpus(r *calls.Request) (all []int) {
	for i := range r.Arrays {
		a := &r.Arrays[i]
		if a.Layout.Device().Kind != core.CUDA {
			continue
		}
		device, ok := a.Layout.Device().Index, false
		if s, err := w.segment(a.Segment); a.Lease == 0 && err == nil {
			device, ok = s.Device()
		} else if l := w.leasing.get(a.Lease); l != nil {
			device, ok = l.lease.Layout.Device().Index, true
		}
		if ok && !slices.Contains(all, device) {
			all = append(all, device)
		}
	}
	return all
}

// onGPUs is what a function has left to GPUs. The zero value is nothing.
type onGPUs struct {
	devices []int
	current driver.Context // of the thread that has run the function; 0: none
	err     error          // why it is not known
}

// left is called on the thread that has run a function with arrays on these GPUs.
func left(gpus []int) (o onGPUs) {
	if len(gpus) > 0 {
		o.devices = gpus
		o.current, o.err = driver.CtxCurrent()
	}
	return o
}

// settle waits until GPUs have done what a function has given them: the host orders nothing.
func (w *worker) settle(o onGPUs) error {
	if o.err != nil {
		return driver.Explain("call", "", o.err)
	}
	var err error
	for _, device := range o.devices {
		err = errors.Join(err, w.router.GPU.Idle(context.Background(), device, o.current))
	}
	return err
}

// settled has the answer wait until the GPUs are done. If there is nothing to show meanwhile, it waits itself: err says that the function
// has failed, and a target that the answer is a generator, whose values wait for themselves.
func (w *worker) settled(o onGPUs, a *calls.Answer, err error) error {
	switch {
	case len(o.devices) == 0:
	case err != nil || a.Target != 0:
		_ = w.settle(o)
	default:
		a.Rest = func() error { return w.settle(o) }
	}
	return err
}
