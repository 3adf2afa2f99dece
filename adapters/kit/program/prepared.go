package program

import (
	"context"
	"errors"

	"github.com/ndbridge/ndbridge/adapters/kit/program/names"
	"github.com/ndbridge/ndbridge/adapters/kit/py"
	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/internal/handoff"
)

// errLong says that a lease takes longer than those who wait for a ring should.
var errLong = errors.New("this takes long")

var _ handoff.Preparer = (*Program)(nil)

// prepared is a name that is asked for through a ring. It enters Python on the thread of those who ask.
type prepared struct {
	program *Program
	path    names.Path
	err     error // why it is no name
}

// Prepare implements [handoff.Preparer]. There is one ring, and so one thread.
func (p *Program) Prepare(name string) handoff.Prepared {
	if p.thread == nil {
		p.thread = p.interp.Thread()
	}
	path, err := names.Parse(name)
	return &prepared{program: p, path: path, err: err}
}

// Lease implements [handoff.Prepared]. The errors are for nobody to read.
func (n *prepared) Lease(ctx context.Context, req core.Request) (lease core.Lease, err error) {
	p := n.program
	if n.err != nil {
		return core.Lease{}, n.err
	}
	if _, _, err := p.state.Watch(); err != nil {
		return core.Lease{}, err
	}
	err = p.thread.Do(func(g *py.GIL) error {
		p.board.WithdrawStale(g, &p.published) //nolint:contextcheck // what has ended, ends
		t, err := p.find(g, n.path)
		if err != nil {
			return err
		}
		defer t.Close()
		lease, err = p.grant(ctx, g, t, req, true)
		return err
	})
	return lease, err
}
