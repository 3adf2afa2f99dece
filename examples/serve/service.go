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
	callTime   = 10 * time.Second
)

// service answers requests. All methods are safe for concurrent use.
type service struct {
	session  *hostplugin.Session
	classify *hostplugin.Func
	images   *hostplugin.Pool
	running  chan struct{} // has room for one token for each request
	draining atomic.Bool   // no more requests are taken
	metrics  metrics
}

// class is one of the model's answers.
type class struct {
	Label string  `json:"label" python:"label"`
	Score float64 `json:"score" python:"score"`
}

// newService makes the service of a model. The session closes what it has.
func newService(ctx context.Context, session *hostplugin.Session) (*service, error) {
	classify, err := session.Func(ctx, "classify")
	if err != nil {
		return nil, err
	}
	images, err := session.Pool(core.Uint8, side, side, channels)
	if err != nil {
		return nil, err
	}
	return &service{session: session, classify: classify, images: images, running: make(chan struct{}, maxRunning)}, nil
}

func (s *service) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /classify", s.serveClassify)
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { say(w, http.StatusOK, "ok") })
	mux.HandleFunc("GET /readyz", s.serveReady)
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, _ *http.Request) { s.metrics.write(w, len(s.running)) })
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
	picture, err := decode(body)
	if tooLong, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return fail(http.StatusRequestEntityTooLarge, tooLong)
	}
	if err != nil {
		return fail(http.StatusBadRequest, err)
	}
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	classes, err := s.predict(ctx, picture)
	switch {
	case err == nil:
		return http.StatusOK, map[string][]class{"classes": classes}
	case errors.Is(err, context.DeadlineExceeded):
		status = http.StatusGatewayTimeout
	case errors.Is(err, core.ErrUnavailable), errors.Is(err, core.ErrClosed), errors.Is(err, context.Canceled):
		status = http.StatusServiceUnavailable
	default:
		status = http.StatusInternalServerError
	}
	slog.Error("the model has not answered", slog.Any("cause", err))
	return fail(status, errors.New("the model has not answered")) // why is not the client's business
}

// predict asks the model. It alone knows how images get there.
func (s *service) predict(ctx context.Context, picture image.Image) (classes []class, err error) {
	view, err := s.images.Get()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, view.Close()) }() // back into the pool
	pixels, err := core.Slice[uint8](view)
	if err != nil {
		return nil, err
	}
	fill(pixels, picture)
	result, err := s.classify.Call(ctx, view, hostplugin.Kw{"top": 3})
	if err != nil {
		return nil, err
	}
	err = result.Decode(&classes)
	return classes, errors.Join(err, result.Close())
}

// decode reads an image, unless it is too large.
func decode(body io.Reader) (image.Image, error) {
	var start bytes.Buffer
	c, _, err := image.DecodeConfig(io.TeeReader(body, &start))
	if err != nil {
		return nil, err
	}
	if c.Width == 0 || c.Height == 0 || int64(c.Width)*int64(c.Height) > maxPixels {
		return nil, fmt.Errorf("an image of %d x %d pixels; at most %d are taken", c.Width, c.Height, maxPixels)
	}
	picture, _, err := image.Decode(io.MultiReader(&start, body))
	return picture, err
}

// fill writes an image, as large as the model wants it, over pixels: row by row, three bytes each.
func fill(pixels []uint8, picture image.Image) {
	b := picture.Bounds()
	for y := range side {
		for x := range side {
			r, g, blue, _ := picture.At(b.Min.X+x*b.Dx()/side, b.Min.Y+y*b.Dy()/side).RGBA() // 16 bits each
			at := (y*side + x) * channels
			pixels[at], pixels[at+1], pixels[at+2] = uint8(r>>8), uint8(g>>8), uint8(blue>>8)
		}
	}
}

func say(w http.ResponseWriter, status int, text string) {
	w.WriteHeader(status)
	_, _ = io.WriteString(w, text+"\n") // a client that has gone does not care
}
