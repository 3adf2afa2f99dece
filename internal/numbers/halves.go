package numbers

import (
	"encoding/binary"
	"math"

	"github.com/ndbridge/ndbridge/core"
)

// Halves are the two parts of elements that one float64 does not hold: complex numbers, and whole numbers of 64 bits.
type Halves struct {
	At   [2]int // where in an element they lie
	Read [2]Reader
	Join func(a, b float64) float64 // the magnitude, or the number, of two halves, or of the differences of two
}

// Halves gives the halves of elements that have some, or nil.
func (t Type) Halves() *Halves {
	var parts [2]core.DType
	at, join := [2]int{0, t.Size() / 2}, math.Hypot
	switch {
	case Complex(t.DType):
		d := map[int]core.DType{4: core.Float16, 8: core.Float32, 16: core.Float64}[t.Size()]
		parts = [2]core.DType{d, d}
	case t.DType == core.Int64 || t.DType == core.Uint64:
		parts = [2]core.DType{core.Int32, core.Uint32}
		if t.DType == core.Uint64 {
			parts[0] = core.Uint32
		}
		if little := binary.NativeEndian.Uint16([]byte{1, 0}) == 1; little != t.foreign {
			at = [2]int{4, 0}
		}
		join = func(high, low float64) float64 { return high*(1<<32) + low } // rounded once
	default:
		return nil
	}
	h := &Halves{At: at, Join: join}
	for i, d := range parts {
		h.Read[i] = Type{d, t.foreign}.Reader()
	}
	return h
}
