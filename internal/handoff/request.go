package handoff

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/ndbridge/ndbridge/core"
)

const (
	// MaxName is the length of the longest name that a request can hold.
	MaxName = 1024
	// MaxReleases is how many leases one request can end.
	MaxReleases = 256
)

// What a request asks for.
const (
	opLease   = 1
	opRelease = 2
)

const (
	flagWritable = 1 << iota
	flagNoWait
)

const requestHead = 0x10

// request is what a host asks for: a lease, and the end of others.
type request struct {
	op       byte
	req      core.Request
	source   uint32 // a number for the name, for later requests, or that of an earlier one; 0: none
	known    uint32 // the number of the description that the host has of the source, for the same request; 0: none
	name     []byte // empty if an earlier request has said it
	releases []core.LeaseID
}

// appendRequest writes a request, whose name and releases are not too many, behind b.
func appendRequest(b []byte, r *request) []byte {
	var flags byte
	if r.req.Writable {
		flags |= flagWritable
	}
	if r.req.NoWait {
		flags |= flagNoWait
	}
	b = append(b, r.op, flags, byte(r.req.Copy), 0)
	b = binary.LittleEndian.AppendUint32(b, r.source)
	b = binary.LittleEndian.AppendUint16(b, uint16(len(r.releases)))
	b = binary.LittleEndian.AppendUint16(b, uint16(len(r.name)))
	b = binary.LittleEndian.AppendUint32(b, r.known)
	for _, id := range r.releases {
		b = binary.LittleEndian.AppendUint64(b, uint64(id))
	}
	return append(b, r.name...)
}

// parse reads what appendRequest writes, from a side that is not trusted. The name stays in b, and the
// memory of r's releases is used again.
func (r *request) parse(b []byte) error {
	if len(b) < requestHead {
		return fmt.Errorf("a request of %d bytes", len(b))
	}
	releases, name := binary.LittleEndian.Uint16(b[0x08:]), binary.LittleEndian.Uint16(b[0x0a:])
	switch op, flags, policy := b[0], b[1], core.CopyPolicy(b[2]); {
	case op != opLease && op != opRelease:
		return fmt.Errorf("operation %d", op)
	case flags&^(flagWritable|flagNoWait) != 0 || b[3] != 0:
		return fmt.Errorf("flags %#x, %#x", flags, b[3])
	case policy > core.CopyNever:
		return fmt.Errorf("copy policy %d", policy)
	case releases > MaxReleases || name > MaxName || len(b) != requestHead+8*int(releases)+int(name):
		return fmt.Errorf("%d releases and a name of %d bytes in %d bytes", releases, name, len(b))
	}
	r.op = b[0]
	r.req = core.Request{Writable: b[1]&flagWritable != 0, NoWait: b[1]&flagNoWait != 0, Copy: core.CopyPolicy(b[2])}
	r.source, r.known = binary.LittleEndian.Uint32(b[0x04:]), binary.LittleEndian.Uint32(b[0x0c:])
	r.releases = r.releases[:0]
	for i := range int(releases) {
		r.releases = append(r.releases, core.LeaseID(binary.LittleEndian.Uint64(b[requestHead+8*i:])))
	}
	r.name = b[requestHead+8*int(releases):]
	if r.op == opLease && r.source == 0 && len(r.name) == 0 {
		return errors.New("a lease of what has neither a name nor a number")
	}
	return nil
}
