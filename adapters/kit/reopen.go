package kit

import (
	"os"

	"github.com/ndbridge/ndbridge/internal/shm"
)

// reopen makes a descriptor of its own to the file behind f; unlike a duplicate it can have other
// rights.
func reopen(f *os.File, writable bool) (*os.File, error) {
	if writable {
		return shm.ReadWrite(f)
	}
	return shm.ReadOnly(f)
}
