package wire_test

import (
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
	"github.com/ndbridge/ndbridge/core/coretest"
	"github.com/ndbridge/ndbridge/internal/fdpass"
	pb "github.com/ndbridge/ndbridge/internal/gen/ndbridge/v1"
	"github.com/ndbridge/ndbridge/internal/shm"
	"github.com/ndbridge/ndbridge/internal/wire"
	"github.com/ndbridge/ndbridge/internal/wire/wiretest"
)

// announced is what a server of ours says of a mailbox with one slot.
func announced(t *testing.T) *pb.Handoff {
	t.Helper()
	link := wiretest.Dial(t, coretest.NewProducer(t), wiretest.Options{Closed: true})
	resp, err := pb.NewProducerServiceClient(link.Conn).Open(t.Context(), &pb.OpenRequest{
		Settings: &pb.Settings{Handoff: &pb.HandoffSettings{Slots: 1}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return resp.GetCapabilities().GetHandoff()
}

// TestHostileMailboxes: a host maps no memory for requests that is not what it was said to be, nor any that could shrink
// under it.
func TestHostileMailboxes(t *testing.T) {
	t.Parallel()
	honest := announced(t)
	sealed := func(t *testing.T, size int64) *os.File {
		t.Helper()
		f, err := shm.Create("mailbox", size)
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	for name, c := range map[string]struct {
		say  func(*pb.Handoff)
		file func(t *testing.T) *os.File // nil: it is not asked for
		says string
	}{
		"no slots":        {func(h *pb.Handoff) { h.Slots = 0 }, nil, "a mailbox of 0 slots"},
		"many slots":      {func(h *pb.Handoff) { h.Slots = 65 }, nil, "a mailbox of 65 slots"},
		"countless slots": {func(h *pb.Handoff) { h.Slots = 1<<32 - 1 }, nil, "a mailbox of 65 slots"},
		"other slots":     {func(h *pb.Handoff) { h.Slots = 2 }, nil, "a mailbox of 2 slots"},
		"another size":    {func(h *pb.Handoff) { h.Size++ }, nil, "bytes"},
		"no size":         {func(h *pb.Handoff) { h.Size = 0 }, nil, "in 0 bytes"},
		"a size below 0":  {func(h *pb.Handoff) { h.Size = -h.GetSize() }, nil, "in -"},
		"memory that could shrink": {nil, func(t *testing.T) *os.File {
			t.Helper()
			f, err := os.Create(filepath.Join(t.TempDir(), "mailbox"))
			if err != nil {
				t.Fatal(err)
			}
			if err := f.Truncate(honest.GetSize()); err != nil {
				t.Fatal(err)
			}
			return f
		}, "not sealed"},
		"less memory":  {nil, func(t *testing.T) *os.File { t.Helper(); return sealed(t, 4096) }, "hand-off"},
		"other memory": {nil, func(t *testing.T) *os.File { t.Helper(); return sealed(t, honest.GetSize()) }, "hand-off"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			lie, ok := proto.Clone(honest).(*pb.Handoff)
			if !ok {
				t.Fatal("no clone")
			}
			if c.say != nil {
				c.say(lie)
			}
			file := c.file
			if file == nil {
				file = func(t *testing.T) *os.File { t.Helper(); return sealed(t, honest.GetSize()) }
			}
			f := file(t)
			defer f.Close()
			server := &scripted{handoff: lie, descriptor: func(side *fdpass.Conn, req *pb.DescriptorRequest) error {
				return side.Send(binary.LittleEndian.AppendUint64([]byte{'D'}, req.GetToken()), f)
			}}
			link := server.dial(t, wire.ClientOptions{Program: "camera"})
			h, err := link.Client.OpenHandoff(t.Context(), 0, func(contract.LeaseID) {})
			if h != nil || !errors.Is(err, core.ErrProtocol) && !errors.Is(err, core.ErrPointer) ||
				!strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), "camera") {
				t.Errorf("OpenHandoff = %v, %v; want a violation of the protocol with %q", h, err, c.says)
			}
		})
	}
}

// TestMailboxThatIsRefused: what the program's side says of its memory is what the host hears.
func TestMailboxThatIsRefused(t *testing.T) {
	t.Parallel()
	server := &scripted{handoff: announced(t), descriptor: func(*fdpass.Conn, *pb.DescriptorRequest) error {
		return status.Error(codes.Unavailable, "no descriptors are left")
	}}
	link := server.dial(t, wire.ClientOptions{})
	h, err := link.Client.OpenHandoff(t.Context(), 0, func(contract.LeaseID) {})
	if h != nil || !errors.Is(err, core.ErrUnavailable) || !strings.Contains(err.Error(), "no descriptors are left") {
		t.Errorf("OpenHandoff = %v, %v", h, err)
	}
}
