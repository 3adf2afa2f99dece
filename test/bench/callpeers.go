package main

import (
	"bufio"
	"bytes"
	"context"
	_ "embed" // the server
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"

	"google.golang.org/grpc"

	"github.com/ndbridge/ndbridge/internal/bench"
)

//go:embed http_server.py
var httpScript string

//go:embed ray_ways.py
var rayScript string

// The usual ways to call a function of another process with an array; each gives its last element back.
const (
	grpcCall = "gRPC bytes, call"
	httpJSON = "HTTP with JSON, call"
	httpRaw  = "HTTP with bytes, call"
	rayCall  = "Ray, call"
)

// callPeers are those that calls are compared with.
func callPeers() []bench.Key {
	return []bench.Key{
		{Way: bench.PipeCall, Framework: "numpy"},
		{Way: bench.TorchCall, Framework: "torch"},
		{Way: grpcCall, Framework: "numpy"},
		{Way: httpRaw, Framework: "numpy"},
		{Way: httpJSON, Framework: "numpy"},
		{Way: rayCall, Framework: "numpy"},
	}
}

// addWorkerCalls has the calls measured that a worker makes.
func (l *lab) addWorkerCalls(w *bench.Worker) {
	plan := l.plan
	plan.Sizes = callSizes(&l.plan)
	plan.AddWorker(w, bench.PipeCall, "numpy", bench.Copied)
	plan.AddWorker(w, bench.TorchCall, "torch", bench.AnySize)
	l.plan.Subjects, l.plan.LeftOut = plan.Subjects, plan.LeftOut
}

// ray starts a worker that calls an actor of Ray.
func (l *lab) ray(ctx context.Context) (func() error, error) {
	if l.opts.ray == "" {
		return l.without(rayCall, "there is no interpreter with Ray"), nil
	}
	script, files := filepath.Join(l.dir, "ray_ways.py"), filepath.Join(l.dir, "ray")
	if err := os.WriteFile(script, []byte(rayScript), 0o600); err != nil {
		return nil, err
	}
	w, err := bench.StartWorker(exec.CommandContext(ctx, l.opts.ray, script, files), l.opts.program)
	if err != nil {
		return l.without(rayCall, err.Error()), nil
	}
	l.atEnd(w.Close)
	return func() error {
		plan := l.plan
		plan.Sizes = callSizes(&l.plan)
		plan.AddWorker(w, rayCall, "numpy", bench.Copied)
		l.plan.Subjects, l.plan.LeftOut = plan.Subjects, plan.LeftOut
		return nil
	}, nil
}

// addPeer has calls measured that this process makes: last sends an array of float32, and gives the number that came back.
func (l *lab) addPeer(way string, pace bench.Pace, last func(ctx context.Context, array []byte) (float32, error)) {
	for _, size := range callSizes(&l.plan) {
		array, number := make([]byte, size), float32(0)
		caller := bench.Caller{
			Do: func(ctx context.Context) error {
				number++
				binary.LittleEndian.PutUint32(array[size-4:], math.Float32bits(number))
				got, err := last(ctx, array)
				return errors.Join(err, isNumber(float64(got), float64(number)))
			},
			Tidy: func() error {
				if size >= bench.MiB {
					runtime.GC() // here, and not while others are measured
				}
				return nil
			},
		}
		calls, every := pace(&l.plan, size)
		l.plan.Add(bench.Key{Way: way, Framework: "numpy", Bytes: size}, calls, caller).Every = every
	}
}

// last calls the function of the server of gRPC.
func (p *grpcPeer) last(ctx context.Context, array []byte) (float32, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := p.conn.NewStream(ctx, &grpc.StreamDesc{ClientStreams: true}, "/bench.Arrays/Last",
		grpc.ForceCodec(rawCodec{}), grpc.WaitForReady(true))
	if err != nil {
		return 0, err
	}
	for len(array) > 0 {
		const most = bench.MiB // the default limit of a message is 4 MiB
		piece := array[:min(len(array), most)]
		if err := stream.SendMsg(&piece); err != nil {
			return 0, err
		}
		array = array[len(piece):]
	}
	var answer []byte
	if err := errors.Join(stream.CloseSend(), stream.RecvMsg(&answer)); err != nil {
		return 0, err
	}
	if len(answer) != 4 {
		return 0, fmt.Errorf("an answer of %d bytes", len(answer))
	}
	return math.Float32frombits(binary.LittleEndian.Uint32(answer)), nil
}

// httpPeer calls a server in Python, on connections that stay.
type httpPeer struct {
	process *exec.Cmd
	life    io.Closer
	client  *http.Client
}

// http starts the server.
func (l *lab) http(ctx context.Context) (func() error, error) {
	script, socket := filepath.Join(l.dir, "http_server.py"), filepath.Join(l.dir, "http")
	if err := os.WriteFile(script, []byte(httpScript), 0o600); err != nil {
		return nil, err
	}
	p := &httpPeer{process: exec.CommandContext(ctx, l.opts.python, script, socket)}
	p.client = &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", socket)
	}}}
	p.process.Stderr = l.opts.program
	ready, err1 := p.process.StdoutPipe()
	life, err2 := p.process.StdinPipe() // it lives until this is closed
	if err := errors.Join(err1, err2); err != nil {
		return nil, err
	}
	p.life = life
	if err := p.process.Start(); err != nil {
		return nil, err
	}
	l.atEnd(func() error {
		p.client.CloseIdleConnections()
		return errors.Join(p.life.Close(), p.process.Wait())
	})
	if _, err := bufio.NewReader(ready).ReadString('\n'); err != nil {
		return nil, fmt.Errorf("the server of HTTP: %w", err)
	}
	return func() error {
		l.addPeer(httpRaw, bench.Copied, func(ctx context.Context, array []byte) (float32, error) {
			return p.last(ctx, "/raw", array)
		})
		l.addPeer(httpJSON, slowest, p.lastOfNumbers)
		return nil
	}, nil
}

// slowest is the pace of what takes seconds for large arrays.
func slowest(p *bench.Plan, size int) (calls, every int) {
	calls, every = bench.Copied(p, size)
	if size >= 32*bench.MiB {
		every = max(p.Rounds/2, 1)
	}
	return min(calls, 2), every
}

// lastOfNumbers sends an array as JSON.
func (p *httpPeer) lastOfNumbers(ctx context.Context, array []byte) (float32, error) {
	numbers := make([]float32, len(array)/4)
	if _, err := binary.Decode(array, binary.LittleEndian, numbers); err != nil {
		return 0, err
	}
	text, err := json.Marshal(numbers)
	if err != nil {
		return 0, err
	}
	return p.last(ctx, "/json", text)
}

func (p *httpPeer) last(ctx context.Context, path string, body []byte) (number float32, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://server"+path, bytes.NewReader(body))
	if err != nil {
		return 0, err
	}
	answer, err := p.client.Do(request)
	if err != nil {
		return 0, err
	}
	text, err := io.ReadAll(answer.Body)
	if err = errors.Join(err, answer.Body.Close()); err != nil {
		return 0, err
	}
	if answer.StatusCode != http.StatusOK {
		return 0, fmt.Errorf("%s: %s", answer.Status, text)
	}
	return number, json.Unmarshal(text, &number)
}
