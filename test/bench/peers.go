package main

import (
	"bufio"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

// peers is the program that hands arrays over in the usual ways (see peers.py).
type peers struct {
	process *exec.Cmd
	in      io.WriteCloser
	out     *bufio.Reader
	conn    *grpc.ClientConn
}

func startPeers(ctx context.Context, python, dir string) (*peers, error) {
	script, socket := filepath.Join(dir, "peers.py"), filepath.Join(dir, "peers")
	if err := os.WriteFile(script, []byte(peersScript), 0o600); err != nil {
		return nil, err
	}
	p := &peers{process: exec.CommandContext(ctx, python, script, socket)}
	p.process.Stderr = os.Stderr
	out, err := p.process.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.out = bufio.NewReader(out)
	if p.in, err = p.process.StdinPipe(); err != nil {
		return nil, err
	}
	p.conn, err = grpc.NewClient("unix:"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return nil, err
	}
	return p, p.process.Start()
}

func (p *peers) close() error {
	return errors.Join(p.conn.Close(), p.in.Close(), p.process.Wait())
}

// ask sends one command line and reads the answer.
func (p *peers) ask(command string) (s sample, err error) {
	if _, err := fmt.Fprintln(p.in, command); err != nil {
		return s, err
	}
	line, err := p.out.ReadBytes('\n')
	if err != nil {
		return s, fmt.Errorf("%s: %w", command, err)
	}
	return s, json.Unmarshal(line, &s)
}

// prepare makes the array that all ways hand over.
func (p *peers) prepare(bytes int) error {
	_, err := p.ask(fmt.Sprintf("prepare %d", bytes))
	return err
}

// way is one that Python measures by itself.
func (p *peers) way(name string) way {
	return way{name, func(context.Context, int, bool) (sample, error) { return p.ask(name) }}
}

// stream takes the array over gRPC: from Python's server, in messages of raw bytes, into one buffer
// of this process.
func (p *peers) stream(ctx context.Context, bytes int, _ bool) (sample, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	start := time.Now()
	stream, err := p.conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true}, "/bench.Arrays/Get",
		grpc.ForceCodec(rawCodec{}), grpc.WaitForReady(true))
	if err != nil {
		return sample{}, err
	}
	data := make([]byte, 0, bytes)
	if err := errors.Join(stream.SendMsg(&[]byte{}), stream.CloseSend()); err != nil {
		return sample{}, err
	}
	for err == nil {
		err = stream.RecvMsg(&data)
	}
	if !errors.Is(err, io.EOF) {
		return sample{}, err
	}
	s := sample{View: time.Since(start)}
	if err := checkSum(sumBytes(data), len(data)/8); err != nil {
		return sample{}, err
	}
	s.Read = time.Since(start)
	return s, nil
}

// sumBytes is sum over an array that came as bytes.
func sumBytes(data []byte) float64 {
	at := func(i int) float64 { return math.Float64frombits(binary.LittleEndian.Uint64(data[i:])) }
	var a, b, c, d float64
	for ; len(data) >= 32; data = data[32:] {
		a += at(0)
		b += at(8)
		c += at(16)
		d += at(24)
	}
	for ; len(data) >= 8; data = data[8:] {
		a += at(0)
	}
	return a + b + c + d
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
