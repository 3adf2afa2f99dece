package cuda

import (
	"context"
	"errors"
	"fmt"
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
//
// The driver may have to wait for all streams to bring code to a GPU, and takes no other call meanwhile. So
// while a stream of this package waits for a program, LoadModule waits until none does, or until ctx ends:
// load modules, and find their functions, before work waits for views.
func LoadModule(ctx context.Context, device int, ptx []byte) (*Module, error) {
	const op = "load module"
	g, err := openPrimary(op, device)
	if err != nil {
		return nil, err
	}
	m := &Module{gpu: g}
	load := func() (err error) { m.handle, err = driver.ModuleLoadData(string(ptx)); return err }
	err = primary.Streams.Do(ctx, func() error { return g.Do(load) })
	if err != nil {
		return nil, notLoaded(ctx, op, "", errors.Join(err, g.Close()))
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

// notLoaded says what went wrong, or that ctx ended before the driver was called.
func notLoaded(ctx context.Context, op, name string, err error) error {
	if ctx.Err() != nil && errors.Is(err, context.Cause(ctx)) {
		return &core.Error{
			Op: op, Object: name, Kind: ctx.Err(), Err: fmt.Errorf("streams wait for a program: %w", context.Cause(ctx)),
			Remedy: "load modules and find their functions before work waits for views",
		}
	}
	return about(op, name, err)
}

// Function finds a kernel by its name, or an error that wraps core.ErrNotFound. The driver loads the kernel
// then (NVIDIA's CUDA programming guide, "Lazy Loading"), so it waits as [LoadModule] does.
func (m *Module) Function(ctx context.Context, name string) (*Function, error) {
	f := &Function{module: m, name: name}
	find := func() error { return m.gpu.Do(f.find) }
	if err := primary.Streams.Do(ctx, func() error { return m.use(find) }); err != nil {
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
