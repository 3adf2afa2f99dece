package wire

import (
	"testing"

	"github.com/ndbridge/ndbridge/core"
	pb "github.com/ndbridge/ndbridge/internal/gen/ndbridge/v1"
)

// TestNumbersThatGoThroughTheRing: there core's enumerations have protobuf's numbers.
func TestNumbersThatGoThroughTheRing(t *testing.T) {
	t.Parallel()
	sameNumbers(t, routes(), 0)
	sameNumbers(t, reasons(), 0)
	sameNumbers(t, copyPolicies(), 0)
	sameNumbers(t, deviceKinds(), 1)
}

func sameNumbers[C core.Route | core.Reason | core.CopyPolicy | core.DeviceKind,
	P pb.Route | pb.Reason | pb.CopyPolicy | pb.DeviceKind,
](t *testing.T, table []pair[C, P], moved int) {
	t.Helper()
	for _, p := range table {
		if int(p.core)+moved != int(p.wire) {
			t.Errorf("%T %v has the number %d, and in protobuf %d", p.core, p.core, p.core, p.wire)
		}
	}
}
