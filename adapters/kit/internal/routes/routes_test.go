package routes

import (
	"bytes"
	"testing"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"github.com/ndbridge/ndbridge/adapters/kit"
	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/internal/shm/shmtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// anonymous is memory of no file, as a framework's small arrays have, with bytes that all differ
// from their neighbours.
func anonymous(t *testing.T, n int) ([]byte, uintptr) {
	t.Helper()
	b, at := shmtest.Map(t, nil, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE)
	shmtest.Fill(b)
	return b, at
}

func layout(t *testing.T, s core.LayoutSpec) core.Layout {
	t.Helper()
	l, err := core.NewLayout(s)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// elements reads the elements of an array in row-major order from memory whose first byte is b[0].
func elements(b []byte, l core.Layout) []byte {
	var out bytes.Buffer
	for offset := range l.Offsets() {
		out.Write(b[offset : offset+l.DType().Size()])
	}
	return out.Bytes()
}

// contents reads the file behind a backing, through a descriptor as a host gets it.
func contents(t *testing.T, b kit.Backing) []byte {
	t.Helper()
	f, err := b.Open(false)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	out := make([]byte, b.Size())
	if _, err := f.ReadAt(out, 0); err != nil {
		t.Fatal(err)
	}
	return out
}
