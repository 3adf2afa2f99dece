package calls

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
)

// Op is what a request asks for.
type Op byte

// The operations.
const (
	OpFunc  Op = 1 // to find the function that Values name; the answer's Target is its number
	OpCall  Op = 2 // to call the function Target with Values, a tuple of arguments and a dict of keyword arguments
	OpNext  Op = 3 // the next value of the generator Target
	OpDrop  Op = 4 // to forget the function or the generator Target
	OpValue Op = 5 // the value that the name has; Values are the name
	OpSet   Op = 6 // to give a name a value; Values are the name and the value

	OpOffer  Op = 7 // to let the program call functions of the host's; Values are the list of their names
	OpAwait  Op = 8 // what the program calls next: Target is its number, Values its name, the arguments and the keyword arguments; Over: it has given up
	OpReturn Op = 9 // to give the call Target its result, which Values are
)

// Flags of requests.
const (
	FlagStream  byte = 1 << iota // of OpCall: the result is a generator, whose number is the answer's Target
	FlagNoWait                   // of OpFunc, OpValue: a name that is not there is not waited for
	flagOutside                  // the message goes on in the first array
	FlagFailed                   // of OpReturn: the call has failed, and Values are the text of the error
	FlagOut                      // of OpCall: the result, an array, is written into the last of the arrays
	FlagUsual                    // of OpFunc: the framework is that of arguments of which the function does not say it
)

// Argument is an array that a request carries.
type Argument struct {
	Segment  uint32           // of memory that the host has handed over; if Lease is 0
	Word     uint32           // counts the objects in the program that use the memory
	Lease    contract.LeaseID // of the program's own array
	ReadOnly bool
	Layout   core.Layout

	message []byte // of Layout, as it came
	held    *atomic.Uint32
}

// Held is the word itself, in the program that is called.
func (a *Argument) Held() *atomic.Uint32 { return a.held }

// Request is what a host asks for.
type Request struct {
	Op        Op
	Flags     byte
	Number    uint64 // of the call, by which it can be cancelled
	Target    uint64
	Framework string             // whose arrays the arguments become; "": as the function's annotations say
	Ended     []contract.LeaseID // that the host has no more use for; at most MaxEnded
	Arrays    []Argument
	Values    []byte

	// Early, if it is not nil, is called with the answer before it holds, if the program shows it: [Client.Call] calls it at most once, and
	// before it returns. If Call returns no error, the answer is that one.
	Early func(a Answer)

	// Over is called when nobody looks at the request any more: the program has answered, or never will. It may be nil.
	Over func()
}

const (
	requestHead  = 24
	argumentHead = 20
)

// Append writes a request behind b.
func (r *Request) Append(b []byte, c Codec) (_ []byte, err error) {
	if len(r.Framework) > 255 {
		return b, &core.Error{Kind: core.ErrConfig, Err: errors.New("the framework's name is too long")}
	}
	if len(r.Ended) > MaxEnded {
		return b, fmt.Errorf("%d leases that have ended, which is more than %d", len(r.Ended), MaxEnded)
	}
	if len(r.Arrays) > MaxArrays {
		return b, fmt.Errorf("%d arrays, which is more than %d", len(r.Arrays), MaxArrays)
	}
	b = append(b, byte(r.Op), r.Flags, byte(len(r.Framework)), byte(len(r.Ended)))
	b = binary.LittleEndian.AppendUint32(b, uint32(len(r.Arrays)))
	b = binary.LittleEndian.AppendUint64(b, r.Number)
	b = binary.LittleEndian.AppendUint64(b, r.Target)
	b = append(b, r.Framework...)
	for _, id := range r.Ended {
		b = binary.LittleEndian.AppendUint64(b, uint64(id))
	}
	for i := range r.Arrays {
		a, head := &r.Arrays[i], len(b)
		b = binary.LittleEndian.AppendUint64(b, uint64(a.Lease))
		b = binary.LittleEndian.AppendUint32(b, a.Segment)
		b = binary.LittleEndian.AppendUint32(b, a.Word)
		b = append(b, 0, 0, flag(a.ReadOnly), 0)
		if b, err = c.AppendLayout(b, a.Layout); err != nil {
			return b, err
		}
		binary.LittleEndian.PutUint16(b[head+16:], uint16(len(b)-head-argumentHead)) // at most 64 axes
	}
	return append(b, r.Values...), nil
}

// MaxEnded is how many leases a request may end.
const MaxEnded = 32

// MaxArrays is how many arrays a message may have.
const MaxArrays = 1 << 16

// errShort says that a message ends too early.
var errShort = errors.New("a message that ends too early")

// Parse reads a request from a side that is not trusted. Values aliases b. What is in the same place as in the request before, and has the
// same layout, is not read again.
func (r *Request) Parse(b []byte, c Codec) error {
	if len(b) < requestHead {
		return errShort
	}
	name, ended, n := int(b[2]), int(b[3]), binary.LittleEndian.Uint32(b[4:])
	r.Op, r.Flags = Op(b[0]), b[1]
	r.Number, r.Target = binary.LittleEndian.Uint64(b[8:]), binary.LittleEndian.Uint64(b[16:])
	if r.Op < OpFunc || r.Op > OpReturn || r.Flags&^(FlagStream|FlagNoWait|flagOutside|FlagFailed|FlagOut|FlagUsual) != 0 || ended > MaxEnded || n > MaxArrays || r.Number == 0 {
		return fmt.Errorf("operation %d with flags %#x, %d arrays and %d leases", r.Op, r.Flags, n, ended)
	}
	b = b[requestHead:]
	if len(b) < name+8*ended {
		return errShort
	}
	r.Framework, b = string(b[:name]), b[name:]
	r.Ended = r.Ended[:0]
	for range ended {
		r.Ended, b = append(r.Ended, contract.LeaseID(binary.LittleEndian.Uint64(b))), b[8:]
	}
	before := r.Arrays
	r.Arrays = r.Arrays[:0]
	for i := range int(n) {
		if len(b) < argumentHead {
			return errShort
		}
		a := Argument{
			Lease: contract.LeaseID(binary.LittleEndian.Uint64(b)), Segment: binary.LittleEndian.Uint32(b[8:]),
			Word: binary.LittleEndian.Uint32(b[12:]), ReadOnly: b[18] != 0,
		}
		if b[18] > 1 || b[19] != 0 {
			return fmt.Errorf("an array with flags %d and %d", b[18], b[19])
		}
		size := int(binary.LittleEndian.Uint16(b[16:]))
		if b = b[argumentHead:]; len(b) < size {
			return errShort
		}
		var known Argument
		if i < len(before) {
			known = before[i]
		}
		if a.Layout, a.message = known.Layout, known.message; a.message == nil || !bytes.Equal(a.message, b[:size]) {
			var err error
			if a.Layout, err = c.Layout(b[:size]); err != nil {
				return err
			}
			a.message = append(a.message[:0], b[:size]...)
		}
		if a.Segment >= MaxSegments || a.Word >= MaxSegments {
			return fmt.Errorf("segment %d, counted in word %d", a.Segment, a.Word)
		}
		r.Arrays, b = append(r.Arrays, a), b[size:]
	}
	r.Values = b
	return nil
}

// Kind says what an answer is.
type Kind byte

// The kinds of answers.
const (
	Done    Kind = 1 // Values are what was asked for
	Failed  Kind = 2 // Values are the error
	Over    Kind = 3 // the generator has no more
	outside Kind = 4 // the answer is too long: it is in the memory of the one lease
)

// Answer is what a program says to a request.
type Answer struct {
	Kind     Kind
	Retained uint32 // how many arrays of the request the program has kept
	Target   uint64
	Leases   []contract.Lease // on the arrays among the values
	Values   []byte

	// Rest, if it is not nil, waits for what else must be done before the host may use the answer, which is shown to it meanwhile. If it
	// fails, its error is the answer. Only the program has it.
	Rest func() error
}

const answerHead = 20

// Append writes an answer behind b.
func (a *Answer) Append(b []byte, c Codec) (_ []byte, err error) {
	b = append(b, byte(a.Kind), 0, 0, 0)
	b = binary.LittleEndian.AppendUint32(b, a.Retained)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(a.Leases)))
	b = binary.LittleEndian.AppendUint64(b, a.Target)
	for i := range a.Leases {
		head := len(b)
		b = append(b, 0, 0, 0, 0)
		if b, err = c.Append(b, &a.Leases[i]); err != nil {
			return b, err
		}
		binary.LittleEndian.PutUint32(b[head:], uint32(len(b)-head-4))
	}
	return append(b, a.Values...), nil
}

// Parse reads an answer from a side that is not trusted. Values aliases b. Leases are read, but not yet compared with
// what the host knows.
func (a *Answer) Parse(b []byte, c Codec) error {
	if len(b) < answerHead {
		return errShort
	}
	n := binary.LittleEndian.Uint32(b[8:])
	a.Kind, a.Retained, a.Target = Kind(b[0]), binary.LittleEndian.Uint32(b[4:]), binary.LittleEndian.Uint64(b[12:])
	if a.Kind < Done || a.Kind > outside || b[1]|b[2]|b[3] != 0 || n > MaxArrays {
		return fmt.Errorf("an answer of kind %d with %d leases", a.Kind, n)
	}
	a.Leases, b = a.Leases[:0], b[answerHead:]
	for range n {
		if len(b) < 4 {
			return errShort
		}
		size := binary.LittleEndian.Uint32(b)
		if b = b[4:]; uint64(len(b)) < uint64(size) {
			return errShort
		}
		l, err := c.Lease(b[:size], contract.Request{})
		if err != nil {
			return err
		}
		a.Leases, b = append(a.Leases, l), b[size:]
	}
	a.Values = b
	return nil
}

// granted gives the IDs of the leases in an answer that is not wanted.
func granted(b []byte, c Codec) (ids []contract.LeaseID) {
	if len(b) < answerHead {
		return nil
	}
	n := binary.LittleEndian.Uint32(b[8:])
	b = b[answerHead:]
	for range min(n, MaxArrays) {
		if len(b) < 4 || uint64(len(b)-4) < uint64(binary.LittleEndian.Uint32(b)) {
			return ids
		}
		size := binary.LittleEndian.Uint32(b)
		if id := c.ID(b[4:][:size]); id != 0 {
			ids = append(ids, id)
		}
		b = b[4+size:]
	}
	return ids
}

func flag(on bool) byte {
	if on {
		return 1
	}
	return 0
}
