package process

import (
	"context"
	"strconv"

	"github.com/hashicorp/go-plugin/runner"
)

var _ runner.AttachedRunner = (*Process)(nil)

// Wait implements runner.AttachedRunner.
func (p *Process) Wait(context.Context) error {
	<-p.exited
	return nil
}

// Kill implements runner.AttachedRunner: it ends the program and all of its process group, at once, or as soon
// as it is started. It is idempotent, and does nothing after the end. A program that is dying already
// dies of what it does, and not of this.
func (p *Process) Kill(context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.reaped {
		p.killed = p.killed || !p.dying()
		p.killGroup()
	}
	return nil
}

// killGroup kills the program and what it has started. The caller holds the lock and knows that the
// program was not reaped.
func (p *Process) killGroup() {
	if p.pid != 0 {
		kill(-p.pid) // if anybody is left
	}
}

// greet takes the first line of descriptor 1. It is called once.
func (p *Process) greet(line string) {
	p.mu.Lock()
	p.greeting = line
	p.mu.Unlock()
	close(p.greeted)
}

// Greeted is closed when Greeting has come.
func (p *Process) Greeted() <-chan struct{} { return p.greeted }

// Greeting is the first line of descriptor 1: the handshake, or what came instead, or "".
func (p *Process) Greeting() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.greeting
}

// ID implements runner.AttachedRunner: the pid, or "" before the start.
func (p *Process) ID() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.pid == 0 {
		return ""
	}
	return strconv.Itoa(p.pid)
}

// PluginToHost implements runner.AttachedRunner. Both sides see the same addresses.
func (p *Process) PluginToHost(network, address string) (hostNetwork, hostAddress string, err error) {
	return network, address, nil
}

// HostToPlugin implements runner.AttachedRunner.
func (p *Process) HostToPlugin(network, address string) (pluginNetwork, pluginAddress string, err error) {
	return network, address, nil
}
