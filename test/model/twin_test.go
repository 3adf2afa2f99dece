package model

import (
	"fmt"
	"os/exec"
	"reflect"
	"sync"
)

// twin is the program without a host. It runs behind the other one, which need not wait for it.
type twin struct {
	peer *peer
	cmd  *exec.Cmd
	jobs chan job
	done chan struct{}

	mu  sync.Mutex
	err error
}

type job struct {
	request *request
	want    *answer
	flushed chan struct{} // closed when all jobs before are done
}

func newTwin(p *peer, cmd *exec.Cmd) *twin {
	return &twin{peer: p, cmd: cmd, jobs: make(chan job, 64), done: make(chan struct{})}
}

// greet waits until the program is there, and begins.
func (t *twin) greet() error {
	_, err := t.peer.greet()
	if err == nil {
		go t.work()
	}
	return err
}

func (t *twin) close() {
	close(t.jobs)
	t.peer.close()
	_ = t.cmd.Process.Kill() // it may have ended
	_ = t.cmd.Wait()         // it was killed
}

func (t *twin) give(r *request, want *answer) {
	alone := *r
	alone.Alone = true
	if alone.Reset {
		t.mu.Lock()
		t.err = nil
		t.mu.Unlock()
	}
	t.jobs <- job{request: &alone, want: want}
}

// flush waits until the twin has done all that it was given, and gives what was wrong.
func (t *twin) flush() error {
	flushed := make(chan struct{})
	t.jobs <- job{flushed: flushed}
	<-flushed
	return t.wrong()
}

func (t *twin) wrong() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.err
}

func (t *twin) work() {
	for j := range t.jobs {
		if j.flushed != nil {
			close(j.flushed)
			continue
		}
		if t.wrong() != nil && !j.request.Reset {
			continue
		}
		got, err := t.peer.ask(j.request)
		if err != nil {
			err = failed(died, "the program without a host does not answer: %v", err)
		} else {
			err = differs(j.want, got)
		}
		if err != nil {
			t.mu.Lock()
			t.err = err
			t.mu.Unlock()
		}
	}
}

// differs says what a program did otherwise than without a host.
func differs(hosted, alone *answer) error {
	for i, line := range hosted.Log {
		if want := alone.Log[i]; !reflect.DeepEqual(line, want) {
			return failed("behaves", "under a host: %q; without one: %q", line, want)
		}
	}
	for name, s := range hosted.State { // but for what was published: of that, the addresses matter
		want := alone.State[name]
		if want == nil && s.Then != nil {
			continue
		}
		if want == nil || s.Err != want.Err || !reflect.DeepEqual(s.Is, want.Is) {
			return failed("values", "%s under a host is %v; without one %v", name, s, want)
		}
	}
	return nil
}

func (s *statement) String() string {
	switch {
	case s == nil:
		return "unchanged"
	case s.Is == nil:
		return "error " + s.Err
	case s.Then != nil:
		return fmt.Sprintf("%v, published as %v, moved %v", s.Is, s.Then.Is, s.Then.Moved)
	default:
		return s.Is.String()
	}
}
