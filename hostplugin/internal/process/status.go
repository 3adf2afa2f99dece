package process

// Status gives, once Exited is closed, the exit status of the program as a shell does: 128 and the
// number of the signal if one ended it. It is -1 if the program was never started.
func (p *Process) Status() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.state == nil {
		return -1
	}
	if signal := p.signal(); signal != 0 {
		return 128 + int(signal)
	}
	return p.state.ExitCode()
}
