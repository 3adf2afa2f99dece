package dlpack

import "github.com/ndbridge/ndbridge/core"

// The attribute of a type that speaks DLPack from C, and the name of the capsule in it. The capsule holds a pointer to a
// DLPackExchangeAPI, which is valid as long as the process lives.
const (
	ExchangeAttribute   = "__dlpack_c_exchange_api__"
	ExchangeCapsuleName = "dlpack_exchange_api"
)

// Offsets in bytes of the fields of DLPackExchangeAPI of major version 1. The first three are those of
// its header, which never move.
const (
	exchangeMajor    = 0
	exchangePrevious = 8
	exchangeExport   = 24 // managed_tensor_from_py_object_no_sync
	exchangeDescribe = 40 // dltensor_from_py_object_no_sync
	exchangeHeader   = 16
)

// maxExchanges bounds the chain of older versions: each major version has one.
const maxExchanges = 16

// Exporter returns the address of the function int(*)(PyObject *, DLManagedTensorVersioned **) with which the exchange API
// at addr exports an object, without synchronization. The function is called with the GIL held; it returns 0, or sets a
// Python exception. Exporter takes the API of this package's major version from the chain of APIs; if there is none, the
// error wraps core.ErrVersion.
func Exporter(mem Memory, addr uintptr) (uintptr, error) {
	b, err := exchange(mem, addr, exchangeExport+8)
	if err != nil {
		return 0, err
	}
	export := uintptr(word64(b[exchangeExport:]))
	if export == 0 {
		return 0, pointerError("the exchange API's function that exports is NULL")
	}
	return export, nil
}

// Describer is [Exporter] for the function int(*)(PyObject *, DLTensor *), which describes an object's memory without
// exporting it. Its result is valid while the GIL is held and the object lives. Describer returns 0 if the framework has
// no such function.
func Describer(mem Memory, addr uintptr) (uintptr, error) {
	b, err := exchange(mem, addr, exchangeDescribe+8)
	if err != nil {
		return 0, err
	}
	return uintptr(word64(b[exchangeDescribe:])), nil
}

// exchange gives the first bytes of the API of this package's major version.
func exchange(mem Memory, addr uintptr, size int) ([]byte, error) {
	var newest uint32
	for i := 0; i < maxExchanges && (i == 0 || addr != 0); i++ {
		b, err := readAligned(mem, addr, exchangeHeader)
		if err != nil {
			return nil, err
		}
		major := word32(b[exchangeMajor:])
		if i == 0 {
			newest = major
		}
		if major == Major {
			return readAligned(mem, addr, size)
		}
		addr = uintptr(word64(b[exchangePrevious:]))
	}
	return nil, dlpackError(core.ErrVersion, "exchange API of DLPack %d, supported is %d.x", newest, Major)
}
