package cudacore

import (
	"strings"

	"github.com/ndbridge/ndbridge/adapters/kit/py"
)

// buffer holds the fact about one object on which quirks depend.
type buffer struct{ kind kind }

// kind is what an object is to cuda.core.
type kind uint8

const (
	foreign kind = iota // not cuda.core's
	memory              // a buffer: bytes
	view                // of another framework's array
)

// kindOf goes by the names of classes, since a class derived from Buffer is one.
func kindOf(g *py.GIL, o py.Object) kind {
	for _, name := range g.MRO(o) {
		if !strings.HasPrefix(name, "cuda.core.") {
			continue
		}
		switch name[strings.LastIndexByte(name, '.')+1:] {
		case "Buffer":
			return memory
		case "StridedMemoryView":
			return view
		}
	}
	return foreign
}
