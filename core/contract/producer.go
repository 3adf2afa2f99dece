package contract

import (
	"context"
	"iter"
	"os"

	"github.com/ndbridge/ndbridge/core"
)

// Producer is the contract between the two sides. The side that has arrays implements it, and so does the client
// through which a host reaches a producer in another process.
//
// All methods are safe for concurrent use. When a method's context ends, the method reports that as the context's
// error.
type Producer interface {
	// Info describes the producer. It does not wait for anything.
	Info(ctx context.Context) (Info, error)

	// Arrays lists the arrays that have a name now, sorted by name. An array that could not be
	// leased is listed with its error in Entry.Err. The listing stops after the first error that
	// concerns the producer itself.
	Arrays(ctx context.Context) iter.Seq2[Entry, error]

	// Lease promises that the memory of one array stays valid until Release. It waits, under ctx,
	// for a name that does not exist yet while the producer may still make it.
	Lease(ctx context.Context, name string, req Request) (Lease, error)

	// Descriptor lends the file behind a segment that a standing lease names, in its handle or its
	// fence. The caller owns the file and may close it at once after mapping it. The file is open for
	// writing only if writable is true, which is refused with ErrReadOnly unless a standing lease on
	// that segment was granted as writable, or the segment is that of a fence. What stands for GPU
	// memory has no mode: the driver grants or refuses writing when it is mapped.
	Descriptor(ctx context.Context, id SegmentID, writable bool) (*os.File, error)

	// Release ends leases. Unknown or already released ones are ignored.
	Release(ctx context.Context, ids ...LeaseID) error
}

// Waiter is a [Producer] inside a running program.
type Waiter interface {
	// Wait returns when the program's script has ended: nil if it ended well (its arrays stay
	// available), an error that wraps ErrPython if it raised, and one that wraps ErrUnavailable if
	// the program went away.
	Wait(ctx context.Context) error
}

// Refresher is a [Producer] that knows whether the name of a lease still leads to the same memory.
type Refresher interface {
	// Refresh looks at the name of a standing lease again, as Lease does with the name and the request that
	// the lease was granted for. If the name still leads to the same memory, described in the same way, the
	// result is the same lease with a fence of now, and changed is false: nothing new is granted, and what
	// was copied has been copied again into the same memory. Otherwise the result is a new lease, changed is
	// true, and the old lease stands until it is released. The error for a lease that does not stand, or
	// that cannot be looked at again, wraps ErrUnsupported; after any error nothing new is leased.
	Refresh(ctx context.Context, id LeaseID) (l Lease, changed bool, err error)
}

// Renewer is a [Producer] whose memory a fork can take out of the host's sight.
type Renewer interface {
	// Renew sees to it that the host can see what is written to the memory of a standing lease, whatever its name means now. It
	// answers with the segment in which the memory lies now, and with where the element with index [0, ..., 0] is in it: the
	// host maps that over what it has mapped. Nothing else of the lease changes, and nothing new is granted. The error for a
	// lease that does not stand, or whose memory is of another kind, wraps ErrUnsupported; other errors say why the memory
	// cannot be seen any more.
	Renew(ctx context.Context, id LeaseID) (s Segment, offset int, err error)
}

// Renewal is one of the leases that a host asks a [Renewer] in another process about at once, and the answer.
type Renewal struct {
	Lease    LeaseID
	Has      SegmentID // whose file the host has for it
	Writable bool      // the file of another segment is to be open for writing, too

	Segment Segment  // as of Renew; none: the lease stands where it stood
	Offset  int      // likewise
	File    *os.File // of the segment, where that is another one: the host's to close
	Err     error    // as of Renew, or why the file did not come
}

// Searcher is a [Producer] that finds arrays by a pattern of names.
type Searcher interface {
	// Search finds the arrays whose names a pattern means, without running code of the program's. They are not those of one
	// moment. The error for what is no pattern wraps ErrConfig. A producer may find no numbers.
	Search(ctx context.Context, s Search) (Found, error)
}

// Search says what is searched for.
type Search struct {
	Pattern string // `model.*.weight`, `state["*"]`; "**" means everything that has a name
	Limit   int    // how many arrays are told of at most; 0: all, as far as that is bounded
	Numbers bool   // find Python's own numbers, too, at most Limit of them

	// Names asks for Python's own numbers of these names, and for nothing else. There is no pattern then. Each number has the name
	// by which it was asked for.
	Names []string
}

// Found is the answer to a [Search].
type Found struct {
	Entries   []Entry // in the order in which the program has them; an array that has several names is there once
	Numbers   []Number
	More      int  // how many other arrays and numbers there are
	Partial   bool // not all was looked through: there may be others yet
	Importing bool // the main thread imports a module: other names are likely to come
}

// Number is a number of Python's own: exactly an int of at most 64 bits, or exactly a float. It is a value of the moment in which it was found.
type Number struct {
	Name  string
	Whole bool    // it is an int
	Int   int64   // its value then
	Value float64 // its value, of an int the nearest float64; it may be NaN or infinite
}

// Type gives the name of the number's type in Python.
func (n Number) Type() string {
	if n.Whole {
		return "int"
	}
	return "float"
}

// Info describes a producer.
type Info struct {
	Program     string      // the program's name, as the host configured it
	Plugin      string      // the plugin's name and version: "all 0.1.0"
	Interpreter string      // "CPython 3.11.7 (/usr/bin/python3)", or "" if there is none
	PID         int         // process id of the producer
	SharedHeap  string      // "on", or why it is not
	Frameworks  []Framework // those that are loaded now, sorted by name
	Adapters    []string    // names of the adapters that the plugin holds
	Leases      int         // standing now
}

// Framework is one array framework inside a producer.
type Framework struct {
	Name    string  // "numpy"
	Version string  // "2.4.1"
	Quirks  []Quirk // those in force for that version
}

// Entry is one array of a listing.
type Entry struct {
	Name      string
	Framework string
	Published bool // offered by name with ndbridge.publish, rather than found among the globals
	Layout    core.Layout
	Err       error // why it cannot be leased, or nil

	// Of what was found by a search:
	Also   []string    // other names of the array
	Route  core.Route  // how its memory would be reached without a copy; "": it is copied, or on a GPU
	Reason core.Reason // why it would be copied, or ""
}

// CopyPolicy says whether memory that cannot be shared may be copied. The zero value leaves the choice to
// the producer's configuration, and means CopyIfNeeded if that does not choose either.
type CopyPolicy string

// The copy policies.
const (
	CopyIfNeeded CopyPolicy = "if-needed" // copy once; the lease says so, and why
	CopyNever    CopyPolicy = "never"     // refuse with core.ErrNotShared and the reason
)

// PromotePolicy says when memory that exists is moved into a file, in place, so that it can be shared. "" means as the program's
// environment says.
type PromotePolicy string

// The policies.
const (
	PromoteAlways PromotePolicy = "always" // even where a system call of the program could fail by it
	PromoteSafe   PromotePolicy = "safe"   // only where none can
	PromoteNever  PromotePolicy = "never"
)

// Request says how an array is wanted. The zero value asks for a read-only array, copied only if configured so.
type Request struct {
	Writable bool // the host wants to write; needs memory that is shared and an array that is writable
	Copy     CopyPolicy
	NoWait   bool // do not wait for a name that does not exist yet
	NoCode   bool // run no code of the program's to follow the name: an error that wraps ErrUnavailable, if that is needed
}
