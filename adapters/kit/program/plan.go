package program

import (
	"errors"
	"slices"

	"github.com/ndbridge/ndbridge/adapters/kit/py"
	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
)

// Protocol is a way in which an object tells of its memory. Its text is that of contract.Quirk.Protocol.
type Protocol string

// The protocols.
const (
	Exchange       Protocol = "dlpack-exchange"      // __dlpack_c_exchange_api__: DLPack from C
	DLPack         Protocol = "dlpack"               // __dlpack__ and __dlpack_device__
	CUDAInterface  Protocol = "cuda-array-interface" // __cuda_array_interface__
	ArrayInterface Protocol = "array-interface"      // __array_interface__
	Buffer         Protocol = "buffer"               // the buffer protocol
)

// Plan says how an array is read out of an object. It is data: quirks edit it before it is carried
// out.
type Plan struct {
	// Protocols are tried in this order. One that the object lacks is passed over.
	Protocols []Protocol
	// AnyProtocol says that one protocol's refusal is not the end: the next one is tried, and the
	// error tells of all.
	AnyProtocol bool
	// Through holds methods that lead from the object to another one for the same memory, which is read
	// in its place: each is called on what the one before gave. Of an Attribute the value is taken.
	Through []MethodCall
	// Class, if it is not 0, is the class whose __dlpack__ and __array_interface__ are used, whatever a
	// class made from it makes of them.
	Class py.Object
	// DLPack is how __dlpack__ is called.
	DLPack DLPackCall
	// Sync is which work on a GPU is waited for where the configuration leaves it to the adapter.
	// "" is contract.SyncDevice, which is right for every framework. contract.SyncStream is for
	// those whose __dlpack__ knows the work that an array waits for, on whatever thread it is called:
	// a framework with a current stream for each thread orders that of the plugin's thread, which no
	// work of the program goes to.
	Sync contract.SyncPolicy
	// ReadOnly makes the array read-only, whatever the protocol says.
	ReadOnly bool
	// BufferLength says that of a buffer with one axis the length is right, and the extent may be an old one.
	BufferLength bool
	// DType, if it is valid, replaces the element type, which must have the same size. It is for types
	// that the protocol cannot name.
	DType core.DType
	// Tag, if it is not "", is what elements are said to be that are opaque.
	Tag string
	// Hold says that the framework may use the memory for something else while the object lives, or
	// once it does not, unless what the protocol handed out is held: so a lease holds it. Of memory on a GPU it does in any case.
	Hold bool
	// Fixed says that the memory behind the object cannot be replaced, in any way that a program would use: so
	// what was published of it stays what it is.
	Fixed bool
	// EndOnMain says that only the thread that made the object may end it, which for a program is its
	// main thread as a rule: what a lease held is given back there.
	EndOnMain bool
	// Doubted says that nothing is known of the object: it may make memory for each answer. So it is asked twice,
	// and if the answers differ, the array is Temporary.
	Doubted bool
	// Temporary says that the memory is not the object's own, but was made for the answer: it must
	// be copied.
	Temporary bool
	// Spare, if it is not nil, says that to hold an array on a GPU would disturb the program, unless it has published the
	// array.
	Spare *Spare
	// Gone, if it is not nil, is asked when reading has failed, and gives the error that says so if the array was given away
	// since the plan was made, by another thread.
	Gone func(g *py.GIL, o py.Object) error
	// Refuse, if it is not nil, is the answer, and nothing is tried. Its Kind and Err are set. In its
	// remedy "{array}" stands for the array's name.
	Refuse *core.Error

	// Applied are the quirks that have edited the plan.
	Applied []contract.Quirk
}

// Spare is how an array is had without being held.
type Spare struct {
	Copy     func(g *py.GIL, o py.Object) (py.Object, error) // that the framework makes; it is read in the array's place
	Describe func(g *py.GIL, o py.Object) (core.Layout, error)
	Reason   core.Reason // for the copy
}

// ErrGivenAway says that the program has let its framework use an array's memory for something else. Its name may lead
// to another array in a moment.
var ErrGivenAway = errors.New("the array was deleted, or donated to a function, and has no memory any more")

// MethodCall is a method and its arguments, or an attribute.
type MethodCall struct {
	Name      string
	Args      []py.Object
	Attribute bool // nothing is called
}

// DLPackCall holds the arguments of __dlpack__. Those that are nil are left out.
type DLPackCall struct {
	Stream     *int // for an array in host memory
	MaxVersion *[2]int
	Copy       *bool
	// Retry says that a TypeError is answered by a call without MaxVersion and Copy: so do consumers
	// that the array API standard describes.
	Retry bool
	// DeviceStream is the stream for an array on a GPU.
	DeviceStream DeviceStream
	// AskDevice says that __dlpack_device__ is called first even if nobody has initialised CUDA in the
	// program, so that an array on a device that is not supported is refused before its framework does
	// any work. Once CUDA is in use it is always asked, because the stream depends on it.
	AskDevice bool
	// UnsignedReadOnly says that an answer of the old kind, which cannot tell a read-only array from
	// others, is taken for read-only.
	UnsignedReadOnly bool
}

// DeviceStream is a way to call __dlpack__ of an array on a GPU.
type DeviceStream uint8

// The ways. The zero value is what DLPack says.
const (
	// DeviceStreamAsNeeded passes -1, which forbids the framework to synchronize, where everything in
	// the array's context is waited for anyway, and the plugin's stream where it is not.
	DeviceStreamAsNeeded DeviceStream = iota
	// DeviceStreamAlways passes the plugin's stream, for frameworks that refuse -1.
	DeviceStreamAlways
	// DeviceStreamNever leaves the argument out, for frameworks that take no stream, or take it and do
	// nothing with it. Then everything in the array's context is waited for, whatever is configured.
	DeviceStreamNever
)

// StandardPlan is what the standards tell a consumer to do that orders work on its own: no argument
// fits a framework's habits, for those are the quirks' business.
func StandardPlan() Plan {
	return Plan{
		Protocols: []Protocol{Exchange, DLPack, CUDAInterface, ArrayInterface, Buffer},
		DLPack: DLPackCall{
			Stream:     new(-1), // the producer must not synchronize
			MaxVersion: &[2]int{1, 3},
			Copy:       new(false),
		},
	}
}

// Without takes a protocol out of the plan.
func (p *Plan) Without(protocol Protocol) {
	p.Protocols = slices.DeleteFunc(slices.Clone(p.Protocols), func(q Protocol) bool { return q == protocol })
}
