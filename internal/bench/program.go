package bench

import (
	"bufio"
	"context"
	"embed"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/hostplugin"
)

//go:embed python
var scripts embed.FS

// WriteScripts writes the Python files into a folder, where they find each other.
func WriteScripts(dir string) error {
	entries, err := scripts.ReadDir("python")
	if err != nil {
		return err
	}
	for _, entry := range entries {
		text, err := scripts.ReadFile("python/" + entry.Name())
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, entry.Name()), text, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// Arrays says which arrays a program has: of each framework one of each size, named with Name, and published
// with PublishedName; and Parameters of numpy and of torch, named with ParameterNames.
type Arrays struct {
	Frameworks []string
	Sizes      []int
	Parameters int
}

// Name is the variable that holds an array.
func Name(framework string, bytes int) string { return framework + strconv.Itoa(bytes) }

// PublishedName is the name under which an array is published.
func PublishedName(framework string, bytes int) string { return "published_" + Name(framework, bytes) }

// ParameterNames gives the names of the first n parameters: a dict's items of numpy, a module's attributes of
// torch. Every second one is small enough to be copied.
func ParameterNames(framework string, n int) []string {
	format := `parameters["layers.%d.%s"]`
	if framework == "torch" {
		format = "model.layers[%d].%s"
	}
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf(format, i/2, []string{"weight", "bias"}[i%2])
	}
	return names
}

// Replaced gives the names under which a program publishes new arrays all the time, together: float32 numbers, in
// each array all alike, the same in both, and greater than before. The first array is copied, the second shared.
func Replaced() []string { return []string{"replaced", "replaced_large"} }

// Program is a running program that has arrays.
type Program struct {
	*hostplugin.Session
	host    *hostplugin.Host
	control net.Conn
	lines   *bufio.Reader
	stop    *os.File // its first byte ends what the program was told to do
}

// Start runs a program that has arrays, from the folder with the scripts. p says how: its Python, Plugin and
// what is set of the hand-off. libDirs are those of the host.
func Start(ctx context.Context, dir string, p hostplugin.Program, arrays Arrays, libDirs ...string) (_ *Program, err error) {
	here, err := os.MkdirTemp(dir, "program")
	if err != nil {
		return nil, err
	}
	q := &Program{}
	defer func() {
		if err != nil {
			err = errors.Join(err, q.Close())
		}
	}()
	if q.stop, err = os.Create(filepath.Join(here, "stop")); err != nil {
		return nil, err
	}
	if err := q.say(false); err != nil {
		return nil, err
	}
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(here, "control"), Net: "unix"})
	if err != nil {
		return nil, err
	}
	defer listener.Close() //nolint:errcheck // it has served its purpose
	p.Name, p.Script = "arrays", filepath.Join(dir, "arrays.py")
	p.Args = []string{
		listener.Addr().String(), q.stop.Name(), strings.Join(arrays.Frameworks, ","), strconv.Itoa(arrays.Parameters),
	}
	for _, size := range arrays.Sizes {
		p.Args = append(p.Args, strconv.Itoa(size))
	}
	q.host, err = hostplugin.New(hostplugin.Config{
		Programs: []hostplugin.Program{p}, LibDirs: libDirs, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return nil, err
	}
	if q.Session, err = q.host.Start(ctx, p.Name); err != nil {
		return nil, err
	}
	return q, q.connect(ctx, listener)
}

// connect waits until all arrays are there, or the script has ended without.
func (p *Program) connect(ctx context.Context, listener net.Listener) error {
	ctx, cancel := context.WithCancelCause(ctx)
	var waiting sync.WaitGroup
	waiting.Go(func() {
		if err := p.Wait(ctx); ctx.Err() == nil {
			cancel(errors.Join(errors.New("the program has no arrays"), err))
		}
	})
	defer waiting.Wait()
	defer cancel(nil)
	defer context.AfterFunc(ctx, func() { listener.Close() })() //nolint:errcheck // that is what shall happen
	var err error
	if p.control, err = listener.Accept(); err == nil {
		p.lines = bufio.NewReader(p.control)
		err = p.hear(nil)
	}
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// Close ends the program.
func (p *Program) Close() error {
	var errs []error
	if p.control != nil {
		errs = append(errs, p.control.Close())
	}
	if p.host != nil {
		if err := p.host.Close(); !errors.Is(err, core.ErrUnavailable) { // else a busy machine was too slow to end the program
			errs = append(errs, err)
		}
	}
	if p.stop != nil {
		errs = append(errs, p.stop.Close())
	}
	return errors.Join(errs...)
}

// Busy lets the program do something, "spin" or "replace" (see arrays.py), until end is called.
func (p *Program) Busy(what string) (end func() error, err error) {
	if err := p.say(false); err != nil {
		return nil, err
	}
	await, err := p.Begin(what)
	if err != nil {
		return nil, err
	}
	return func() error { return errors.Join(p.say(true), await(nil)) }, nil
}

// Begin lets the program do something (see arrays.py). await waits until it has, and reads what it says of it
// into result.
func (p *Program) Begin(what string, args ...any) (await func(result any) error, err error) {
	line, err := json.Marshal(append([]any{what}, args...))
	if err != nil {
		return nil, err
	}
	if _, err := p.control.Write(append(line, '\n')); err != nil {
		return nil, err
	}
	return p.hear, p.hear(nil)
}

// Publish measures what a publication takes the program: kind is one of arrays.py.
func (p *Program) Publish(kind string, bytes, warm, count int) Turn {
	return func(context.Context) (took []time.Duration, err error) {
		await, err := p.Begin("publish", kind, bytes, warm, count)
		if err != nil {
			return nil, err
		}
		return took, await(&took)
	}
}

// say sets the byte that the program looks at while it is busy.
func (p *Program) say(stop bool) error {
	word := []byte{0}
	if stop {
		word[0] = 1
	}
	_, err := p.stop.WriteAt(word, 0)
	return err
}

// hear reads a line of JSON. Result may be nil.
func (p *Program) hear(result any) error {
	line, err := p.lines.ReadBytes('\n')
	if err != nil || result == nil {
		return err
	}
	return json.Unmarshal(line, result)
}

// Caller refreshes a view of what has this name, and reads its last element.
func (p *Program) Caller(name string) (Caller, error) {
	source, err := p.Source(name)
	if err != nil {
		return Caller{}, err
	}
	var view *core.View
	return Caller{Do: func(ctx context.Context) (err error) {
		if view, _, err = source.Refresh(ctx, view); err != nil {
			return err
		}
		return read(view)
	}}, nil
}

// NewViews takes a new view each time, reads its last element, and closes it.
func (p *Program) NewViews(name string) (Caller, error) {
	source, err := p.Source(name)
	if err != nil {
		return Caller{}, err
	}
	return Caller{Do: func(ctx context.Context) error {
		view, err := source.View(ctx)
		if err != nil {
			return err
		}
		return errors.Join(read(view), view.Close())
	}}, nil
}

// GroupCaller refreshes a group of names. What they show is compared with what the program has written, beside the
// time.
func (p *Program) GroupCaller(names []string) (Caller, error) {
	group, err := p.Group(names...)
	if err != nil {
		return Caller{}, err
	}
	return Caller{
		Do: func(ctx context.Context) error { _, err := group.Refresh(ctx); return err },
		Tidy: func() error {
			for _, view := range group.Views() {
				if err := read(view); err != nil {
					return err
				}
			}
			return nil
		},
	}, nil
}

// read checks what a view shows, but for large arrays, which the program does not write (see making.py).
func read(view *core.View) error {
	const large = 256 * MiB
	data, err := view.Bytes()
	if err != nil {
		return err
	}
	if got, want := last(data); got != want && len(data) < large {
		return fmt.Errorf("the last element of %s is %v, expected %v", view.Name(), got, want)
	}
	return nil
}

// Check compares the last element of an array with what making.py writes.
func Check(data []byte) error {
	if got, want := last(data); got != want {
		return fmt.Errorf("the last element is %v, expected %v", got, want)
	}
	return nil
}

func last(data []byte) (got, want float32) {
	const period = 4093
	return math.Float32frombits(binary.LittleEndian.Uint32(data[len(data)-4:])), float32((len(data)/4 - 1) % period)
}
