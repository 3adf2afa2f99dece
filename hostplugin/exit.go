package hostplugin

import (
	"context"
	"syscall"

	"github.com/ndbridge/ndbridge/core"
)

// ExitStatus waits for the end of the program's process and gives its exit status as a shell does: 128
// and the number of the signal if one ended it. The signal is 0 if none did. A program whose script has
// ended well lives on until Close, for the sake of its arrays: see [Session.Wait].
func (s *Session) ExitStatus(ctx context.Context) (status int, signal syscall.Signal, err error) {
	select {
	case <-s.conn.Process.Exited():
		return s.conn.Process.Status(), s.conn.Process.Signal(), nil
	case <-ctx.Done():
		return 0, 0, &core.Error{Op: "wait", Program: s.launch.program.Name, Kind: ctx.Err(), Err: context.Cause(ctx)}
	}
}
