// Command importtests is a library that gives arrays in a host's memory to the frameworks of the interpreter that it is
// loaded into, where there is no host: for the tests of what frameworks do with such memory.
package main

import "C"

import (
	"encoding/json"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	"github.com/ndbridge/ndbridge/adapters/all"
	"github.com/ndbridge/ndbridge/adapters/kit/internal/engine"
	"github.com/ndbridge/ndbridge/adapters/kit/internal/hostarrays"
	"github.com/ndbridge/ndbridge/adapters/kit/py"
	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
	"github.com/ndbridge/ndbridge/internal/shm"
)

const size = 1 << 20

// library is what the C functions share, since C calls functions and not methods.
type library struct {
	interp             *py.Interp
	program            *engine.Program
	memory             *shm.Mapping // as the host has it
	writable, readOnly *hostarrays.Segment
	held               *atomic.Uint32
}

var lib library

// array is what ndImport is to make.
type array struct {
	Framework, DType, Tag string
	Shape, Strides        []int
	Offset                int
	ReadOnly              bool
}

// ndOpen is called without the GIL, with the settings of the adapters.
//
//export ndOpen
func ndOpen(settings *C.char) C.int {
	if err := lib.open(C.GoString(settings)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return -1
	}
	return 0
}

func (l *library) open(settings string) error {
	var s contract.Settings
	err := json.Unmarshal([]byte(settings), &s)
	if err != nil {
		return err
	}
	if l.interp, err = py.Open(); err != nil {
		return err
	}
	l.program = engine.New(l.interp, "importtests", all.Adapters()...)
	if err := l.program.Configure(s); err != nil {
		return err
	}
	file, err := shm.Create("importtests", size)
	if err != nil {
		return err
	}
	if l.memory, err = shm.Map(file, size, true); err != nil {
		return err
	}
	if l.writable, err = hostarrays.Map(file, size, true); err != nil {
		return err
	}
	if l.readOnly, err = hostarrays.Map(file, size, false); err != nil {
		return err
	}
	if err := file.Close(); err != nil {
		return err
	}
	l.held, err = newWord()
	return err
}

// ndImport is called with the GIL. It gives the array that is described in JSON, or raises.
//
//export ndImport
func ndImport(described *C.char) (object uintptr) {
	_ = lib.interp.Within(func(g *py.GIL) error {
		a, layout, err := read(C.GoString(described))
		var o py.Object
		if err == nil {
			o, err = lib.make(g, a, layout)
		}
		if err != nil {
			g.Raise(err)
			return err
		}
		object = uintptr(g.Keep(o))
		return nil
	})
	return object
}

func read(described string) (a array, l core.Layout, err error) {
	if err := json.Unmarshal([]byte(described), &a); err != nil {
		return a, l, err
	}
	d, err := core.ParseDType(a.DType)
	if err != nil {
		return a, l, err
	}
	l, err = core.NewLayout(core.LayoutSpec{DType: d, Tag: a.Tag, Shape: a.Shape, Strides: a.Strides, Offset: a.Offset})
	return a, l, err
}

func (l *library) make(g *py.GIL, a array, layout core.Layout) (py.Object, error) {
	segment := l.writable
	if a.ReadOnly {
		segment = l.readOnly
	}
	exporter, err := segment.Export(g, layout, false, l.held)
	if err != nil || a.Framework == "" {
		return exporter, err
	}
	return l.program.Import(g, a.Framework, exporter, layout, a.ReadOnly)
}

// ndHeld gives how many arrays are in use.
//
//export ndHeld
func ndHeld() C.uint { return C.uint(lib.held.Load()) }

// ndHost gives the address of the memory as the host has it.
//
//export ndHost
func ndHost() uintptr { return lib.memory.Addr() }

// ndClose closes the segments.
//
//export ndClose
func ndClose() C.int {
	if lib.writable.Close() != nil || lib.readOnly.Close() != nil {
		return -1
	}
	return 0
}

// ndMeasure is called with the GIL. It gives the nanoseconds that it takes to make such an array, and to end it.
//
//export ndMeasure
func ndMeasure(described *C.char, times int) (each C.double) {
	_ = lib.interp.Within(func(g *py.GIL) error {
		a, layout, err := read(C.GoString(described))
		begun := time.Now()
		for i := 0; i < times && err == nil; i++ {
			err = g.Nested(func() error {
				_, err := lib.make(g, a, layout)
				return err
			})
		}
		each = C.double(time.Since(begun)) / C.double(times)
		if err != nil {
			g.Raise(err)
		}
		return err
	})
	return each
}

func main() {}
