package process

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"

	"github.com/hashicorp/go-plugin/runner"
)

// Attached is a process that ran before its host came, and goes on when the host goes. What a host knows of it is the side socket:
// as long as that is there, the process is. All methods are safe for concurrent use.
type Attached struct {
	pid      int             // 0: it is not known in this namespace
	gone     <-chan struct{} // the end of the side socket
	leave    func()          // closes it
	greeting <-chan string

	greeted chan struct{} // closed when line is there
	line    string
}

var _ runner.AttachedRunner = (*Attached)(nil)

// Attach makes a process of what there is of one: its id, the end of its side socket and what closes that, and what comes of it as a greeting.
func Attach(pid int, gone <-chan struct{}, leave func(), greeting <-chan string) *Attached {
	return &Attached{pid: pid, gone: gone, leave: leave, greeting: greeting, greeted: make(chan struct{})}
}

// Start waits for the greeting, beside its caller.
func (p *Attached) Start(context.Context) error {
	go func() {
		select {
		case p.line = <-p.greeting:
			close(p.greeted)
		case <-p.gone:
		}
	}()
	return nil
}

// Greeted is closed when the plugin in the process has said that it serves the host.
func (p *Attached) Greeted() <-chan struct{} { return p.greeted }

// Greeting gives what it has said, in the form of go-plugin's line.
func (p *Attached) Greeting() string {
	select {
	case <-p.greeted:
		return p.line
	default:
		return ""
	}
}

// Exited is closed when there is nothing between the process and its host any more.
func (p *Attached) Exited() <-chan struct{} { return p.gone }

// Wait implements runner.AttachedRunner.
func (p *Attached) Wait(context.Context) error {
	<-p.gone
	return nil
}

// Kill leaves the process, and lets it be.
func (p *Attached) Kill(context.Context) error {
	p.leave()
	return nil
}

// Discard leaves the process.
func (p *Attached) Discard() { p.leave() }

// Exit says what became of the process.
func (p *Attached) Exit() (how string, own bool) {
	if p.pid == 0 || !p.alive() {
		return "has ended", true
	}
	return "goes on, but has ended the session: it has closed descriptors that it had not opened, or runs another program (exec)", true
}

// alive reports whether the process is there, and not about to end.
func (p *Attached) alive() bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.pid))
	if err != nil {
		return false
	}
	text := string(stat)
	return !exiting(text) && !strings.HasPrefix(text[strings.LastIndexByte(text, ')')+1:], " Z")
}

// Dying reports false: there is nothing to wait for.
func (*Attached) Dying() bool { return false }

// Full reports whether the process has no descriptor left, as far as can be seen.
func (p *Attached) Full() bool {
	if p.pid == 0 {
		return false
	}
	dir := fmt.Sprintf("/proc/%d/", p.pid)
	limits, err1 := os.ReadFile(dir + "limits")
	open, err2 := os.ReadDir(dir + "fd")
	_, rest, found := strings.Cut(string(limits), "Max open files")
	fields := strings.Fields(rest)
	if err1 != nil || err2 != nil || !found || len(fields) == 0 {
		return false
	}
	most, err := strconv.Atoi(fields[0]) // it may be "unlimited"
	if err != nil {
		return false
	}
	below := 0 // the shared heap's lie above what the program's limit lets it have
	for _, file := range open {
		if n, err := strconv.Atoi(file.Name()); err == nil && n < most {
			below++
		}
	}
	return below >= most
}

// Signal gives 0: a process that is no child of this one does not say what has ended it.
func (*Attached) Signal() syscall.Signal { return 0 }

// Status gives -1, for the same reason.
func (*Attached) Status() int { return -1 }

// LastErrors gives nothing: the process's standard error is its own.
func (*Attached) LastErrors() string { return "" }

// CloseLog does nothing.
func (*Attached) CloseLog() {}

// ID implements runner.AttachedRunner.
func (p *Attached) ID() string { return strconv.Itoa(p.pid) }

// PluginToHost implements runner.AttachedRunner.
func (*Attached) PluginToHost(network, address string) (hostNetwork, hostAddress string, err error) {
	return network, address, nil
}

// HostToPlugin implements runner.AttachedRunner.
func (*Attached) HostToPlugin(network, address string) (pluginNetwork, pluginAddress string, err error) {
	return network, address, nil
}
