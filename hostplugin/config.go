package hostplugin

import (
	"cmp"
	"io"
	"iter"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
	"github.com/ndbridge/ndbridge/internal/calls"
	"github.com/ndbridge/ndbridge/internal/handoff"
)

// Config says which programs a host can start and how arrays of each framework are treated. It is
// plain data, but for the logger and the writers: read it from a file with [Load], or write it in Go. The zero value
// of every field means its default.
type Config struct {
	Adapters []Adapter // how each framework's arrays are treated; those not named keep their defaults
	Programs []Program // in the order of the file

	// What no file says.

	// LibDirs are the directories in which the host looks for plugins given by name before it looks in $NDBRIDGE_LIB, in
	// "lib" beside its own executable, and in "../lib/ndbridge" from there. If none has the plugin "all", the host unpacks the
	// one that its executable embeds into the user's cache directory.
	LibDirs []string
	// Logger gets the host's log records: the lines that programs print (at info level, with the attributes "program" and
	// "stream"), what their plugins log, and the host's own records. nil means [slog.Default].
	//
	// A handler that stands still for more than a second loses lines of output rather than stop the program that prints
	// them; the log says how many.
	Logger *slog.Logger `json:"-"`
}

// Adapter holds the settings of one framework's adapter, for every program of the host.
type Adapter struct {
	Name   string              // the framework: "numpy"
	Copy   contract.CopyPolicy // what a request that does not say gets; CopyDefault means CopyIfNeeded
	Sync   contract.SyncPolicy // which work on a GPU is waited for; SyncDefault leaves it to the adapter
	Quirks []QuirkSetting      // only those whose setting differs from the adapter's own table
}

// QuirkSetting changes one quirk.
type QuirkSetting struct {
	ID       core.QuirkID // with the adapter's name before the dot: "numpy.object-dtype"
	Disabled bool         // the framework is taken at its word
	Effect   string       // of a quirk that has a choice, as "ndbridge quirks" shows: what it does; "" is the usual
}

// Program is one program that a host can start. With Script or Module it is a Python program, run
// by the user's own interpreter; with neither, Plugin is an ordinary executable that serves arrays
// by itself.
//
// Paths in a Config written in Go are relative to the working directory when [New] is called;
// those of a file were made absolute by [Load], relative to the file.
type Program struct {
	Name   string            // letters, digits, '_', '-' and '.'; unique within the Config
	Python string            // the interpreter: a path, or a name looked up on PATH; "" means "python3"
	Script string            // the file to run, as "python script.py" would
	Module string            // the module to run, as "python -m module" would
	Args   []string          // the arguments after it: sys.argv[1:]
	Env    map[string]string // set on top of the host's own environment
	Dir    string            // the working directory; "" means the host's

	Plugin   string // a shipped plugin by name, or a path if it has a '/'; "" means "all"
	Checksum string // "sha256:" and 64 hexadecimal digits of the plugin file; "" is not checked

	SharedHeap HeapOptions // Python programs only

	// CopyMappedFiles copies arrays in files that the program has mapped, as numpy.memmap does, with
	// contract.ReasonMappedFile. The host then maps only memory that cannot shrink, whatever the program says. Without
	// it, the host maps such a file. If somebody truncates it while a view of it is open, reading what was cut off ends the
	// host; [core.Copy], [core.CopyBytes], [core.At] and [core.Set] give an error instead.
	CopyMappedFiles bool

	Handoff HandoffOptions // how the host asks for views

	// Workers is how many calls of the program's functions may run at once, 1 to 64; 0 means 16. Each is a thread of the
	// program's process, made when it is first needed. Without shared memory ([HandoffOptions].Off) there are no calls.
	Workers int

	// Arguments says whose arrays the host's become, as arguments of functions that do not say it, and in [Session.Set], where [As] does
	// not: "numpy", which "" means, "torch", "jax" or "cupy", or "python" for objects of no framework.
	Arguments string

	// OnStuck says what becomes of a function that still runs though its call was given up: "wait", which "" means, leaves it its
	// worker until it returns; "end" ends the program, or the session if the host has attached to the program, when StuckTimeout has
	// passed, as Close does. Calls that were given up wait for that.
	OnStuck      string
	StuckTimeout time.Duration // 0 means 5 s

	StartTimeout time.Duration // from the start until the plugin answers; 0 means 60 s
	StopTimeout  time.Duration // from the end of the session until what still runs is killed; 0 means 5 s

	// Stdout and Stderr get what the program prints, byte by byte, instead of the log; a nil writer leaves that stream
	// to [Config.Logger]. The writers are used from several goroutines if several programs have them, and one that blocks in Write
	// will in time block the program, as a full pipe would.
	Stdout, Stderr io.Writer `json:"-"`
}

// HeapOptions configures the shared heap of a Python program: the memory, visible to the host, from which the array
// libraries of the program allocate. The zero value is a shared heap with the defaults below.
type HeapOptions struct {
	Off       bool     // no shared heap: arrays in the program's own memory are copied
	Threshold int64    // bytes from which an allocation is shared, 4 KiB to 1 TiB; 0 means 64 KiB
	Promote   string   // when arrays that lived through a fork, or lie outside the heap, become shared: "safe", which "" means, "always" or "never"
	Libraries []string // parts of file names of libraries whose allocations are shared, besides those of the known frameworks
}

// HandoffOptions configures how the host asks for views. The zero value is shared memory with the defaults below.
type HandoffOptions struct {
	Off   bool          // the host asks by gRPC: slower, and without Source.Latest, Source.Next and Group.Next
	Spin  time.Duration // how long each side looks for the other's word before it sleeps, at most 10 ms; 0 means 50 µs, and less than 0 that they sleep at once. For a call with arrays on a GPU the host looks 500 µs at least
	Slots int           // how many views the host may ask for at once, 1 to 64; 0 means 8
}

// onStuckEnd is the choice of [Program.OnStuck] that ends the program.
const onStuckEnd = "end"

const (
	defaultPython       = "python3"
	defaultStartTimeout = 60 * time.Second
	defaultStopTimeout  = 5 * time.Second

	defaultHandoffSpin  = 50 * time.Microsecond
	defaultHandoffSlots = 8
	maxHandoffSpin      = 10 * time.Millisecond

	defaultWorkers      = 16
	defaultStuckTimeout = 5 * time.Second

	minHeapThreshold = 4 << 10
	maxHeapThreshold = 1 << 40
)

// python reports whether p is run by an interpreter.
func (p Program) python() bool { return p.Script != "" || p.Module != "" }

func (p Program) plugin() string { return cmp.Or(p.Plugin, defaultPlugin) }

func (p Program) startTimeout() time.Duration { return cmp.Or(p.StartTimeout, defaultStartTimeout) }

func (p Program) stopTimeout() time.Duration { return cmp.Or(p.StopTimeout, defaultStopTimeout) }

// handoff gives the settings of the mailbox.
func (p Program) handoff() handoff.Settings {
	if p.Handoff.Off {
		return handoff.Settings{}
	}
	return handoff.Settings{
		Slots: cmp.Or(p.Handoff.Slots, defaultHandoffSlots),
		Spin:  max(0, cmp.Or(p.Handoff.Spin, defaultHandoffSpin)), // less than 0: not at all
	}
}

// patience is how long a function may run on whose call was given up; 0: as long as it likes.
func (p Program) patience() time.Duration {
	if p.OnStuck != onStuckEnd {
		return 0
	}
	return cmp.Or(p.StuckTimeout, defaultStuckTimeout)
}

// calls gives the settings of calls.
func (p Program) calls() calls.Settings {
	if p.Handoff.Off {
		return calls.Settings{}
	}
	return calls.Settings{Workers: cmp.Or(p.Workers, defaultWorkers), Lanes: calls.MaxLanes, Spin: p.handoff().Spin}
}

// names lists the programs' names in order.
func (c Config) names() iter.Seq[string] {
	return func(yield func(string) bool) {
		for i := range c.Programs {
			if !yield(c.Programs[i].Name) {
				return
			}
		}
	}
}

// clone copies c so deeply that its owner's later changes do not reach the copy.
func (c Config) clone() Config {
	out := Config{
		Adapters: slices.Clone(c.Adapters), Programs: slices.Clone(c.Programs), LibDirs: slices.Clone(c.LibDirs), Logger: c.Logger,
	}
	for i := range out.Adapters {
		out.Adapters[i].Quirks = slices.Clone(out.Adapters[i].Quirks)
	}
	for i := range out.Programs {
		out.Programs[i] = out.Programs[i].clone()
	}
	return out
}

func (p Program) clone() Program {
	p.Args = slices.Clone(p.Args)
	p.Env = maps.Clone(p.Env)
	p.SharedHeap.Libraries = slices.Clone(p.SharedHeap.Libraries)
	return p
}
