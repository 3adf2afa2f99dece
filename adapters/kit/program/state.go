package program

import (
	"context"
	"fmt"

	"github.com/ndbridge/ndbridge/core"
)

// Exited says that the script has ended by itself, with this status and the message that it gave
// instead of one, if any. After status 0 its arrays stay available; after any other nothing can be
// had from the program any more.
func (p *Program) Exited(status int, message string) {
	if status == 0 {
		p.state.End(nil)
		return
	}
	err := fmt.Errorf("the program exited with status %d", status)
	if message != "" {
		err = fmt.Errorf("%w: %s", err, message)
	}
	p.state.End(&core.Error{Op: "run", Kind: core.ErrUnavailable, Err: err})
}

// Failed says that the script has raised. Nothing can be had from the program any more.
func (p *Program) Failed(err *core.PythonError) {
	p.state.End(&core.Error{Op: "run", Kind: core.ErrPython, Err: err})
}

// Wait implements [contract.Waiter].
func (p *Program) Wait(ctx context.Context) error { return p.state.Wait(ctx) }
