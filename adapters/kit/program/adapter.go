package program

import (
	"cmp"

	"github.com/ndbridge/ndbridge/adapters/kit/py"
	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
	"github.com/ndbridge/ndbridge/core/names"
)

// Adapter knows one framework: which objects are its own, and how to ask them for their memory. It
// holds decisions and a table of quirks, nothing else; what it decides is carried out here. It embeds
// a [Table], which has the first two methods.
//
// Its methods must not import anything, and may be called from several goroutines, though never
// from two at once, since each call holds the GIL.
type Adapter interface {
	// Framework is the framework's name, and that of its top module unless it is [Packaged].
	Framework() string
	// Quirks is the whole table, for all versions, in the order of the IDs' first appearance.
	Quirks() []contract.Quirk
	// Owns reports whether o is one of the framework's arrays, which its class tells. It is called only while the framework
	// is loaded.
	Owns(g *py.GIL, env *Env, o py.Object) (bool, error)
	// Plan says how to read an object that Owns has claimed.
	Plan(g *py.GIL, env *Env, o py.Object) (Plan, error)
}

// Recogniser is an [Adapter] that can recognise an array by a fingerprint.
type Recogniser interface {
	// Marks says by what an object that Owns has claimed is recognised. As long as its marks are the same, and
	// what a lease on it keeps is kept, another lease on it would be granted alike. ok is false if nothing
	// less than reading it anew does. It is called before Plan, so that what Plan finds is not older.
	Marks(g *py.GIL, env *Env, o py.Object) (marks py.Marks, ok bool, err error)
}

// Storer is an [Adapter] of a framework that gives arrays other memory while other threads have the GIL. What such an
// array says of its memory may then be half of what it was and half of what it will be, and the memory may go
// while it is read.
type Storer interface {
	// Storage gives what keeps the memory of an object that Owns has claimed, or of one that its plan led to. ok is
	// false if that cannot be told.
	Storage(g *py.GIL, env *Env, o py.Object) (s Storage, ok bool, err error)
}

// Storage is memory of arrays, and the object that keeps it.
type Storage struct {
	Object     py.Object
	Addr, Size uint64
}

// Keeper is an [Adapter] of a framework of which it is known whose memory its arrays lie in.
type Keeper interface {
	// Keeper gives the object that keeps the memory of o, which Owns has claimed, and that gives it back when it goes: o itself, if
	// the framework has asked malloc for it. ok is false if that is not known. It is called before memory becomes shared in place
	// that may be freed unseen.
	Keeper(g *py.GIL, env *Env, o py.Object) (keeper py.Object, ok bool, err error)
}

// Follower is an [Adapter] of a framework whose containers lead to arrays.
type Follower interface {
	// Follow says how an object leads to what a step of a name leads to, without running code of the
	// program's. ok is false if it is not a container of the framework's.
	Follow(g *py.GIL, env *Env, o py.Object, s names.Step) (step py.Step, ok bool, err error)
}

// Guard is an [Adapter] of a framework of which something cannot be read at all times.
type Guard interface {
	// Unready says why what a step of a name leads to from an object cannot be read now; "": it can, as far as the framework knows.
	Unready(g *py.GIL, env *Env, o py.Object, s names.Step) (why string, err error)
}

// Container is a [Follower] whose containers can be looked through.
type Container interface {
	Follower
	// Parts gives what an object leads to, by steps that Follow knows, without running code of the program's. ok is false
	// if it is not a container of the framework's.
	Parts(g *py.GIL, env *Env, o py.Object, yield func(s names.Step, part py.Object) bool) (ok bool, err error)
}

// Fronter is an [Adapter] of a framework whose arrays stand behind objects of other packages: behind the columns of a table.
type Fronter interface {
	// Behind says which array has the elements of an object, or of what the first steps of a name lead to from it, as many as it knows,
	// without running code of the program's. ok is false if there is none. An error says why what is there is no array.
	Behind(g *py.GIL, env *Env, o py.Object, rest []names.Step) (b Behind, ok bool, err error)
	// Columns gives the columns of a table, by steps that Behind knows; an error in place of one that is no array. ok is false if the
	// object is no table.
	Columns(g *py.GIL, env *Env, o py.Object, yield func(s names.Step, b Behind, err error) bool) (ok bool, err error)
}

// Behind is an array that stands behind an object, and the part of it that is meant.
type Behind struct {
	Array py.Object
	Steps []py.Step    // that lead to it
	Part  []names.Step // of the array; none: it is meant as a whole
	Used  int          // how many steps of the name were for this
}

// Packaged is an [Adapter] of a framework that lies in a package of another name: "nvidia.dali".
type Packaged interface {
	// Module is the full name of the framework's own module, which has its __version__.
	Module() string
}

// Versioned is an [Adapter] of a framework whose module has its version by another name than
// __version__.
type Versioned interface {
	// VersionName is the name of the module's attribute, a string: "VERSION_TEXT".
	VersionName() string
}

// Streamer is an [Adapter] of a framework that puts its work on a stream that is current.
type Streamer interface {
	// CurrentStream gives the stream to which the calling thread's work on o, which is on a GPU, goes
	// now: a CUstream, or 1 for the legacy default stream, or 2 for that of the thread. It is called on
	// the program's own thread, while that publishes o; later work does not concern the publication.
	// ok is false if the framework does not say: then all work of o's context is waited for.
	CurrentStream(g *py.GIL, env *Env, o py.Object) (stream uintptr, ok bool, err error)
}

// Importer is an [Adapter] of a framework that can make an array over memory of somebody else's.
type Importer interface {
	// Import makes the framework's array of a host array (an object that [py.GIL.NewHostArray] made) with this layout. The
	// array, and whatever the program makes of it, keeps the host array as long as it uses the memory. readOnly says that
	// to write to the memory ends the program. It is called only while the framework is loaded.
	Import(g *py.GIL, env *Env, exporter py.Object, l core.Layout, readOnly bool) (py.Object, error)
}

// Env is what an adapter is told about its framework in this program.
type Env struct {
	Module  py.Object // the framework's module; valid during the call
	Version string    // its version, as it says it

	// Quirks are those in force, with the effect that the user chose; "" is the usual one.
	Quirks map[core.QuirkID]string
}

// InForce reports whether a quirk is to be obeyed: its range holds the framework's version, and the
// user has not switched it off.
func (e *Env) InForce(id core.QuirkID) bool {
	_, ok := e.Quirks[id]
	return ok
}

// Effect gives which of a quirk's choices, the usual one first, is to be done, or "" if the quirk is not in force.
func (e *Env) Effect(id core.QuirkID, choices ...string) string {
	effect, ok := e.Quirks[id]
	if !ok {
		return ""
	}
	return cmp.Or(effect, choices[0])
}
