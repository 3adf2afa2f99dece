package main

import (
	"bufio"
	"context"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/ndbridge/ndbridge/hostplugin"
)

// TestPageStaysUntilCtrlC fetches the page after the demo has said where it is, ends the demo as Ctrl-C does, and fetches in
// vain.
func TestPageStaysUntilCtrlC(t *testing.T) {
	t.Parallel()
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	training, err := train(t.Context(), "build/ndbridge", os.Getenv(pythonVariable))
	if err != nil {
		t.Fatal(err)
	}
	defer training.end()
	host, err := hostplugin.New(hostplugin.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer host.Close()
	session, err := attach(ctx, host, training.name) // waits until it listens
	if err != nil {
		t.Fatal(err)
	}
	if err := session.Close(); err != nil {
		t.Error(err)
	}
	read, write := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		err := offer(ctx, newShow(write), "build/ndbridge", training, true)
		_ = write.Close() // of a pipe it does not fail
		ended <- err
	}()
	address := ""
	for lines := bufio.NewScanner(read); address == "" && lines.Scan(); {
		if _, found, ok := strings.Cut(lines.Text(), "http://"); ok {
			address = "http://" + found
		}
	}
	if err := fetch(t.Context(), address); err != nil {
		t.Errorf("the page does not stay: %v", err)
	}
	interrupt()
	if err := <-ended; err != nil {
		t.Errorf("the demo was interrupted, and says %v", err)
	}
	if err := fetch(t.Context(), address); err == nil {
		t.Error("the page outlives the demo")
	}
}
