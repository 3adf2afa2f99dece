package cuda

import (
	"errors"
	"sync"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/cuda/internal/driver"
	"github.com/ndbridge/ndbridge/cuda/internal/primary"
)

// Module is code for one GPU. All methods are safe for concurrent use.
type Module struct {
	gpu    *primary.GPU
	handle driver.Module

	mu     sync.RWMutex // read-held while a function is used
	closed bool
}

// Function is a kernel of a [Module], and is valid as long as that.
type Function struct {
	module *Module
	name   string
	handle driver.Function
	params []int // the bytes of each; nil if the driver cannot tell
}

// LoadModule compiles PTX text for a device, by its index in this process (see [Devices]). The caller
// closes the module. Text that the driver does not take is an error that wraps core.ErrConfig, or
// core.ErrVersion if it is too new for the driver.
func LoadModule(device int, ptx []byte) (*Module, error) {
	const op = "load module"
	g, err := openPrimary(op, device)
	if err != nil {
		return nil, err
	}
	m := &Module{gpu: g}
	err = g.Do(func() (err error) { m.handle, err = driver.ModuleLoadData(string(ptx)); return err })
	if err != nil {
		return nil, failed(op, "", errors.Join(err, g.Close()))
	}
	return m, nil
}

// use calls f while the module cannot be closed.
func (m *Module) use(f func() error) error {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if m.closed {
		return &core.Error{Kind: core.ErrClosed, Err: errors.New("the module is closed")}
	}
	return f()
}

// Function finds a kernel by its name, or an error that wraps core.ErrNotFound.
func (m *Module) Function(name string) (*Function, error) {
	f := &Function{module: m, name: name}
	err := m.use(func() error { return m.gpu.Do(f.find) })
	if err != nil {
		return nil, about("find function", name, err)
	}
	return f, nil
}

// find asks the driver for the kernel. The context is current.
func (f *Function) find() (err error) {
	if f.handle, err = driver.ModuleGetFunction(f.module.handle, f.name); err != nil {
		return err
	}
	f.params, err = driver.FuncParams(f.handle)
	if errors.Is(err, core.ErrUnsupported) {
		return nil // Launch believes its caller then
	}
	return err
}

// Close unloads the code: at once, or, if a stream waits for a program, when none does any more. The work
// that runs it must be done. Close is idempotent.
func (m *Module) Close() error {
	m.mu.Lock()
	closed := m.closed
	m.closed = true
	m.mu.Unlock()
	if closed {
		return nil
	}
	err := m.gpu.End(func() error { return driver.ModuleUnload(m.handle) })
	if err = errors.Join(err, m.gpu.Close()); err != nil {
		return failed("close module", "", err)
	}
	return nil
}
