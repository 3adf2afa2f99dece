package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	_ "image/jpeg" // formats of image.Decode
	_ "image/png"
	"io"
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/hostplugin"
)

const (
	side       = 64       // the model's images are side x side pixels
	channels   = 3        // red, green, blue
	maxBody    = 16 << 20 // bytes of a request
	maxPixels  = 64 << 20 // of an image, which may be much larger than its file
	maxRunning = 64       // requests at once; each has an image in memory
	maxBatch   = 16       // images that the model gets at once
	callTime   = 10 * time.Second

	statusGone = 499 // nobody sees it but the metrics: the client has gone
)

// service answers requests. All methods are safe for concurrent use.
type service struct {
	session  *hostplugin.Session
	batch    *hostplugin.Batch
	running  chan struct{} // has room for one token for each request
	draining atomic.Bool   // no more requests are taken
	metrics  metrics
}

// class is one of the model's answers.
type class struct {
	Label string  `json:"label" python:"label"`
	Score float64 `json:"score" python:"score"`
}

// newService makes the service of a model. The caller closes its batch, and then the session.
func newService(ctx context.Context, session *hostplugin.Session) (*service, error) {
	classify, err := session.Func(ctx, "classify")
	if err != nil {
		return nil, err
	}
	// Without BatchOptions.Wait nobody waits for others: a batch has the images that came while others ran.
	batch, err := classify.Batch(hostplugin.BatchOptions{
		DType: core.Uint8, Shape: []int{side, side, channels}, Max: maxBatch, Kw: hostplugin.Kw{"top": 3},
	})
	if err != nil {
		return nil, err
	}
	return &service{session: session, batch: batch, running: make(chan struct{}, maxRunning)}, nil
}

func (s *service) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /classify", s.serveClassify)
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { say(w, http.StatusOK, "ok") })
	mux.HandleFunc("GET /readyz", s.serveReady)
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, _ *http.Request) {
		s.metrics.write(w, len(s.running), s.batch.Stats())
	})
	return mux
}

func (s *service) serveReady(w http.ResponseWriter, _ *http.Request) {
	switch err := s.session.Err(); {
	case s.draining.Load():
		say(w, http.StatusServiceUnavailable, "ending")
	case err != nil:
		say(w, http.StatusServiceUnavailable, err.Error())
	default:
		say(w, http.StatusOK, "ready")
	}
}

func (s *service) serveClassify(w http.ResponseWriter, r *http.Request) {
	begun := time.Now()
	status, answer := s.answer(r.Context(), http.MaxBytesReader(w, r.Body, maxBody))
	s.metrics.note(status, time.Since(begun))
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	if err := json.NewEncoder(w).Encode(answer); err != nil {
		slog.Debug("a client has gone", slog.Any("cause", err))
	}
}

// answer gives the status and the body of the answer to an image.
func (s *service) answer(ctx context.Context, body io.Reader) (status int, answer any) {
	fail := func(status int, err error) (int, any) { return status, map[string]string{"error": err.Error()} }
	select {
	case s.running <- struct{}{}:
		defer func() { <-s.running }()
	default:
		return fail(http.StatusServiceUnavailable, errors.New("too many requests at once"))
	}
	pixels, err := decode(body)
	if tooLong, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return fail(http.StatusRequestEntityTooLarge, tooLong)
	}
	if err != nil {
		return fail(http.StatusBadRequest, err)
	}
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	classes, err := s.predict(ctx, pixels)
	switch {
	case err == nil:
		return http.StatusOK, map[string][]class{"classes": classes}
	case errors.Is(err, context.DeadlineExceeded):
		status = http.StatusGatewayTimeout
	case errors.Is(err, context.Canceled):
		return fail(statusGone, err)
	case errors.Is(err, core.ErrUnavailable), errors.Is(err, core.ErrClosed):
		status = http.StatusServiceUnavailable
	default:
		status = http.StatusInternalServerError
	}
	slog.Error("the model has not answered", slog.Any("cause", err))
	return fail(status, errors.New("the model has not answered")) // why is not the client's business
}

// predict asks the model, in a batch with others. It alone knows how images get there.
func (s *service) predict(ctx context.Context, pixels []uint8) (classes []class, err error) {
	result, err := s.batch.Call(ctx, func(row *core.View) error {
		image, err := core.Slice[uint8](row)
		copy(image, pixels)
		return err
	})
	if err != nil {
		return nil, err
	}
	err = result.Decode(&classes) // of this image
	return classes, errors.Join(err, result.Close())
}

// decode reads an image, unless it is too large, and makes it as large as the model wants it. So a batch never waits for a
// decoder or a slow client, and no large image for a batch.
func decode(body io.Reader) (pixels []uint8, err error) {
	var start bytes.Buffer
	c, _, err := image.DecodeConfig(io.TeeReader(body, &start))
	if err != nil {
		return nil, err
	}
	if c.Width == 0 || c.Height == 0 || int64(c.Width)*int64(c.Height) > maxPixels {
		return nil, fmt.Errorf("an image of %d x %d pixels; at most %d are taken", c.Width, c.Height, maxPixels)
	}
	picture, _, err := image.Decode(io.MultiReader(&start, body))
	if err != nil {
		return nil, err
	}
	b := picture.Bounds()
	for y := range side {
		for x := range side {
			r, g, blue, _ := picture.At(b.Min.X+x*b.Dx()/side, b.Min.Y+y*b.Dy()/side).RGBA() // 16 bits each
			pixels = append(pixels, uint8(r>>8), uint8(g>>8), uint8(blue>>8))
		}
	}
	return pixels, nil
}

func say(w http.ResponseWriter, status int, text string) {
	w.WriteHeader(status)
	_, _ = io.WriteString(w, text+"\n") // a client that has gone does not care
}
