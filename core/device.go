package core

import "strconv"

// DeviceKind says what kind of memory an array lies in. The zero value is the CPU's.
type DeviceKind uint8

// The device kinds that ndbridge tells apart.
const (
	CPU         DeviceKind = iota // ordinary host memory
	CUDA                          // memory of an NVIDIA GPU
	CUDAPinned                    // page-locked host memory that a GPU can reach
	CUDAManaged                   // memory that host and GPUs share by migration
)

// Device names one device. The zero value is the CPU.
type Device struct {
	Kind  DeviceKind
	Index int // which one of its kind; 0 for the CPU
}

// HostReadable reports whether the CPU can read memory of this device.
func (d Device) HostReadable() bool { return d.Kind != CUDA && d.valid() }

// String returns the usual spelling: "cpu", "cuda:0", "cuda_pinned:0", "cuda_managed:1".
func (d Device) String() string {
	if d.Kind == CPU {
		return d.Kind.String()
	}
	return d.Kind.String() + ":" + strconv.Itoa(d.Index)
}

// valid refuses unknown kinds and negative indices.
func (d Device) valid() bool { return int(d.Kind) < len(deviceTexts) && d.Index >= 0 }

var deviceTexts = []string{CPU: "cpu", CUDA: "cuda", CUDAPinned: "cuda_pinned", CUDAManaged: "cuda_managed"}

// String returns "cpu", "cuda", "cuda_pinned" or "cuda_managed".
func (k DeviceKind) String() string {
	if int(k) < len(deviceTexts) {
		return deviceTexts[k]
	}
	return "device(" + strconv.Itoa(int(k)) + ")"
}
