package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"
	"io"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// held is a service whose model waits, when it is called, until let says that it may go on.
type held struct {
	*running
	file string
}

func startHeld(t *testing.T) held {
	t.Helper()
	python, folder := torchPython(t), t.TempDir()
	text, err := os.ReadFile("model.py")
	if err != nil {
		t.Fatal(err)
	}
	script, file := filepath.Join(folder, "model.py"), filepath.Join(folder, "go-on")
	text = fmt.Appendf(bytes.Replace(text, []byte("def classify("), []byte("def answer("), 1), `

import os
import time


def classify(images: torch.Tensor, top):
    while not os.path.exists(%q):
        time.sleep(0.005)
    return answer(images, top)
`, file)
	if err := os.WriteFile(script, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return held{start(t, python, script), file}
}

func (h held) let(t *testing.T, goOn bool) {
	t.Helper()
	err := os.Remove(h.file)
	if goOn {
		err = os.WriteFile(h.file, nil, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// until waits for what /metrics says.
func (r *running) until(t *testing.T, done func(now map[string]float64) bool) {
	t.Helper()
	for now := r.metrics(t); !done(now); {
		now = r.metrics(t)
	}
}

// sample is a request, and all classes as the model must see them, the most likely first.
type sample struct {
	body []byte
	want []class
}

// samples are images of n different colours. What the model says of them is worked out here once more.
func samples(t *testing.T, n int) []sample {
	t.Helper()
	names := []string{"red", "green", "blue", "yellow", "black", "white"}
	colours := [][3]float64{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}, {1, 1, 0}, {0, 0, 0}, {1, 1, 1}}
	all := make([]sample, n)
	for i := range all {
		c := color.RGBA{uint8(37 * i), uint8(101 * i), uint8(59 * i), 255}
		mean := [3]float64{float64(c.R) / 255, float64(c.G) / 255, float64(c.B) / 255}
		all[i].body = picture(t, c, png.Encode).Bytes()
		sum := 0.0
		for k, colour := range colours {
			distance := 0.0
			for axis := range mean {
				distance += (mean[axis] - colour[axis]) * (mean[axis] - colour[axis])
			}
			all[i].want = append(all[i].want, class{names[k], math.Exp(-4 * distance)})
			sum += all[i].want[k].Score
		}
		for k := range all[i].want {
			all[i].want[k].Score /= sum
		}
		slices.SortFunc(all[i].want, func(a, b class) int { return cmp.Compare(b.Score, a.Score) })
	}
	return all
}

// check holds that an answer is that to the sample, and to no other one.
func (s sample) check(status int, answer string) error {
	var got struct{ Classes []class }
	if err := json.Unmarshal([]byte(answer), &got); status != http.StatusOK || err != nil || len(got.Classes) != 3 {
		return fmt.Errorf("%d, %s: %w", status, answer, err)
	}
	for i, c := range got.Classes { // of two that are as likely, either may stand in front
		own := slices.IndexFunc(s.want, func(w class) bool { return w.Label == c.Label })
		if own < 0 || math.Abs(s.want[own].Score-c.Score) > 0.001 || math.Abs(s.want[i].Score-c.Score) > 0.001 {
			return fmt.Errorf("%+v, expected %+v", got.Classes, s.want)
		}
	}
	return nil
}

func asJPEG(w io.Writer, m image.Image) error { return jpeg.Encode(w, m, nil) }

// TestServiceBatches holds that requests at once share calls of the model, and that each gets its own answer, also if some
// have gone, and no more than the limit are taken.
func TestServiceBatches(t *testing.T) {
	t.Parallel()
	h := startHeld(t)
	var clients sync.WaitGroup
	gone, leave := context.WithCancel(t.Context())
	defer leave()
	const leaving = 20
	for i, s := range samples(t, maxRunning) {
		clients.Go(func() {
			if i >= leaving {
				if err := s.check(h.ask(t, "/classify", bytes.NewReader(s.body))); err != nil {
					t.Errorf("image %d: %v", i, err)
				}
				return
			}
			request, err := http.NewRequestWithContext(gone, http.MethodPost, h.url+"/classify", bytes.NewReader(s.body))
			if err != nil {
				t.Error(err)
				return
			}
			if response, err := h.client.Do(request); err == nil {
				response.Body.Close()
				t.Errorf("image %d has got %s", i, response.Status)
			}
		})
	}
	h.until(t, func(now map[string]float64) bool {
		return now["classify_batch_images_sum"]+now["classify_waiting"] == maxRunning
	})
	white := picture(t, color.White, asJPEG).Bytes()
	if status, answer := h.ask(t, "/classify", bytes.NewReader(white)); status != http.StatusServiceUnavailable || !strings.Contains(answer, "too many requests") {
		t.Errorf("one request more than the limit: %d, %s", status, answer)
	}
	leave()
	h.until(t, func(now map[string]float64) bool { return now["classify_running"] == maxRunning-leaving })
	h.let(t, true)
	clients.Wait()
	now := h.metrics(t)
	batches, images := now["classify_batch_images_count"], now["classify_batch_images_sum"]
	if images < maxRunning-leaving || batches > 10 || images/batches > maxBatch { // 2 that were held, and one for each 16 of the others
		t.Errorf("%v images in %v batches", images, batches)
	}
	if now["classify_gave_up_total"] != leaving || now[`classify_requests_total{code="499"}`] != leaving || now[`classify_requests_total{code="200"}`] != maxRunning-leaving {
		t.Errorf("%d clients have gone, and the metrics are %v", leaving, now)
	}
	status, answer := h.ask(t, "/classify", bytes.NewReader(white))
	if status != http.StatusOK || !strings.Contains(answer, `[{"label":"white"`) {
		t.Errorf("a white JPEG image: %d, %s", status, answer)
	}
	h.end()
	if err := <-h.ended; err != nil {
		t.Error(err)
	}
}

// TestServiceFinishes: requests that are under way when the service is to end get their answers: those that the model has,
// those that wait for it, and one whose image has not come as a whole.
func TestServiceFinishes(t *testing.T) {
	t.Parallel()
	h := startHeld(t)
	all := samples(t, 41)
	late, whole := all[0], all[1:]
	var clients sync.WaitGroup
	for i, s := range whole {
		clients.Go(func() {
			if err := s.check(h.ask(t, "/classify", bytes.NewReader(s.body))); err != nil {
				t.Errorf("image %d: %v", i, err)
			}
		})
	}
	body, write := io.Pipe()
	clients.Go(func() {
		if err := late.check(h.ask(t, "/classify", body)); err != nil {
			t.Errorf("the image that comes late: %v", err)
		}
	})
	if _, err := write.Write(late.body[:40]); err != nil {
		t.Fatal(err)
	}
	h.until(t, func(now map[string]float64) bool {
		return now["classify_running"] == 41 && now["classify_batch_images_sum"]+now["classify_waiting"] == 40
	})
	h.end()
	select {
	case err := <-h.ended:
		t.Fatalf("the service has ended before its last answers: %v", err)
	case <-waitClosed(h.url):
	}
	h.let(t, true)
	if _, err := write.Write(late.body[40:]); err != nil {
		t.Fatal(err)
	}
	write.Close()
	clients.Wait()
	if err := <-h.ended; err != nil {
		t.Error(err)
	}
}

// TestServiceEndsUnderLoad: clients that ask without a pause get right answers, until nobody takes their requests.
func TestServiceEndsUnderLoad(t *testing.T) {
	t.Parallel()
	r := start(t, torchPython(t), "model.py")
	var clients sync.WaitGroup
	for i, s := range samples(t, 32) {
		clients.Go(func() {
			for n := 0; ; n++ {
				request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, r.url+"/classify", bytes.NewReader(s.body))
				if err != nil {
					t.Error(err)
					return
				}
				response, err := r.client.Do(request)
				if err != nil { // nobody listens any more
					if n == 0 {
						t.Errorf("client %d: %v", i, err)
					}
					return
				}
				answer, err := io.ReadAll(response.Body)
				response.Body.Close()
				if err == nil {
					err = s.check(response.StatusCode, string(answer))
				}
				if err != nil {
					t.Errorf("client %d, request %d: %v", i, n, err)
					return
				}
			}
		})
	}
	r.until(t, func(now map[string]float64) bool { return now[`classify_requests_total{code="200"}`] > 1000 })
	r.end()
	if err := <-r.ended; err != nil {
		t.Error(err)
	}
	clients.Wait()
}
