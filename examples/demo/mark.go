package main

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/hostplugin"
)

// thickness is that of the frame, in pixels.
const thickness = 16

// mark inverts a frame around the face, in place: in the pages of the photo that the face is cut out of.
// It gives the number of pixels.
func mark(ctx context.Context, s *hostplugin.Session) (pixels int, err error) {
	face, err := s.View(ctx, "face", hostplugin.Writable())
	if err != nil {
		return 0, err
	}
	defer func() {
		if closed := face.Close(); err == nil {
			err = closed
		}
	}()
	rows, err := core.Rows[uint8](face)
	if err != nil {
		return 0, err
	}
	invert := func(run []uint8) {
		for i := range run {
			run[i] = ^run[i]
		}
		pixels += len(run)
	}
	for y, row := range rows {
		if y < thickness || y >= face.Dim(0)-thickness {
			invert(row)
			continue
		}
		invert(row[:thickness])
		invert(row[len(row)-thickness:])
	}
	return pixels, nil
}

// transcript keeps what the program prints. It is safe for concurrent use.
type transcript struct {
	mu   sync.Mutex
	text bytes.Buffer
	more chan struct{} // has a token if text has grown since somebody looked
}

func newTranscript() *transcript { return &transcript{more: make(chan struct{}, 1)} }

// Write takes what the program prints.
func (t *transcript) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	select {
	case t.more <- struct{}{}:
	default:
	}
	return t.text.Write(p)
}

// wait waits until the program has printed a line that begins so, and gives it.
func (t *transcript) wait(ctx context.Context, s *hostplugin.Session, start string) (string, error) {
	for {
		if line, ok := t.find(start); ok {
			return line, nil
		}
		select {
		case <-t.more:
		case <-s.Done():
			return "", s.Err()
		case <-ctx.Done():
			return "", fmt.Errorf("waiting until the program prints %q: %w", start, ctx.Err())
		}
	}
}

func (t *transcript) find(start string) (string, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for line := range strings.Lines(t.text.String()) {
		if strings.HasPrefix(line, start) && strings.HasSuffix(line, "\n") {
			return strings.TrimSuffix(line, "\n"), true
		}
	}
	return "", false
}
