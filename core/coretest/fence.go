package coretest

import (
	"testing"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
)

// Fence returns what a view's memory waits for: that of its lease, or of its last refresh.
func Fence(tb testing.TB, v *core.View) contract.Fence {
	tb.Helper()
	m, _, release, err := v.Acquire()
	if err != nil {
		tb.Fatal(err)
	}
	defer release()
	if m, ok := m.(interface{ Fence() contract.Fence }); ok {
		return m.Fence()
	}
	return contract.Ready{}
}
