package dlpack

import (
	"runtime"
	"structs"
	"testing"
	"unsafe"
)

// The structs of dlpack.h 1.3, for 64-bit machines.
type (
	dlTensor struct {
		_          structs.HostLayout
		data       uintptr
		deviceType int32
		deviceID   int32
		ndim       int32
		code       uint8
		bits       uint8
		lanes      uint16
		shape      *int64
		strides    *int64
		byteOffset uint64
	}
	managedTensor struct {
		_       structs.HostLayout
		tensor  dlTensor
		context uintptr
		deleter uintptr
	}
	managedTensorVersioned struct {
		_       structs.HostLayout
		major   uint32
		minor   uint32
		context uintptr
		deleter uintptr
		flags   uint64
		tensor  dlTensor
	}
)

// TestLayoutIsFrozen compares the offsets that the readers use with those of the structs and with the
// numbers of the C compiler. They are an ABI: they change with DLPack's major version, or not at all.
// Whoever changes one here bumps Major.
func TestLayoutIsFrozen(t *testing.T) {
	t.Parallel()
	var d dlTensor
	var l managedTensor
	var v managedTensorVersioned
	for name, offsets := range map[string][3]uintptr{ // ours, Go's, C's
		"DLTensor":                           {tensorSize, unsafe.Sizeof(d), 48},
		"DLTensor.data":                      {tensorData, unsafe.Offsetof(d.data), 0},
		"DLTensor.device.device_type":        {tensorDeviceType, unsafe.Offsetof(d.deviceType), 8},
		"DLTensor.device.device_id":          {tensorDeviceID, unsafe.Offsetof(d.deviceID), 12},
		"DLTensor.ndim":                      {tensorNDim, unsafe.Offsetof(d.ndim), 16},
		"DLTensor.dtype.code":                {tensorCode, unsafe.Offsetof(d.code), 20},
		"DLTensor.dtype.bits":                {tensorBits, unsafe.Offsetof(d.bits), 21},
		"DLTensor.dtype.lanes":               {tensorLanes, unsafe.Offsetof(d.lanes), 22},
		"DLTensor.shape":                     {tensorShape, unsafe.Offsetof(d.shape), 24},
		"DLTensor.strides":                   {tensorStrides, unsafe.Offsetof(d.strides), 32},
		"DLTensor.byte_offset":               {tensorByteOffset, unsafe.Offsetof(d.byteOffset), 40},
		"DLManagedTensor":                    {legacySize, unsafe.Sizeof(l), 64},
		"DLManagedTensor.dl_tensor":          {legacyTensor, unsafe.Offsetof(l.tensor), 0},
		"DLManagedTensor.manager_ctx":        {legacyContext, unsafe.Offsetof(l.context), 48},
		"DLManagedTensor.deleter":            {legacyDeleter, unsafe.Offsetof(l.deleter), 56},
		"DLManagedTensorVersioned":           {versionedSize, unsafe.Sizeof(v), 80},
		"DLManagedTensorVersioned.major":     {versionedMajor, unsafe.Offsetof(v.major), 0},
		"DLManagedTensorVersioned.minor":     {versionedMinor, unsafe.Offsetof(v.minor), 4},
		"DLManagedTensorVersioned.context":   {versionedContext, unsafe.Offsetof(v.context), 8},
		"DLManagedTensorVersioned.deleter":   {versionedDeleter, unsafe.Offsetof(v.deleter), 16},
		"DLManagedTensorVersioned.flags":     {versionedFlags, unsafe.Offsetof(v.flags), 24},
		"DLManagedTensorVersioned.dl_tensor": {versionedTensor, unsafe.Offsetof(v.tensor), 32},
	} {
		if offsets[0] != offsets[2] || offsets[1] != offsets[2] {
			t.Errorf("%s: the reader uses %d, the Go struct has %d, dlpack.h %d", name, offsets[0], offsets[1], offsets[2])
		}
	}
	if flagReadOnly != 1 || flagCopied != 2 || flagPadded != 4 {
		t.Error("flags are not those of dlpack.h")
	}
}

// TestLive reads real structs at their real addresses.
func TestLive(t *testing.T) {
	t.Parallel()
	data := make([]float32, 6)
	shape, strides := &[2]int64{2, 3}, &[2]int64{3, 1}
	tensor := dlTensor{
		data: uintptr(unsafe.Pointer(&data[0])), deviceType: 1, ndim: 2, code: 2, bits: 32, lanes: 1,
		shape: &shape[0], strides: &strides[0], byteOffset: 4,
	}
	versioned := &managedTensorVersioned{major: 1, minor: 3, deleter: 0x1234, flags: 1, tensor: tensor}
	legacy := &managedTensor{tensor: tensor, deleter: 0x1234}
	for kind, addr := range map[Kind]uintptr{
		Versioned: uintptr(unsafe.Pointer(versioned)), Legacy: uintptr(unsafe.Pointer(legacy)),
	} {
		m, err := Inspect(Live(), addr, kind)
		if err != nil || m.Deleter != 0x1234 || m.Addr != addr {
			t.Fatalf("%+v, %v", m, err)
		}
		got, err := m.Tensor()
		if err != nil {
			t.Fatal(err)
		}
		if got.Addr != tensor.data+4 || got.Spec.ReadOnly != (kind == Versioned) ||
			len(got.Spec.Shape) != 2 || got.Spec.Shape[1] != 3 || got.Spec.Strides[0] != 12 {
			t.Errorf("%+v", got)
		}
	}
	runtime.KeepAlive([]any{data, shape, strides, versioned, legacy})
}
