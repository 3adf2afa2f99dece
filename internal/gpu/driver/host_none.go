//go:build !cuda

package driver

func MemHandleDevice(MemHandle) (Device, error) { return 0, errNone }
func FuncParams(Function) ([]int, error)        { return nil, errNone }
