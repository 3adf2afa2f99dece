package cuda

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/internal/gpu"
	"github.com/ndbridge/ndbridge/internal/gpu/driver"
)

// Module is code loaded for one GPU. All methods are safe for concurrent use.
type Module struct {
	primary *gpu.Primary
	handle  driver.Module

	mu     sync.RWMutex // read-held while a function is used
	closed bool
}

// Function is a kernel of a [Module], and is valid until the module is closed. All methods are safe for
// concurrent use.
type Function struct {
	module *Module
	name   string
	handle driver.Function
	params []int // the bytes of each; nil if the driver cannot tell
}

// LoadModule compiles PTX text for a device, by the device's index in this process: see [Devices]. The
// caller closes the module. The error wraps core.ErrConfig if the driver does not accept the text, and
// core.ErrVersion if the text is too new for the driver.
//
// The driver may wait for all streams before it brings code to a GPU, and accepts no other call
// meanwhile. So while a stream of this package waits for a program, LoadModule waits, too, or until ctx
// ends. Load modules and find their functions before work waits for views.
func LoadModule(ctx context.Context, device int, ptx []byte) (*Module, error) {
	const op = "load module"
	p, err := openPrimary(op, device)
	if err != nil {
		return nil, err
	}
	m := &Module{primary: p}
	load := func() (err error) { m.handle, err = driver.ModuleLoadData(string(ptx)); return err }
	err = gpu.Streams.Do(ctx, func() error { return p.Do(load) })
	if err != nil {
		return nil, notLoaded(ctx, op, "", errors.Join(err, p.Close()))
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

// notLoaded is the error of a call that failed, or that ctx ended before it was made.
func notLoaded(ctx context.Context, op, name string, err error) error {
	if ctx.Err() != nil && errors.Is(err, context.Cause(ctx)) {
		return &core.Error{
			Op: op, Object: name, Kind: ctx.Err(), Err: fmt.Errorf("streams wait for a program: %w", context.Cause(ctx)),
			Remedy: "load modules and find their functions before work waits for views",
		}
	}
	return about(op, name, err)
}

// Function finds a kernel by name. The error wraps core.ErrNotFound if the module has no such kernel.
// The driver loads the kernel at this point ("Lazy Loading" in NVIDIA's CUDA programming guide), so
// Function waits as [LoadModule] does.
func (m *Module) Function(ctx context.Context, name string) (*Function, error) {
	f := &Function{module: m, name: name}
	find := func() error { return m.primary.Do(f.find) }
	if err := gpu.Streams.Do(ctx, func() error { return m.use(find) }); err != nil {
		return nil, notLoaded(ctx, "find function", name, err)
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
		return nil // Launch cannot check its arguments then
	}
	return err
}

// Close unloads the code. The work that runs it must be done. While a stream waits for a program, Close
// returns at once, and the code is unloaded when no stream waits any more. Close is idempotent.
func (m *Module) Close() error {
	m.mu.Lock()
	closed := m.closed
	m.closed = true
	m.mu.Unlock()
	if closed {
		return nil
	}
	err := m.primary.End(func() error { return driver.ModuleUnload(m.handle) })
	if err = errors.Join(err, m.primary.Close()); err != nil {
		return driver.Explain("close module", "", err)
	}
	return nil
}
