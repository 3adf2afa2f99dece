package shm

import (
	"context"
	"os"

	"github.com/ndbridge/ndbridge/core/contract"
)

// Describer lends the descriptors of segments to whoever maps them: one method of [contract.Producer].
type Describer interface {
	Descriptor(ctx context.Context, id contract.SegmentID, writable bool) (*os.File, error)
}
