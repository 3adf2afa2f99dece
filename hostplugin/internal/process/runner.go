package process

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/hashicorp/go-plugin/runner"
)

var _ runner.Runner = (*Process)(nil)

// Configure takes what go-plugin knows before the start: variables to add to the environment, and
// the directory in which the plugin must make its socket.
func (p *Process) Configure(env []string, sockets string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.env, p.sockets = env, sockets
}

// Wait implements runner.Runner.
func (p *Process) Wait(context.Context) error {
	<-p.exited
	if how, _ := p.Exit(); how != "exited with status 0" {
		return fmt.Errorf("the program %s", how)
	}
	return nil
}

// Kill implements runner.Runner: it ends the program and all of its process group, at once, or as soon
// as it is started. It is idempotent, and does nothing after the end.
func (p *Process) Kill(context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.reaped {
		p.killed = true
		p.killGroup()
	}
	return nil
}

// killGroup kills the program and what it has started. The caller holds the lock and knows that the
// program was not reaped.
func (p *Process) killGroup() {
	if p.pid != 0 {
		_ = syscall.Kill(-p.pid, syscall.SIGKILL) // fails only if nobody is left
	}
}

// greet takes the first line of descriptor 1 for go-plugin.
func (p *Process) greet(line string) {
	p.mu.Lock()
	p.greeted = line
	p.mu.Unlock()
	p.line <- line // has room: it is called once
}

// Greeting is the first line of descriptor 1: the handshake, or what came instead, or "".
func (p *Process) Greeting() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.greeted
}

// Stdout implements runner.Runner: the handshake line, and no more.
func (p *Process) Stdout() io.ReadCloser { return io.NopCloser(&handshakeReader{process: p}) }

// Stderr implements runner.Runner: nothing, since the process reads the pipe itself.
func (p *Process) Stderr() io.ReadCloser { return io.NopCloser(strings.NewReader("")) }

// Name implements runner.Runner.
func (p *Process) Name() string { return p.spec.Name }

// Diagnose implements runner.Runner. It has nothing to add to what the host finds out.
func (p *Process) Diagnose(context.Context) string { return "" }

// ID implements runner.Runner: the pid, or "" before the start.
func (p *Process) ID() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.pid == 0 {
		return ""
	}
	return strconv.Itoa(p.pid)
}

// PluginToHost implements runner.Runner. The plugin names the address that the host connects to, so
// it must not be any but the one that it was given.
func (p *Process) PluginToHost(network, address string) (hostNetwork, hostAddress string, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if network != "unix" || filepath.Dir(filepath.Clean(address)) != p.sockets {
		return "", "", fmt.Errorf("the plugin listens at %s %q, expected a unix socket in %s", network, address, p.sockets)
	}
	return network, address, nil
}

// HostToPlugin implements runner.Runner.
func (p *Process) HostToPlugin(network, address string) (pluginNetwork, pluginAddress string, err error) {
	return network, address, nil
}

// handshakeReader gives the handshake line as soon as it has come, then the end of file.
type handshakeReader struct {
	process *Process
	rest    []byte
	asked   bool
}

func (r *handshakeReader) Read(b []byte) (int, error) {
	if !r.asked {
		r.asked = true
		select {
		case line := <-r.process.line:
			r.rest = []byte(line + "\n")
		case <-r.process.exited:
			if line := r.process.Greeting(); line != "" {
				r.rest = []byte(line + "\n")
			}
		}
	}
	if len(r.rest) == 0 {
		return 0, io.EOF
	}
	n := copy(b, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}
