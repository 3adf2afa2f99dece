//go:build !cuda

package driver

import (
	"errors"

	"github.com/ndbridge/ndbridge/core"
)

var errNone error = &core.Error{
	Op:     "cuda",
	Kind:   core.ErrUnsupported,
	Err:    errors.New("this binary was built without CUDA"),
	Remedy: "build it with the tag cuda (see CONTRIBUTING.md)",
}

// Without CUDA there is nothing to call; what the functions are for is said beside the ones that call.

func Init() error { return errNone }

// Active is false.
func Active() bool                                                 { return false }
func DriverVersion() (int, error)                                  { return 0, errNone }
func DeviceCount() (int, error)                                    { return 0, errNone }
func DeviceName(Device) (string, error)                            { return "", errNone }
func DeviceUUID(Device) ([16]byte, error)                          { return [16]byte{}, errNone }
func DeviceTotalMem(Device) (int64, error)                         { return 0, errNone }
func DeviceGetAttribute(Device, DeviceAttribute) (int, error)      { return 0, errNone }
func PrimaryCtxRetain(Device) (Context, error)                     { return 0, errNone }
func PrimaryCtxRelease(Device) error                               { return errNone }
func PrimaryCtxActive(Device) (bool, error)                        { return false, errNone }
func CtxPush(Context) error                                        { return errNone }
func CtxPop() error                                                { return errNone }
func CtxCurrent() (Context, error)                                 { return 0, errNone }
func CtxSynchronize() error                                        { return errNone }
func CtxRecordEvent(Context, Event) error                          { return errNone }
func StreamCreate() (Stream, error)                                { return 0, errNone }
func StreamDestroy(Stream) error                                   { return errNone }
func StreamSynchronize(Stream) error                               { return errNone }
func StreamQuery(Stream) (bool, error)                             { return false, errNone }
func StreamWaitEvent(Stream, Event) error                          { return errNone }
func StreamWriteValue32(Stream, uintptr, uint32) error             { return errNone }
func StreamWaitValue32(Stream, uintptr, uint32) error              { return errNone }
func EventCreate(EventFlags) (Event, error)                        { return 0, errNone }
func EventDestroy(Event) error                                     { return errNone }
func EventRecord(Event, Stream) error                              { return errNone }
func EventQuery(Event) (bool, error)                               { return false, errNone }
func MemAlloc(int64) (uintptr, error)                              { return 0, errNone }
func MemAllocManaged(int64) (uintptr, error)                       { return 0, errNone }
func MemFree(uintptr) error                                        { return errNone }
func MemGetAddressRange(uintptr) (uintptr, int64, error)           { return 0, 0, errNone }
func MemcpyDtoH([]byte, uintptr) error                             { return errNone }
func MemcpyHtoDAsync(uintptr, uintptr, int64, Stream) error        { return errNone }
func MemcpyDtoHAsync(uintptr, uintptr, int64, Stream) error        { return errNone }
func MemsetD8Async(uintptr, byte, int64, Stream) error             { return errNone }
func HostRegister(uintptr, int64, RegisterFlags) error             { return errNone }
func HostUnregister(uintptr) error                                 { return errNone }
func HostGetDevicePointer(uintptr) (uintptr, error)                { return 0, errNone }
func HostAlloc(int64) (uintptr, error)                             { return 0, errNone }
func FreeHost(uintptr) error                                       { return errNone }
func PointerAttributes(uintptr) (Attributes, error)                { return Attributes{}, errNone }
func PointerBufferID(uintptr) (uint64, error)                      { return 0, errNone }
func IPCGetMemHandle(uintptr) (IPCMem, error)                      { return IPCMem{}, errNone }
func IPCOpenMemHandle(IPCMem) (uintptr, error)                     { return 0, errNone }
func IPCCloseMemHandle(uintptr) error                              { return errNone }
func MemGranularity(Device) (int64, error)                         { return 0, errNone }
func MemCreate(Device, int64) (MemHandle, error)                   { return 0, errNone }
func MemRelease(MemHandle) error                                   { return errNone }
func MemRetainAllocationHandle(uintptr) (MemHandle, error)         { return 0, errNone }
func MemExport(MemHandle) (int, error)                             { return 0, errNone }
func MemImport(int) (MemHandle, error)                             { return 0, errNone }
func MemAddressReserve(int64) (uintptr, error)                     { return 0, errNone }
func MemAddressFree(uintptr, int64) error                          { return errNone }
func MemMap(uintptr, int64, MemHandle) error                       { return errNone }
func MemUnmap(uintptr, int64) error                                { return errNone }
func MemSetAccess(uintptr, int64, Device, bool) error              { return errNone }
func PoolCreate(Device) (Pool, error)                              { return 0, errNone }
func PoolDestroy(Pool) error                                       { return errNone }
func PoolExport(Pool) (int, error)                                 { return 0, errNone }
func PoolImport(int) (Pool, error)                                 { return 0, errNone }
func PoolExportPointer(uintptr) (PoolPtr, error)                   { return PoolPtr{}, errNone }
func PoolImportPointer(Pool, PoolPtr) (uintptr, error)             { return 0, errNone }
func MemAllocFromPoolAsync(int64, Pool, Stream) (uintptr, error)   { return 0, errNone }
func MemFreeAsync(uintptr, Stream) error                           { return errNone }
func ModuleLoadData(string) (Module, error)                        { return 0, errNone }
func ModuleUnload(Module) error                                    { return errNone }
func ModuleGetFunction(Module, string) (Function, error)           { return 0, errNone }
func LaunchKernel(Function, Dim, Dim, int, Stream, []uint64) error { return errNone }
