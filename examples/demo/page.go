package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"time"
)

// shown is how long the page is there for somebody at a terminal.
const shown = 10 * time.Minute

// offer lets "ndbridge inspect" show the training, fetches the page, and says where it is. If it stays, it does so until
// the context's end, which is no error, but not for ever.
func offer(ctx context.Context, s *show, command string, t *training, stays bool) error {
	inspect := exec.CommandContext(ctx, command, "inspect", "--attach", t.name)
	inspect.Cancel = func() error { return inspect.Process.Signal(os.Interrupt) }
	inspect.Stderr = os.Stderr
	out, err := inspect.StdoutPipe()
	if err != nil {
		return err
	}
	if err := inspect.Start(); err != nil {
		return err
	}
	defer func() {
		_ = inspect.Process.Signal(os.Interrupt) // it may have ended by the Ctrl-C that ends the demo
		_ = inspect.Wait()                       // its status is that of the signal
	}()
	address, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		return fmt.Errorf("ndbridge inspect gave no address: %w", err)
	}
	address = strings.TrimSpace(address)
	if err := fetch(ctx, address); err != nil {
		return err
	}
	s.page(address, stays)
	if s.err != nil || !stays {
		return s.err
	}
	ended := make(chan error, 1)
	go func() { _, err := io.Copy(io.Discard, out); ended <- err }()
	select {
	case <-ctx.Done():
		return nil
	case <-time.After(shown):
		return nil
	case <-ended:
		return errors.New("ndbridge inspect has ended")
	}
}

// fetch gets the page, as a browser does.
func fetch(ctx context.Context, address string) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return err
	}
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close() //nolint:errcheck // it was read
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK || !bytes.Contains(text, []byte("<title>ndbridge inspect</title>")) {
		return fmt.Errorf("%s is not the page of ndbridge inspect: %s", address, response.Status)
	}
	return nil
}
