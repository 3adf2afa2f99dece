package shm

import (
	"context"
	"os"

	"github.com/ndbridge/ndbridge/core"
)

// Describer lends the descriptors of segments to whoever maps them: one method of [core.Producer].
type Describer interface {
	Descriptor(ctx context.Context, id core.SegmentID, writable bool) (*os.File, error)
}
