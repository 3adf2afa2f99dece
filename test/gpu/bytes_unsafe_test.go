//go:build cuda

package gpu

import "unsafe"

// floats is the same memory as floats: some frameworks hand out bytes.
func floats(data []byte) []float32 {
	return unsafe.Slice((*float32)(unsafe.Pointer(unsafe.SliceData(data))), len(data)/4)
}
