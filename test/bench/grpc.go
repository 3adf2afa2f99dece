package main

import (
	"context"
	_ "embed" // the server
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/ndbridge/ndbridge/internal/bench"
)

//go:embed grpc_server.py
var grpcScript string

// grpcPeer takes arrays over gRPC as bytes, from a server in Python.
type grpcPeer struct {
	process *exec.Cmd
	life    io.Closer
	conn    *grpc.ClientConn
}

// startGRPC starts the server; dir has the Python files of package bench.
func startGRPC(ctx context.Context, opts options, dir string) (_ *grpcPeer, err error) {
	script, socket := filepath.Join(dir, "grpc_server.py"), filepath.Join(dir, "grpc")
	if err := os.WriteFile(script, []byte(grpcScript), 0o600); err != nil {
		return nil, err
	}
	p := &grpcPeer{process: exec.CommandContext(ctx, opts.python, script, socket)}
	p.process.Stderr = opts.program
	if p.life, err = p.process.StdinPipe(); err != nil {
		return nil, err
	}
	p.conn, err = grpc.NewClient("unix:"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return nil, err
	}
	return p, p.process.Start()
}

func (p *grpcPeer) close() error {
	return errors.Join(p.conn.Close(), p.life.Close(), p.process.Wait())
}

// turn lets the server make the array of a size before the calls, and drop it afterwards if it is large.
func (p *grpcPeer) turn(bytes, smallest int, calls bench.Turn) bench.Turn {
	return func(ctx context.Context) ([]time.Duration, error) {
		if err := p.get(ctx, "keep "+strconv.Itoa(bytes), 0); err != nil {
			return nil, err
		}
		took, err := calls(ctx)
		return took, errors.Join(err, p.get(ctx, "keep "+strconv.Itoa(smallest), 0))
	}
}

// caller takes the array of a size into one buffer of this process.
func (p *grpcPeer) caller(bytes int) bench.Caller {
	return bench.Caller{
		Do: func(ctx context.Context) error { return p.get(ctx, strconv.Itoa(bytes), bytes) },
		Tidy: func() error {
			if bytes >= bench.MiB {
				runtime.GC() // here, and not while others are measured
			}
			return nil
		},
	}
}

func (p *grpcPeer) get(ctx context.Context, what string, bytes int) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := p.conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true}, "/bench.Arrays/Get",
		grpc.ForceCodec(rawCodec{}), grpc.WaitForReady(true))
	if err != nil {
		return err
	}
	request, data := []byte(what), make([]byte, 0, bytes)
	if err := errors.Join(stream.SendMsg(&request), stream.CloseSend()); err != nil {
		return err
	}
	for err == nil {
		err = stream.RecvMsg(&data)
	}
	if !errors.Is(err, io.EOF) {
		return err
	}
	if len(data) != bytes {
		return fmt.Errorf("%d bytes came, expected %d", len(data), bytes)
	}
	if bytes == 0 {
		return nil
	}
	return bench.Check(data)
}

// rawCodec appends each message's bytes to a slice.
type rawCodec struct{}

func (rawCodec) Name() string { return "raw" }

func (rawCodec) Marshal(v any) ([]byte, error) {
	data, ok := v.(*[]byte)
	if !ok {
		return nil, fmt.Errorf("cannot send a %T", v)
	}
	return *data, nil
}

func (rawCodec) Unmarshal(message []byte, v any) error {
	data, ok := v.(*[]byte)
	if !ok {
		return fmt.Errorf("cannot receive into a %T", v)
	}
	*data = append(*data, message...)
	return nil
}
