//go:build !linux

package running

import (
	"context"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/internal/fdpass"
)

// Askable says that no process can be asked.
func Askable(int) error { return &core.Error{Kind: core.ErrUnsupported} }

func bound(string) bool { return true }

func ask(context.Context, int, func(string) []byte) (*fdpass.Conn, error) {
	return nil, &core.Error{Kind: core.ErrUnsupported}
}
