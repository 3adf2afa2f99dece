package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ndbridge/ndbridge/internal/bench"
	"github.com/ndbridge/ndbridge/internal/handoff"
	"github.com/ndbridge/ndbridge/internal/shm"
)

// The ways without Python.
const (
	bareMailbox = "bare mailbox"
	bareAsleep  = "bare mailbox, asleep"
	bareSilence = "bare mailbox, after silence"
	bareFutex   = "bare futex" + onTwoCPUs
	bareOneWay  = "bare futex, one way" + onTwoCPUs
)

const (
	// handoffSpin is the default of a program.
	handoffSpin = 50 * time.Microsecond

	// otherSide makes this program the other side of what is measured without Python: its value is
	// viaFutex, oneWay, or the spin of a mailbox.
	otherSide = "NDBENCH_OTHER_SIDE"
	viaFutex  = "futex"
	oneWay    = "one way"

	sharedFD = 3
)

// sharedSize is that of the memory between the two sides.
func sharedSize() int64 { return handoff.MailboxSize(1) }

func (l *lab) addLimits(ctx context.Context) (err error) {
	if l.mailbox, err = l.bareMailbox(ctx, handoffSpin); err != nil {
		return err
	}
	asleep, err := l.bareMailbox(ctx, 0)
	if err != nil {
		return err
	}
	l.plan.Add(bench.Key{Way: bareMailbox}, l.plan.Turn, l.mailbox)
	l.plan.Add(bench.Key{Way: bareAsleep}, l.plan.Turn, asleep)
	if l.cpus, err = newPlacement(); err != nil {
		return err
	}
	if l.cpus == nil {
		l.plan.LeaveOut("all ways with"+onTwoCPUs[len(","):], "there is one CPU")
		return nil
	}
	return errors.Join(l.addFutex(ctx), l.addOneWay(ctx))
}

// bareMailbox gives who asks a process that does nothing but answer.
func (l *lab) bareMailbox(ctx context.Context, spin time.Duration) (bench.Caller, error) {
	_, memory, err := l.startOther(ctx, spin.String())
	if err != nil {
		return bench.Caller{}, err
	}
	client, err := handoff.NewMailboxClient(memory.Bytes(), spin, time.Second, nil)
	if err != nil {
		return bench.Caller{}, err
	}
	request := make([]byte, 16)
	do := func(ctx context.Context) error {
		slot, err := client.Acquire(ctx)
		if err != nil {
			return err
		}
		if _, err = slot.Call(ctx, request); err == nil {
			slot.Release()
		}
		return err
	}
	return bench.Caller{Do: do}, nil
}

// addFutex has two threads measured that do nothing but wake each other.
func (l *lab) addFutex(ctx context.Context) error {
	pid, memory, err := l.startOther(ctx, viaFutex)
	if err != nil {
		return err
	}
	pair, number := newFutexPair(memory.Bytes(), false), uint32(0)
	l.addApart(bench.Key{Way: bareFutex}, l.plan.Turn, bench.Caller{Do: func(context.Context) error {
		number++
		pair.write(number)
		_, err := pair.sleep(number - 1)
		return err
	}}, pid)
	return nil
}

// addOneWay has measured how long a thread takes to run from the moment when another, which has slept for a while,
// reads the clock, writes it down and wakes it. Nothing that tells another process of anything by a system call takes
// less.
func (l *lab) addOneWay(ctx context.Context) error {
	pid, memory, err := l.startOther(ctx, oneWay)
	if err != nil {
		return err
	}
	pair, number, clock := newFutexPair(memory.Bytes(), false), uint32(0), newClock()
	calls := max(l.plan.Turn/10, 2)
	l.plan.Add(bench.Key{Way: bareOneWay}, calls).Turn = l.apart(pid, func(context.Context) ([]time.Duration, error) {
		var took []time.Duration
		for i := range 1 + calls {
			number++
			pair.write(number)
			if _, err := pair.sleep(number - 1); err != nil {
				return nil, err
			}
			if now := clock.now(); i > 0 {
				took = append(took, time.Duration(now-pair.stamp.Load()))
			}
		}
		return took, nil
	})
	return nil
}

// startOther starts a process that answers, until the end of the lab.
func (l *lab) startOther(ctx context.Context, mode string) (pid int, _ *shm.Mapping, err error) {
	file, err := shm.Create("limit", sharedSize())
	if err != nil {
		return 0, nil, err
	}
	defer file.Close()
	exe, err := os.Executable()
	if err != nil {
		return 0, nil, err
	}
	process := exec.CommandContext(ctx, exe)
	process.Env = append(os.Environ(), otherSide+"="+mode)
	process.ExtraFiles = []*os.File{file}
	process.Stderr = os.Stderr
	ready, err := process.StdoutPipe()
	if err != nil {
		return 0, nil, err
	}
	life, err := process.StdinPipe() // it lives until this is closed
	if err != nil {
		return 0, nil, err
	}
	if err := process.Start(); err != nil {
		return 0, nil, err
	}
	l.atEnd(func() error { return errors.Join(life.Close(), process.Wait()) })
	if _, err := ready.Read(make([]byte, 1)); err != nil {
		return 0, nil, fmt.Errorf("the other side: %w", err)
	}
	memory, err := shm.Map(file, sharedSize(), true)
	if err == nil {
		l.atEnd(memory.Close)
	}
	return process.Process.Pid, memory, err
}

// answer is the other side: it answers until its standard input ends.
func answer(mode string) error {
	memory, err := shm.Map(os.NewFile(sharedFD, "limit"), sharedSize(), true)
	if err != nil {
		return err
	}
	end := func() {}
	switch mode {
	case viaFutex:
		go echoFutex(newFutexPair(memory.Bytes(), true), 0) // ends with the process
	case oneWay:
		go echoFutex(newFutexPair(memory.Bytes(), true), interval)
	default:
		spin, err := time.ParseDuration(mode)
		if err != nil {
			return err
		}
		server, err := handoff.NewMailboxServer(memory.Bytes(), 1, spin, func(request, answer []byte) []byte {
			return append(answer, request...)
		})
		if err != nil {
			return err
		}
		end = server.Close
	}
	if _, err := os.Stdout.WriteString("!"); err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, os.Stdin)
	end()
	return err
}

// echoFutex writes back whatever it reads, after a pause.
func echoFutex(pair futexPair, pause time.Duration) {
	wait, clock := unix.NsecToTimespec(int64(pause)), newClock()
	for last := uint32(0); ; {
		value, err := pair.sleep(last)
		if err != nil {
			continue // nobody asked for a long time
		}
		last = value
		if pause > 0 {
			_ = unix.Nanosleep(&wait, nil) // a signal makes it shorter
			pair.stamp.Store(clock.now())
		}
		pair.write(value)
	}
}
