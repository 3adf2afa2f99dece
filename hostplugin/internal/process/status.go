package process

import "syscall"

// Status gives, once Exited is closed, the exit status of the program as a shell does: 128 and the
// number of the signal if one ended it. It is -1 if the program was never started.
func (p *Process) Status() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.state == nil {
		return -1
	}
	if status, ok := p.state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal())
	}
	return p.state.ExitCode()
}
