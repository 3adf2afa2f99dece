// Package programtest runs Python scripts with a plugin and talks to the plugin's producer directly,
// without the host's comforts: for tests of what happens in the program's process, and for the witnesses
// of adapters, those of other modules too.
package programtest

import (
	"cmp"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
	"github.com/ndbridge/ndbridge/core/coretest"
	"github.com/ndbridge/ndbridge/hostplugin/bootstrap"
	"github.com/ndbridge/ndbridge/hostplugin/bootstrap/bootstraptest"
	"github.com/ndbridge/ndbridge/internal/fdpass"
	"github.com/ndbridge/ndbridge/internal/shm"
	"github.com/ndbridge/ndbridge/internal/wire"
	"github.com/ndbridge/ndbridge/internal/wire/goplugin"
)

// Patience is how long a test waits for what must come. Only failures take so long, but to import a
// framework of gigabytes from a disk that has not read it lately takes minutes.
const Patience = 5 * time.Minute

// Options say how to run a script. The zero value runs it under the interpreter of
// NDBRIDGE_TEST_PYTHON, with the default plugin and the shared heap.
type Options struct {
	Python   string
	Plugin   string // one of NDBRIDGE_LIB by its name, or a file if it has a '/'; "" means "all"
	NoHeap   bool
	Env      []string
	Settings contract.Settings
}

// Program is a running script, as the producer that a host meets.
type Program struct {
	contract.Producer
	contract.Refresher
	contract.Searcher
	contract.Waiter

	stdout string // a file, so that all that a script has written is there when it has ended
	stderr bootstraptest.Buffer
}

// Start runs a script and opens the session, whose end is the test's.
func Start(tb testing.TB, script string, opts Options) *Program {
	tb.Helper()
	p, err := Open(tb, script, opts)
	if err != nil {
		tb.Fatalf("open: %v\n%s", err, p.Output())
	}
	return p
}

// Open is Start for sessions that may fail to open. The program, which has ended then, is not nil.
func Open(tb testing.TB, script string, opts Options) (*Program, error) {
	tb.Helper()
	file := filepath.Join(tb.TempDir(), "script.py")
	check(tb, os.WriteFile(file, []byte(script), 0o600))
	if opts.Python == "" {
		opts.Python = Variable(tb, "NDBRIDGE_TEST_PYTHON")
	}
	library := opts.Plugin
	if !strings.Contains(library, "/") {
		library = filepath.Join(Variable(tb, "NDBRIDGE_LIB"), "ndbridge-"+cmp.Or(library, "all")+".so")
	}
	//nolint:noctx // go-plugin ends it
	cmd := exec.Command(opts.Python, bootstrap.Args(library, bootstrap.Script, file)...)
	cmd.Env = append(slices.Clone(opts.Env), "NDBRIDGE_HEAP_LIBRARIES="+os.Getenv("NDBRIDGE_HEAP_LIBRARIES"))
	if !opts.NoHeap {
		cmd.Env = append(cmd.Env, "LD_PRELOAD="+filepath.Join(filepath.Dir(library), "libndbridge-heap.so"))
	}
	return open(tb, cmd, opts.Settings)
}

func open(tb testing.TB, cmd *exec.Cmd, settings contract.Settings) (*Program, error) {
	tb.Helper()
	p := &Program{stdout: filepath.Join(tb.TempDir(), "stdout")}
	conn, side, err := fdpass.Pair()
	check(tb, err)
	check(tb, conn.Send(bootstrap.Code()))
	stdout, err := os.OpenFile(p.stdout, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	check(tb, err)
	cmd.ExtraFiles = []*os.File{side, stdout}
	cmd.Env = append(cmd.Env, wire.EnvSocketDir+"="+wire.NewSocketDir(os.TempDir()))
	wireSide := wire.NewSide(conn, nil, nil)
	client := plugin.NewClient(&plugin.ClientConfig{
		HandshakeConfig:  goplugin.Handshake(),
		Plugins:          plugin.PluginSet{goplugin.Name: &goplugin.Plugin{Side: wireSide}},
		AllowedProtocols: []plugin.Protocol{plugin.ProtocolGRPC},
		Cmd:              cmd,
		AutoMTLS:         true,
		GRPCDialOptions:  []grpc.DialOption{wire.Dialer(wireSide)},
		StartTimeout:     Patience,
		Stderr:           &p.stderr,
		Logger:           hclog.NewNullLogger(),
	})
	protocol, err := client.Client()
	check(tb, side.Close())
	check(tb, stdout.Close())
	var c *wire.Client
	tb.Cleanup(func() {
		if c != nil {
			_ = c.Close()
		}
		_ = wireSide.Close() // the plugin ends the program
		client.Kill()
		if tb.Failed() {
			tb.Logf("the program said:\n%s", p.Output())
		}
	})
	if err != nil {
		return p, err
	}
	dispensed, err := protocol.Dispense(goplugin.Name)
	check(tb, err)
	c, _ = dispensed.(*wire.Client)
	p.Producer, p.Refresher, p.Searcher, p.Waiter = c, c, c, c
	ctx, cancel := context.WithTimeout(tb.Context(), Patience)
	defer cancel()
	_, err = c.Open(ctx, settings, wire.Wish{})
	return p, err
}

// Said waits until the program has printed a text.
func (p *Program) Said(tb testing.TB, text string) {
	tb.Helper()
	for deadline := time.Now().Add(Patience); !strings.Contains(p.Output(), text); <-time.After(time.Millisecond) {
		if time.Now().After(deadline) {
			tb.Fatalf("the program has not said %q", text)
		}
	}
}

// Output is what the program has written to its standard output so far, and what of its standard error has arrived.
func (p *Program) Output() string {
	out, err := os.ReadFile(p.stdout)
	if err != nil {
		return err.Error()
	}
	return string(out) + p.stderr.String()
}

// Finish waits until the script has ended, which it must do well.
func (p *Program) Finish(tb testing.TB) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), Patience)
	defer cancel()
	if err := p.Wait(ctx); err != nil {
		tb.Fatalf("the script ended with %v\n%s", err, p.Output())
	}
}

// View leases and maps an array, until the view is closed, by the test or at its end.
func (p *Program) View(tb testing.TB, name string, req contract.Request) (*core.View, error) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), Patience)
	defer cancel()
	lease, err := p.Lease(ctx, name, req)
	if err != nil {
		return nil, err
	}
	release := func() error { return p.Release(context.WithoutCancel(ctx), lease.ID) }
	var memory core.Memory
	if segment, ok := lease.Handle.(contract.Segment); ok {
		file, err := p.Descriptor(ctx, segment.ID, req.Writable)
		if err != nil {
			check(tb, release())
			return nil, err
		}
		mapping, err := shm.Map(file, segment.Size, req.Writable)
		check(tb, err)
		check(tb, file.Close())
		memory = mapping
	}
	view, err := core.NewView(lease.Layout, memory, &core.ViewOptions{
		Name: name, Framework: lease.Framework, Route: lease.Route, Reason: lease.Reason,
		Quirks: lease.Quirks, Writable: lease.Writable, Version: lease.Version, Published: lease.Published,
		Lender: coretest.Lender(release),
	})
	check(tb, err)
	tb.Cleanup(func() { _ = view.Close() })
	return view, nil
}

// Variable gives an environment variable that `make test` sets.
func Variable(tb testing.TB, name string) string {
	tb.Helper()
	value := os.Getenv(name)
	if value == "" {
		tb.Fatalf("%s is not set; run make test", name)
	}
	return value
}

// Pythons lists the interpreters of NDBRIDGE_TEST_PYTHONS, or only that of NDBRIDGE_TEST_PYTHON in
// short mode.
func Pythons(tb testing.TB) []string {
	tb.Helper()
	if testing.Short() {
		return []string{Variable(tb, "NDBRIDGE_TEST_PYTHON")}
	}
	return strings.Split(Variable(tb, "NDBRIDGE_TEST_PYTHONS"), string(os.PathListSeparator))
}

// Newest gives the interpreter that an environment variable names, with the newest version of a
// framework that `make test` installs. Short mode does without the frameworks that take long.
func Newest(tb testing.TB, framework, variable string) string {
	tb.Helper()
	if testing.Short() {
		tb.Skipf("needs %s, which is large and takes long to import", framework)
	}
	return Variable(tb, variable)
}

// Versions lists the interpreters that have a framework: the newest, and, by the names of their
// environments, those with old versions that `make matrix` adds.
func Versions(tb testing.TB, framework, variable string) map[string]string {
	tb.Helper()
	all := map[string]string{"newest": Newest(tb, framework, variable)}
	for _, python := range filepath.SplitList(os.Getenv("NDBRIDGE_TEST_PYTHONS_" + strings.ToUpper(framework))) {
		all[Environment(python)] = python
	}
	return all
}

// Environment names the virtual environment of an interpreter: "3.8-old".
func Environment(python string) string { return filepath.Base(filepath.Dir(filepath.Dir(python))) }

func check(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}
