package program

import (
	"context"
	"errors"
	"slices"

	"github.com/ndbridge/ndbridge/adapters/kit/py"
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

// settle waits until GPUs have done what a function has given them: the host orders nothing.
func (w *worker) settle(ctx context.Context, g *py.GIL, gpus []int) (err error) {
	if len(gpus) == 0 {
		return nil
	}
	current, err := driver.CtxCurrent()
	if err != nil {
		return driver.Explain("call", "", err)
	}
	g.Unlocked(func() {
		for _, device := range gpus {
			err = errors.Join(err, w.router.GPU().Idle(ctx, device, current))
		}
	})
	return err
}
