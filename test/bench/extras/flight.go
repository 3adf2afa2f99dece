package main

import (
	"bufio"
	"context"
	_ "embed" // the server
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/flight"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

//go:embed server.py
var script string

// serve measures how long it takes to get an array from a server of Arrow Flight in Python. The benchmark
// asks for measurements by lines of JSON (see ways.py of package bench), until in ends.
func serve(ctx context.Context, python, socket string, in io.Reader, out io.Writer) (err error) {
	server := exec.CommandContext(ctx, python, "-c", script, socket)
	server.Stderr = os.Stderr
	life, err := server.StdinPipe()
	if err != nil {
		return err
	}
	says, err := server.StdoutPipe()
	if err != nil {
		return err
	}
	if err := server.Start(); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, life.Close(), server.Wait()) }()
	version, err := bufio.NewReader(says).ReadString('\n')
	if err != nil {
		return fmt.Errorf("the server: %w", err)
	}
	client, err := flight.NewClientWithMiddleware("unix:"+socket, nil, nil,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(math.MaxInt32)))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, client.Close()) }()
	answers := json.NewEncoder(out)
	if err := answers.Encode(map[string]map[string]string{"versions": {"pyarrow": strings.TrimSpace(version)}}); err != nil {
		return err
	}
	for requests := json.NewDecoder(in); ; {
		var r request
		if err := requests.Decode(&r); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		if err := answers.Encode(r.measure(ctx, client)); err != nil {
			return err
		}
	}
}

type request struct {
	Bytes int `json:"bytes"`
	Warm  int `json:"warm"`
	Count int `json:"count"`
}

type answer struct {
	Took  []time.Duration `json:"took"`
	Error string          `json:"error,omitempty"`
}

func (r request) measure(ctx context.Context, client flight.Client) answer {
	if _, err := get(ctx, client, "keep", r.Bytes); err != nil { // it makes the array
		return answer{Error: err.Error()}
	}
	var a answer
	for i := range r.Warm + r.Count {
		start := time.Now()
		batches, err := get(ctx, client, "get", r.Bytes)
		if err == nil {
			err = check(batches, r.Bytes)
		}
		took := time.Since(start)
		if err != nil {
			return answer{Error: err.Error()}
		}
		if i >= r.Warm {
			a.Took = append(a.Took, took)
		}
		if r.Bytes >= 1<<20 {
			runtime.GC() // here, and not while others are measured
		}
	}
	if _, err := get(ctx, client, "keep", 0); err != nil { // it drops a large one
		return answer{Error: err.Error()}
	}
	return a
}

// get takes all batches of an array into this process; with "keep" there are none.
func get(ctx context.Context, client flight.Client, what string, bytes int) ([]*array.Float32, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := client.DoGet(ctx, &flight.Ticket{Ticket: []byte(what + " " + strconv.Itoa(bytes))})
	if err != nil {
		return nil, err
	}
	reader, err := flight.NewRecordReader(stream)
	if err != nil {
		return nil, err
	}
	defer reader.Release()
	var batches []*array.Float32
	for reader.Next() {
		column, ok := reader.RecordBatch().Column(0).(*array.Float32)
		if !ok {
			return nil, errors.New("a column of another type came")
		}
		column.Retain() // for as long as Go keeps it
		batches = append(batches, column)
	}
	return batches, reader.Err()
}

// check holds what came to what the server has: how much, and the last element.
func check(batches []*array.Float32, bytes int) error {
	const period = 4093
	n := 0
	for _, b := range batches {
		n += b.Len()
	}
	if n != bytes/4 {
		return fmt.Errorf("%d elements came, expected %d", n, bytes/4)
	}
	last := batches[len(batches)-1]
	if got, want := last.Value(last.Len()-1), float32((n-1)%period); got != want {
		return fmt.Errorf("the last element is %v, expected %v", got, want)
	}
	return nil
}
