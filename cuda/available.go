package cuda

import (
	"errors"
	"fmt"
	"sync"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/cuda/internal/driver"
)

// oldest is the first CUDA version whose driver has all that this package needs.
const oldest = 12000

// Available loads the driver and initialises CUDA in this process, once, and says why that cannot be
// done: nil, or an error that matches [core.ErrUnsupported] if there is no CUDA to be had, or
// [core.ErrVersion] if the driver is older than CUDA 12.0. A process that has initialised CUDA must not
// use it after fork.
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

// unavailable says what the user can do about a driver that does not come up.
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

// Active says whether CUDA is initialised in this process, by this package or by anybody else. It
// neither loads the driver nor initialises it, so that a plugin may ask at any time.
func Active() bool { return driver.Active() }
