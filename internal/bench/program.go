package bench

import (
	"bufio"
	"context"
	"embed"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

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

// Arrays says which arrays a program shall have: of each framework one of each size, named with Name, and
// published with PublishedName.
type Arrays struct {
	Frameworks []string
	Sizes      []int
}

// Name is the variable that holds an array.
func Name(framework string, bytes int) string { return framework + strconv.Itoa(bytes) }

// PublishedName is the name under which an array is published.
func PublishedName(framework string, bytes int) string { return "published_" + Name(framework, bytes) }

// Replaced is the name under which a program publishes one array after the other: 1024 numbers of four
// bytes, all of them alike, and greater than those before.
const Replaced = "replaced"

// Program is a running program that has arrays.
type Program struct {
	*hostplugin.Session
	host    *hostplugin.Host
	control net.Conn
	lines   *bufio.Reader
	stop    *os.File // its first byte ends what the program was told to do
}

// Start runs a program that has arrays, from the folder with the scripts. p says how: its Python, Plugin and
// what is set of the hand-off.
func Start(ctx context.Context, dir string, p hostplugin.Program, arrays Arrays, opts ...hostplugin.HostOption) (_ *Program, err error) {
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
	p.Args = []string{listener.Addr().String(), q.stop.Name(), strings.Join(arrays.Frameworks, ",")}
	for _, size := range arrays.Sizes {
		p.Args = append(p.Args, strconv.Itoa(size))
	}
	opts = append([]hostplugin.HostOption{hostplugin.WithLogger(slog.New(slog.DiscardHandler))}, opts...)
	if q.host, err = hostplugin.New(hostplugin.Config{Programs: []hostplugin.Program{p}}, opts...); err != nil {
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
		err = p.hear("ready")
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
		errs = append(errs, p.host.Close())
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
	if _, err := fmt.Fprintln(p.control, what); err != nil {
		return nil, err
	}
	return func() error { return errors.Join(p.say(true), p.hear("done")) }, p.hear(what)
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

func (p *Program) hear(want string) error {
	line, err := p.lines.ReadString('\n')
	if got := strings.TrimSpace(line); err == nil && got != want {
		return fmt.Errorf("the program says %q, expected %q", got, want)
	}
	return err
}

// Caller looks at what has this name, again and again.
func (p *Program) Caller(name string) (Caller, error) {
	source, err := p.Source(name)
	if err != nil {
		return Caller{}, err
	}
	var view *core.View
	return Caller{Do: func(ctx context.Context) (err error) {
		view, _, err = source.Refresh(ctx, view)
		return err
	}}, nil
}
