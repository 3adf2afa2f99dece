//go:build cuda

package driver

import (
	"unsafe"

	"gorgonia.org/cu"
)

// ModuleLoadData loads PTX text, or an image that holds no zero byte, into the current context.
func ModuleLoadData(image string) (Module, error) {
	m, err := cu.LoadData(image)
	return *(*Module)(unsafe.Pointer(&m)), failed("cuModuleLoadData", err)
}

// ModuleUnload unloads a module and its functions. It may wait for all streams, as FreeHost does.
func ModuleUnload(m Module) error {
	module := *(*cu.Module)(unsafe.Pointer(&m))
	return failed("cuModuleUnload", module.Unload())
}

// ModuleGetFunction finds a kernel by name. The error matches [core.ErrNotFound] if there is none.
func ModuleGetFunction(m Module, name string) (Function, error) {
	module := *(*cu.Module)(unsafe.Pointer(&m))
	f, err := module.Function(name)
	return *(*Function)(unsafe.Pointer(&f)), failed("cuModuleGetFunction", err)
}

// LaunchKernel starts a kernel on the stream. Each argument is a value of at most 8 bytes, in the low
// bytes of its word. The kernel takes as many bytes as its parameter has.
func LaunchKernel(f Function, grid, block Dim, shared int, s Stream, args []uint64) error {
	function := *(*cu.Function)(unsafe.Pointer(&f))
	params := make([]unsafe.Pointer, len(args))
	for i := range args {
		params[i] = unsafe.Pointer(&args[i])
	}
	return failed("cuLaunchKernel",
		function.Launch(grid.X, grid.Y, grid.Z, block.X, block.Y, block.Z, shared, s.cu(), params))
}
