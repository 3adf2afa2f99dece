package handoff

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/ndbridge/ndbridge/core/contract"
)

const (
	// MaxName is the length of the longest name that a request can hold.
	MaxName = 1024
	// MaxIDs is how many leases one request can be about.
	MaxIDs = (MaxRequest - requestHead) / 8
)

// What a request asks for.
const (
	opLease   = 1 // of each of the names
	opRefresh = 2 // each of the leases
	opRelease = 3 // each of the leases
)

const (
	flagWritable = 1 << iota
	flagNoWait
	flagLook // do not copy again, and grant nothing
)

const requestHead = 8

// policies are the copy policies by their number in a request.
var policies = []contract.CopyPolicy{"", contract.CopyIfNeeded, contract.CopyNever}

// request is what a host asks for.
type request struct {
	op    byte
	req   contract.Request // opLease
	look  bool             // opRefresh
	names []string         // opLease
	ids   []contract.LeaseID
}

// head writes the beginning of a request about n items.
func head(b []byte, op byte, req contract.Request, look bool, n int) []byte {
	var flags byte
	if req.Writable {
		flags |= flagWritable
	}
	if req.NoWait {
		flags |= flagNoWait
	}
	if look {
		flags |= flagLook
	}
	return binary.LittleEndian.AppendUint32(append(b[:0], op, flags, byte(max(slices.Index(policies, req.Copy), 0)), 0), uint32(n))
}

// appendIDs writes the IDs of leases behind a request's head.
func appendIDs(b []byte, ids []contract.LeaseID) []byte {
	for _, id := range ids {
		b = binary.LittleEndian.AppendUint64(b, uint64(id))
	}
	return b
}

// appendName writes a name behind a request's head.
func appendName(b []byte, name string) []byte {
	return append(binary.LittleEndian.AppendUint16(b, uint16(len(name))), name...)
}

// parse reads a request from a side that is not trusted. The memory of r's lists is used again.
func (r *request) parse(b []byte) error {
	if len(b) < requestHead {
		return fmt.Errorf("a request of %d bytes", len(b))
	}
	flags, policy, n := b[1], int(b[2]), int(binary.LittleEndian.Uint32(b[4:]))
	if flags&^(flagWritable|flagNoWait|flagLook) != 0 || policy >= len(policies) || b[3] != 0 || n < 1 || n > len(b) {
		return fmt.Errorf("flags %#x, copy policy %d, %d items", flags, policy, n)
	}
	r.op, r.look = b[0], flags&flagLook != 0
	r.req = contract.Request{Writable: flags&flagWritable != 0, NoWait: flags&flagNoWait != 0, Copy: policies[policy]}
	r.names, r.ids = r.names[:0], r.ids[:0]
	b = b[requestHead:]
	switch r.op {
	case opLease:
		return r.parseNames(b, n)
	case opRefresh, opRelease:
		if len(b) != 8*n {
			return fmt.Errorf("%d leases in %d bytes", n, len(b))
		}
		for i := range n {
			r.ids = append(r.ids, contract.LeaseID(binary.LittleEndian.Uint64(b[8*i:])))
		}
		return nil
	default:
		return fmt.Errorf("operation %d", r.op)
	}
}

func (r *request) parseNames(b []byte, n int) error {
	for range n {
		if len(b) < 2 {
			return errors.New("a request that ends too early")
		}
		size := int(binary.LittleEndian.Uint16(b))
		if size == 0 || size > MaxName || len(b) < 2+size {
			return fmt.Errorf("a name of %d bytes", size)
		}
		r.names = append(r.names, string(b[2:2+size]))
		b = b[2+size:]
	}
	if len(b) != 0 {
		return fmt.Errorf("%d bytes too many", len(b))
	}
	return nil
}
