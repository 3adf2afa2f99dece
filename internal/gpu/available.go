package gpu

import (
	"errors"
	"fmt"
	"sync"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/internal/gpu/driver"
)

// oldest is the first CUDA version whose driver has all that this package needs.
const oldest = 12000

// Available loads the driver and initialises CUDA in this process, once. It returns nil, or an error that
// matches [core.ErrUnsupported] if this process can have no CUDA, or [core.ErrVersion] if the driver is
// older than CUDA 12.0. A process that has initialised CUDA must not use it after a fork.
func Available() error { return available() }

// A process has one driver, which does not come later.
var available = sync.OnceValue(func() error { //nolint:gochecknoglobals // see above
	if err := driver.Init(); err != nil {
		return unavailable(err)
	}
	version, err := driver.DriverVersion()
	if err != nil {
		return unavailable(err)
	}
	if version < oldest {
		return &core.Error{
			Op: "cuda", Kind: core.ErrVersion,
			Err:    fmt.Errorf("expected a driver for CUDA %s or newer, got one for CUDA %s", versionText(oldest), versionText(version)),
			Remedy: "update the NVIDIA driver",
		}
	}
	n, err := driver.DeviceCount()
	if err == nil && n == 0 {
		err = errors.New("the driver sees no device")
	}
	if err != nil {
		return unavailable(err)
	}
	return nil
})

func versionText(v int) string { return fmt.Sprintf("%d.%d", v/1000, v%1000/10) }

// unavailable tells the user what to do about a driver that does not start.
func unavailable(err error) error {
	if _, ok := errors.AsType[*core.Error](err); ok {
		return err // built without CUDA
	}
	remedy := "see whether nvidia-smi works here"
	if e, ok := errors.AsType[*driver.Error](err); ok {
		switch e.Code {
		case driver.StubLibrary:
			remedy = "install the NVIDIA driver; in a container, run it with access to the GPUs"
		case driver.NoDevice:
			remedy = "check CUDA_VISIBLE_DEVICES and the container's access to the GPUs"
		case driver.SystemDriverMismatch, driver.CompatNotSupported:
			remedy = "the driver's library and its kernel module differ; restart the machine, or the container"
		default:
		}
	}
	return &core.Error{Op: "cuda", Kind: core.ErrUnsupported, Err: err, Remedy: remedy}
}

// Active reports whether any code in this process has initialised CUDA. It neither loads nor initialises
// the driver, so a plugin may call it at any time.
func Active() bool { return driver.Active() }

// InUse explains why this process can hold no GPU memory. It returns nil if CUDA is [Active]. It does not
// initialise CUDA. The error wraps [core.ErrUnsupported] if this binary was built without CUDA, and
// [core.ErrDevice] if no code in the process has initialised CUDA.
func InUse() error {
	switch {
	case Active():
		return nil
	case !driver.Built:
		return driver.Init() // the reason and the remedy
	default:
		return &core.Error{
			Op: "cuda", Kind: core.ErrDevice,
			Err:    errors.New("the program has not initialised CUDA, so that it has no memory of a GPU"),
			Remedy: "make the array in the program itself, with a framework that uses CUDA",
		}
	}
}
