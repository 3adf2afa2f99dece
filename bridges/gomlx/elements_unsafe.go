package gomlx

import (
	"reflect"
	"unsafe"

	"github.com/ndbridge/ndbridge/core"
)

// elements is a slice of GoMLX's as elements of ours: its types of small floats are others, of the same bits.
func elements[T core.Element](flat any) []T {
	v := reflect.ValueOf(flat)
	if v.Len() == 0 {
		return nil
	}
	var zero T
	if size := v.Type().Elem().Size(); size != unsafe.Sizeof(zero) {
		panic("gomlx: elements of another size")
	}
	return unsafe.Slice((*T)(v.UnsafePointer()), v.Len())
}
