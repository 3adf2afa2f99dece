//go:build !cuda

package driver

// Built reports whether this binary has CUDA.
const Built = false

func CtxID(Context) (uint64, error) { return 0, errNone }

func StreamCtx(Stream) (Context, error) { return 0, errNone }

func StreamCapturing(Stream) (bool, error) { return false, errNone }

func relaxed() (undo func())                                                     { return func() {} }
func MemcpyAsync(uintptr, uintptr, int64, Stream) error                          { return errNone }
func MemcpyRowsAsync(uintptr, int64, uintptr, int64, int64, int64, Stream) error { return errNone }
