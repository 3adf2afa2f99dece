package wire_test

import (
	"encoding/binary"
	"os"
	"testing"

	"github.com/ndbridge/ndbridge/internal/fdpass"
	"github.com/ndbridge/ndbridge/internal/wire"
)

// TestDeliver takes descriptors that were sent before the request that they belong to, and no more than a bound.
func TestDeliver(t *testing.T) {
	t.Parallel()
	const most = 256
	host, file, err := fdpass.Pair()
	if err != nil {
		t.Fatal(err)
	}
	defer host.Close()
	peer, err := fdpass.FromFile(file)
	if err != nil {
		t.Fatal(err)
	}
	defer peer.Close()
	server := wire.NewServer(newCallee(t).program(), peer)
	message := func(token uint64) []byte { return binary.LittleEndian.AppendUint64([]byte{'D'}, token) }
	null := func() *os.File {
		t.Helper()
		f, err := os.Open(os.DevNull)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.Close() }) // those that were taken are closed by then
		return f
	}
	for name, c := range map[string]struct {
		message []byte
		files   []*os.File
	}{
		"short": {message(1)[:5], []*os.File{null()}}, "long": {append(message(1), 0), []*os.File{null()}},
		"another kind": {append([]byte{'E'}, message(1)[1:]...), []*os.File{null()}},
		"none":         {message(1), nil}, "two": {message(1), []*os.File{null(), null()}},
	} {
		if server.Deliver(c.message, c.files) {
			t.Errorf("%s: it was taken", name)
		}
	}
	var taken []*os.File
	for token := range uint64(most) {
		f := null()
		if !server.Deliver(message(token), []*os.File{f}) {
			t.Fatalf("descriptor %d was not taken", token)
		}
		taken = append(taken, f)
	}
	if server.Deliver(message(3), []*os.File{null()}) || server.Deliver(message(most), []*os.File{null()}) {
		t.Error("a second one with its token, or one too many, was taken")
	}
	if err := server.Close(); err != nil {
		t.Fatal(err)
	}
	for i, f := range taken {
		if f.Close() == nil {
			t.Errorf("descriptor %d stayed open", i)
		}
	}
	if server.Deliver(message(99), []*os.File{null()}) {
		t.Error("a closed server took one")
	}
}
