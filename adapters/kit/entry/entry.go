// Package entry makes a program's Python process serve its arrays: it is what a plugin, a c-shared Go
// library, consists of besides its adapters.
//
// The bootstrap of the host loads the library with ctypes and calls its C functions; lifecycle.c has
// them, and decides what a call may do: none enters Go in a forked child. What concerns the end of the
// session is done there too, so that it works whatever state Go and Python are in.
package entry

// #include "lifecycle.h"
import "C"

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ndbridge/ndbridge/adapters/kit"
	"github.com/ndbridge/ndbridge/adapters/kit/internal/engine"
	"github.com/ndbridge/ndbridge/adapters/kit/program"
	"github.com/ndbridge/ndbridge/adapters/kit/py"
	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/internal/sharedheap"
	"github.com/ndbridge/ndbridge/internal/wire"
)

// closeTimeout bounds the wait for calls that are inside the interpreter when it is about to end. It
// leaves a part of the second that an ending program has.
const closeTimeout = 500 * time.Millisecond

// plugin is the one plugin of this process. C calls functions, not methods, so it has to be global.
// It is written by Register and by ndGoStart, which are over before any other function is called.
//
//nolint:gochecknoglobals // see above
var plugin struct {
	name, version string
	adapters      []program.Adapter

	thread int // Go's first

	interp  *py.Interp
	program *engine.Program
}

// Register says what the library is called and which frameworks it knows. A plugin's main package calls
// it from an init function, once. Of several adapters that claim an object, the first has it.
func Register(name, version string, adapters ...program.Adapter) {
	plugin.name, plugin.version, plugin.adapters = name, version, adapters
	plugin.thread = unix.Gettid() // where Go runs init functions
}

// ndGoStart starts to serve. The status descriptor is for messages to the host when it cannot.
//
//export ndGoStart
func ndGoStart(handshake, status C.int) C.int {
	if err := open(py.Open); err != nil {
		report(int(status), err)
		return 1
	}
	go serve(os.NewFile(uintptr(handshake), "handshake"), int(status))
	return 0
}

// open makes the program of the interpreter in this process.
func open(find func() (*py.Interp, error)) error {
	if err := checkHeap(); err != nil {
		return err
	}
	interp, err := find()
	if err != nil {
		return err
	}
	spare()
	interp.SetRoom(func() bool { return bool(C.nd_threads_left(roomForThreads)) })
	plugin.interp = interp
	plugin.program = engine.New(interp, plugin.name+" "+plugin.version, plugin.adapters...)
	return nil
}

// checkHeap refuses a shared heap of another release.
func checkHeap() error {
	theirs, ours := sharedheap.Other()
	if theirs == 0 {
		return nil
	}
	return &core.Error{
		Kind:   core.ErrVersion,
		Err:    fmt.Errorf("the shared heap speaks version %d of its interface, the plugin version %d", theirs, ours),
		Remedy: "put the libndbridge-heap.so of the plugin's own release beside the plugin",
	}
}

// serve runs until the session ends, and then ends the program.
func serve(handshake *os.File, status int) {
	defer C.nd_end()
	var opened atomic.Bool
	err := kit.Serve(context.Background(), plugin.program, kit.ServeOptions{
		Name: plugin.name, Version: plugin.version,
		Handshake:      handshake, // and descriptor 3 is the side socket
		OwnDescriptors: true,
		Opened: func() {
			opened.Store(true)
			_ = handshake.Close() // the host has read it, or there would be no session
			C.nd_opened()
		},
	})
	if err != nil && !opened.Load() {
		report(status, err)
	}
}

// report tells the host why the program cannot start.
func report(fd int, err error) {
	said := wire.Status{Stage: wire.StageError, Kind: wire.KindUnavailable, Message: err.Error()}
	if errors.Is(err, core.ErrVersion) || errors.Is(err, core.ErrUnsupported) {
		said.Kind = wire.KindVersion
	}
	if e, ok := errors.AsType[*core.Error](err); ok && e.Err != nil {
		said.Message, said.Remedy = e.Err.Error(), e.Remedy
	}
	msg, err := said.Append(nil)
	if err == nil {
		err = unix.Send(fd, msg, unix.MSG_NOSIGNAL)
	}
	if err != nil && !errors.Is(err, unix.EPIPE) {
		fmt.Fprintf(os.Stderr, "ndbridge: %s (and the host does not hear: %v)\n", said.Message, err)
	}
}

// ndGoVersion gives the version as a Python str, which the caller takes over.
//
//export ndGoVersion
func ndGoVersion() C.uintptr_t {
	var version py.Object
	err := plugin.interp.Within(func(g *py.GIL) error {
		o, err := g.NewStr(plugin.version)
		if err != nil {
			return err
		}
		version = g.Keep(o)
		return nil
	})
	if err != nil {
		return 0
	}
	return C.uintptr_t(version)
}

//export ndGoPublish
func ndGoPublish(name, array C.uintptr_t) C.int {
	return named("publish", name, func(g *py.GIL, name string) error {
		return publish(g, engine.Named{Name: name, Object: py.Object(array)})
	})
}

//export ndGoPublishAll
func ndGoPublishAll(arrays C.uintptr_t) C.int {
	return raised(func(g *py.GIL) error {
		items, err := g.DictItems(py.Object(arrays))
		if err != nil {
			return err
		}
		var values []engine.Named
		for key, o := range items {
			name, err := nameOf(g, "publish", key)
			if err != nil {
				return err
			}
			values = append(values, engine.Named{Name: name, Object: o})
		}
		return publish(g, values...)
	})
}

func publish(g *py.GIL, values ...engine.Named) error {
	if hosts.first.Load() {
		return plugin.program.Adopt(g, values...)
	}
	if err := plugin.program.Publish(g, values...); err != nil {
		return err
	}
	hosts := present()
	if len(hosts) == 0 {
		return nil
	}
	names := make([]string, len(values))
	for i, v := range values {
		names[i] = v.Name
	}
	for _, p := range hosts {
		_ = p.Adopt(g, values...)             // as the first has shown, the names can be published
		p.Follow(g, plugin.program, names...) // another thread may have published them meanwhile
	}
	return nil
}

//export ndGoUnpublish
func ndGoUnpublish(name C.uintptr_t) C.int {
	return named("unpublish", name, func(g *py.GIL, name string) error {
		if err := plugin.program.Unpublish(g, name); err != nil {
			return err
		}
		for _, p := range present() {
			p.Follow(g, plugin.program, name)
		}
		return nil
	})
}

//export ndGoAfterReads
func ndGoAfterReads(array, stream C.uintptr_t) C.int {
	return raised(func(g *py.GIL) error {
		err := plugin.program.AfterReads(g, py.Object(array), uintptr(stream))
		for _, p := range present() {
			if err == nil {
				err = p.AfterReads(g, py.Object(array), uintptr(stream))
			}
		}
		return err
	})
}

//export ndGoServe
func ndGoServe() C.int {
	return raised(func(*py.GIL) error { return plugin.program.Serve(func() { C.nd_called() }) })
}

//export ndGoServeCall
func ndGoServeCall() C.int {
	if plugin.program.ServeCall() {
		return -1
	}
	return 0
}

//export ndGoServeEnd
func ndGoServeEnd(over C.int) { plugin.program.ServeEnd(over != 0) }

// ndGoHostFunctions gives a tuple of str, which the caller takes over.
//
//export ndGoHostFunctions
func ndGoHostFunctions() C.uintptr_t {
	var tuple py.Object
	raised(func(g *py.GIL) error {
		names, err := plugin.program.HostFunctions()
		if err != nil {
			return err
		}
		for _, p := range present() {
			theirs, _ := p.HostFunctions() // fails if the host has gone
			names = append(slices.Clip(names), theirs...)
		}
		slices.Sort(names)
		names = slices.Compact(names)
		items := make([]py.Object, len(names))
		for i := range names {
			if items[i], err = g.NewStr(names[i]); err != nil {
				return err
			}
		}
		o, err := g.NewTuple(items...)
		if err == nil {
			tuple = g.Keep(o)
		}
		return err
	})
	return C.uintptr_t(tuple)
}

// ndGoCallHost gives an object, which the caller takes over.
//
//export ndGoCallHost
func ndGoCallHost(name, args, kw C.uintptr_t) C.uintptr_t {
	used()
	p := plugin.program
	_ = plugin.interp.Within(func(g *py.GIL) error { // never fails
		if text, err := g.Text(py.Object(name)); err == nil {
			p = lender(g, text)
		}
		return nil
	})
	return C.uintptr_t(p.CallHost(py.Object(name), py.Object(args), py.Object(kw)))
}

// named calls f with the text of a Python str, and turns an error into a Python exception.
func named(op string, name C.uintptr_t, f func(g *py.GIL, name string) error) C.int {
	return raised(func(g *py.GIL) error {
		text, err := nameOf(g, op, py.Object(name))
		if err != nil {
			return err
		}
		return f(g, text)
	})
}

func nameOf(g *py.GIL, op string, o py.Object) (string, error) {
	if !g.IsStr(o) {
		return "", &core.PythonError{
			Type: "TypeError", Message: fmt.Sprintf("%s: the name must be a str, not %s", op, g.TypeName(o)),
		}
	}
	return g.Text(o)
}

// raised calls f, and turns an error into a Python exception.
func raised(f func(g *py.GIL) error) C.int {
	used()
	err := plugin.interp.Within(func(g *py.GIL) error {
		err := f(g)
		if err != nil {
			g.Raise(err)
		}
		return err
	})
	if err != nil {
		return -1
	}
	return 0
}

//export ndGoFinished
func ndGoFinished(status C.int, message *C.char) {
	plugin.program.Exited(int(status), C.GoString(message))
}

//export ndGoFailed
func ndGoFailed(exception C.uintptr_t) {
	_ = plugin.interp.Within(func(g *py.GIL) error {
		err := g.Exception(py.Object(exception))
		g.Unlocked(func() { plugin.program.Failed(err) })
		return nil
	})
}
