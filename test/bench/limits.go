package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"

	"github.com/ndbridge/ndbridge/internal/bench"
	"github.com/ndbridge/ndbridge/internal/mailbox"
	"github.com/ndbridge/ndbridge/internal/shm"
)

const (
	// handoffSpin is the default of a program.
	handoffSpin = 50 * time.Microsecond

	// otherSide makes this program the other side of what is measured without Python: its value is
	// viaFutex, or the spin of a ring.
	otherSide = "NDBENCH_OTHER_SIDE"
	viaFutex  = "futex"

	sharedFD = 3
)

// sharedSize is that of the memory between the two sides.
func sharedSize() int64 { return mailbox.Size(1) }

// limit gives who asks a process that does nothing but answer.
func limit(ctx context.Context, mode string) (bench.Caller, func() error, error) {
	other, memory, err := startOther(ctx, mode)
	if err != nil {
		return bench.Caller{}, nil, err
	}
	end := func() error {
		other.close()
		return memory.Close()
	}
	if mode == viaFutex {
		pair, number := newFutexPair(memory.Bytes(), false), uint32(0)
		return bench.Caller{Do: func(context.Context) error {
			number++
			pair.write(number)
			_, err := pair.sleep(number - 1)
			return err
		}}, end, nil
	}
	spin, err := time.ParseDuration(mode)
	if err != nil {
		return bench.Caller{}, nil, errors.Join(err, end())
	}
	client, err := mailbox.NewClient(memory.Bytes(), spin, time.Second, nil)
	if err != nil {
		return bench.Caller{}, nil, errors.Join(err, end())
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
	return bench.Caller{Do: do}, func() error { client.Close(); return end() }, nil
}

// other is a process that answers.
type other struct {
	process *exec.Cmd
	life    io.Closer // it lives until this is closed
}

func (o other) close() { _, _ = o.life.Close(), o.process.Wait() } // it has answered all

func startOther(ctx context.Context, mode string) (_ other, _ *shm.Mapping, err error) {
	file, err := shm.Create("limit", sharedSize())
	if err != nil {
		return other{}, nil, err
	}
	defer file.Close()
	exe, err := os.Executable()
	if err != nil {
		return other{}, nil, err
	}
	o := other{process: exec.CommandContext(ctx, exe)}
	o.process.Env = append(os.Environ(), otherSide+"="+mode)
	o.process.ExtraFiles = []*os.File{file}
	o.process.Stderr = os.Stderr
	ready, err := o.process.StdoutPipe()
	if err != nil {
		return other{}, nil, err
	}
	if o.life, err = o.process.StdinPipe(); err != nil {
		return other{}, nil, err
	}
	if err := o.process.Start(); err != nil {
		return other{}, nil, err
	}
	if _, err := ready.Read(make([]byte, 1)); err != nil {
		o.close()
		return other{}, nil, fmt.Errorf("the other side: %w", err)
	}
	memory, err := shm.Map(file, sharedSize(), true)
	if err != nil {
		o.close()
	}
	return o, memory, err
}

// answer is the other side: it answers until its standard input ends.
func answer(mode string) error {
	memory, err := shm.Map(os.NewFile(sharedFD, "limit"), sharedSize(), true)
	if err != nil {
		return err
	}
	end := func() {}
	if mode == viaFutex {
		go echoFutex(newFutexPair(memory.Bytes(), true)) // ends with the process
	} else {
		spin, err := time.ParseDuration(mode)
		if err != nil {
			return err
		}
		server, err := mailbox.NewServer(memory.Bytes(), 1, spin, func(request, answer []byte) []byte {
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

// echoFutex writes back whatever it reads.
func echoFutex(pair futexPair) {
	for last := uint32(0); ; {
		value, err := pair.sleep(last)
		if err != nil {
			continue // nobody asked for a long time
		}
		last = value
		pair.write(value)
	}
}
