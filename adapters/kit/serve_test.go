package kit_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ndbridge/ndbridge/adapters/kit"
	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
	"github.com/ndbridge/ndbridge/core/coretest"
	"github.com/ndbridge/ndbridge/internal/wire"
	"github.com/ndbridge/ndbridge/internal/wire/wiretest"
)

const (
	serveRole = "NDBRIDGE_KIT_TEST_ROLE" // makes TestServeProcess a plugin, in a process of its own
	serveLog  = "NDBRIDGE_KIT_TEST_LOG"  // where that process writes what became of Serve
)

// refusing is a producer that does not take some settings.
type refusing struct{ *coretest.Producer }

func (refusing) Configure(s contract.Settings) error {
	if s.Program == "refused" {
		return &core.Error{Op: "configure", Kind: core.ErrConfig, Err: errors.New("not this one")}
	}
	return nil
}

// TestServeProcess is the plugin's side of the other tests, which run it in a process of its own. In
// the process of the tests it checks that Serve refuses to run without a host.
func TestServeProcess(t *testing.T) {
	t.Parallel()
	role := os.Getenv(serveRole)
	if role == "" {
		err := kit.Serve(t.Context(), coretest.NewProducer(t), kit.ServeOptions{Name: "dog", Version: "3"})
		if !errors.Is(err, core.ErrConfig) || !strings.Contains(err.Error(), "dog 3 is an ndbridge plugin") {
			t.Errorf("Serve without a host = %v", err)
		}
		return
	}
	opts := kit.ServeOptions{Name: "kit-test"}
	switch role {
	case "no side":
		file, err := os.Open(os.DevNull)
		if err != nil {
			t.Fatal(err)
		}
		opts.Side = file
	case "interrupted":
		opts.Opened = func() {
			if err := unix.Kill(os.Getpid(), unix.SIGINT); err != nil {
				t.Error(err)
			}
			<-time.After(10 * time.Second) // the signal's default action ends the process meanwhile
		}
	}
	err := kit.Serve(context.Background(), refusing{coretest.NewProducer(t, coretest.Arrays()...)}, opts) //nolint:usetesting // as in a main function
	result := fmt.Sprintf("served: %v", err)
	if err := os.WriteFile(os.Getenv(serveLog), []byte(result), 0o600); err != nil {
		t.Fatal(err)
	}
}

// served is a command that runs TestServeProcess in a role, and the file that will tell its result.
func served(t *testing.T, role string) (cmd *exec.Cmd, log string) {
	t.Helper()
	log = t.TempDir() + "/log"
	ctx := context.WithoutCancel(t.Context()) // it is the host that ends a plugin
	cmd = exec.CommandContext(ctx, os.Args[0], "-test.run=^TestServeProcess$", "-test.timeout=60s")
	cmd.Env = append(os.Environ(), serveRole+"="+role, serveLog+"="+log)
	return cmd, log
}

// result waits for the end of the process and gives what it wrote.
func result(t *testing.T, log string) string {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		if b, err := os.ReadFile(log); err == nil && len(b) > 0 {
			return string(b)
		}
	}
	t.Fatal("Serve did not return within 20 s")
	return ""
}

func TestServeConforms(t *testing.T) {
	t.Parallel()
	cmd, _ := served(t, "serve")
	p := wiretest.Start(t, cmd, wiretest.Options{})
	coretest.Conform(t, func(*testing.T) contract.Producer { return p.Client })
}

func TestServeEndsWithTheHost(t *testing.T) {
	t.Parallel()
	for name, how := range map[string]struct{ shutDown, closed bool }{
		"shut down":       {shutDown: true},
		"side socket":     {},
		"before it opens": {closed: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cmd, log := served(t, "serve")
			p := wiretest.Start(t, cmd, wiretest.Options{Closed: how.closed})
			if how.shutDown {
				p.Plugin.Kill()
			} else if err := p.Side.Close(); err != nil {
				t.Fatal(err)
			}
			if got := result(t, log); got != "served: <nil>" {
				t.Errorf("the plugin says %q", got)
			}
		})
	}
}

func TestServeRefusesSettings(t *testing.T) {
	t.Parallel()
	cmd, _ := served(t, "serve")
	p := wiretest.Start(t, cmd, wiretest.Options{Closed: true})
	_, err := p.Client.Open(t.Context(), contract.Settings{Program: "refused"}, wire.Wish{})
	if !errors.Is(err, core.ErrConfig) || !strings.Contains(err.Error(), "not this one") {
		t.Errorf("Open = %v", err)
	}
}

// TestServeLeavesInterrupt checks that SIGINT does what it did before: here, end the process.
func TestServeLeavesInterrupt(t *testing.T) {
	t.Parallel()
	cmd, _ := served(t, "interrupted")
	p := wiretest.Start(t, cmd, wiretest.Options{})
	select {
	case <-p.Side.Done():
	case <-time.After(5 * time.Second):
		t.Error("the signal did not end the process")
	}
}

// TestServeReportsErrors runs plugins that cannot serve.
func TestServeReportsErrors(t *testing.T) {
	t.Parallel()
	for role, want := range map[string]string{
		"no side":        "serve: unavailable: side socket: ",
		"no directory":   "serve: unavailable: mkdir /no such/directory: ",
		"no certificate": "serve: unavailable: PLUGIN_CLIENT_CERT holds no certificate of a host",
	} {
		cmd, log := served(t, role)
		cmd.Env = append(cmd.Env, wire.CookieKey+"="+wire.CookieValue)
		host, peer, err := os.Pipe() // not a side socket, but open
		if err != nil {
			t.Fatal(err)
		}
		cmd.ExtraFiles = []*os.File{peer}
		if role != "no side" {
			dir := wire.NewSocketDir(t.TempDir())
			if role == "no directory" {
				dir = "/no such/directory"
			}
			cmd.Env = append(cmd.Env, wire.EnvSocketDir+"="+dir)
			fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
			if err != nil {
				t.Fatal(err)
			}
			near, far := os.NewFile(uintptr(fds[0]), "near"), os.NewFile(uintptr(fds[1]), "far")
			defer near.Close()
			defer far.Close()
			cmd.ExtraFiles = []*os.File{far}
		}
		var output bytes.Buffer
		cmd.Stdout, cmd.Stderr = &output, &output
		if err := errors.Join(cmd.Run(), host.Close(), peer.Close()); err != nil {
			t.Errorf("%s: %v\n%s", role, err, &output)
			continue
		}
		if got := result(t, log); !strings.HasPrefix(got, "served: "+want) {
			t.Errorf("%s: the plugin says %q, want %q", role, got, want)
		}
	}
}
