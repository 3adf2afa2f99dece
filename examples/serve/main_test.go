package main

import (
	"bytes"
	"context"
	"encoding/json"
	"image"
	"image/color"
	"image/draw"
	"image/jpeg"
	"image/png"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"

	"go.uber.org/goleak"

	"github.com/ndbridge/ndbridge/hostplugin"
	"github.com/ndbridge/ndbridge/internal/golden"
)

func TestMain(m *testing.M) {
	if os.Getenv("NDBRIDGE_TEST_PYTHON") == "" || os.Getenv("NDBRIDGE_LIB") == "" {
		log.Fatal("NDBRIDGE_TEST_PYTHON and NDBRIDGE_LIB are not set; run make test")
	}
	goleak.VerifyTestMain(m)
}

// running is a service under test.
type running struct {
	url    string
	client *http.Client
	end    context.CancelFunc
	ended  chan error
}

func start(t *testing.T, script string) *running {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "localhost:0")
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	ctx, cancel := context.WithCancel(t.Context())
	r := &running{"http://" + listener.Addr().String(), &http.Client{Transport: transport}, cancel, make(chan error, 1)}
	go func() {
		r.ended <- run(ctx, listener, hostplugin.Program{Script: script, Python: os.Getenv("NDBRIDGE_TEST_PYTHON")})
	}()
	t.Cleanup(cancel)
	return r
}

// ask makes a request; a body that is not nil is posted.
func (r *running) ask(t *testing.T, path string, body io.Reader) (status int, answer string) {
	t.Helper()
	method := http.MethodGet
	if body != nil {
		method = http.MethodPost
	}
	request, err := http.NewRequestWithContext(t.Context(), method, r.url+path, body)
	if err != nil {
		t.Fatal(err)
	}
	response, err := r.client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(text)
}

// picture is an image of one colour.
func picture(t *testing.T, c color.Color, encode func(io.Writer, image.Image) error) *bytes.Buffer {
	t.Helper()
	m := image.NewRGBA(image.Rect(0, 0, 100, 40))
	draw.Draw(m, m.Bounds(), image.NewUniform(c), image.Point{}, draw.Src)
	var b bytes.Buffer
	if err := encode(&b, m); err != nil {
		t.Fatal(err)
	}
	return &b
}

func asJPEG(w io.Writer, m image.Image) error { return jpeg.Encode(w, m, nil) }

// first gives the most likely class of an answer.
func first(t *testing.T, answer string) class {
	t.Helper()
	var got struct{ Classes []class }
	if err := json.Unmarshal([]byte(answer), &got); err != nil || len(got.Classes) != 3 {
		t.Fatalf("%v: %s", err, answer)
	}
	return got.Classes[0]
}

func TestService(t *testing.T) {
	t.Parallel()
	r := start(t, "model.py")
	var clients sync.WaitGroup
	for want, body := range map[string]*bytes.Buffer{
		"red": picture(t, color.RGBA{255, 10, 10, 255}, png.Encode), "blue": picture(t, color.RGBA{0, 0, 250, 255}, asJPEG),
		"white": picture(t, color.White, asJPEG), "black": picture(t, color.Black, png.Encode),
	} {
		clients.Go(func() {
			for range 5 {
				status, answer := r.ask(t, "/classify", bytes.NewReader(body.Bytes()))
				if status != http.StatusOK {
					t.Errorf("%s: %d, %s", want, status, answer)
				} else if c := first(t, answer); c.Label != want || c.Score < 0.5 {
					t.Errorf("%s is taken for %+v", want, c)
				}
			}
		})
	}
	clients.Wait()
	sky, err := os.ReadFile("sky.png")
	if err != nil {
		t.Fatal(err)
	}
	if status, answer := r.ask(t, "/classify", bytes.NewReader(sky)); status != http.StatusOK {
		t.Errorf("sky.png: %d, %s", status, answer)
	} else {
		golden.Shown(t, "README.md", "text", answer)
	}
	huge := picture(t, color.White, png.Encode).Bytes()
	copy(huge[16:], []byte{0, 1, 0, 0, 0, 1, 0, 0}) // 65536 x 65536; the checksum is wrong then, too
	for name, c := range map[string]struct {
		body   io.Reader
		status int
	}{
		"no image": {strings.NewReader("hello"), http.StatusBadRequest}, "a huge image": {bytes.NewReader(huge), http.StatusBadRequest},
		"a part": {bytes.NewReader(picture(t, color.White, png.Encode).Bytes()[:60]), http.StatusBadRequest},
	} {
		if status, answer := r.ask(t, "/classify", c.body); status != c.status || !strings.Contains(answer, `"error"`) {
			t.Errorf("%s: %d, %s", name, status, answer)
		}
	}
	for path, want := range map[string]string{
		"/healthz": "ok\n", "/readyz": "ready\n", "/metrics": `classify_requests_total{code="200"} 21` + "\n" + `classify_requests_total{code="400"} 3`,
	} {
		if status, answer := r.ask(t, path, nil); status != http.StatusOK || !strings.Contains(answer, want) {
			t.Errorf("%s: %d, %s", path, status, answer)
		}
	}
	if status, _ := r.ask(t, "/classify", nil); status != http.StatusMethodNotAllowed {
		t.Errorf("GET /classify: %d", status)
	}
	r.end()
	if err := <-r.ended; err != nil {
		t.Error(err)
	}
}

// TestServiceFinishes: a request that is under way when the service is to end gets its answer.
func TestServiceFinishes(t *testing.T) {
	t.Parallel()
	r := start(t, "model.py")
	if status, _ := r.ask(t, "/readyz", nil); status != http.StatusOK {
		t.Fatalf("readyz: %d", status)
	}
	body, write := io.Pipe()
	image := picture(t, color.RGBA{0, 255, 0, 255}, png.Encode).Bytes()
	done := make(chan struct{})
	go func() {
		defer close(done)
		if status, answer := r.ask(t, "/classify", body); status != http.StatusOK {
			t.Errorf("the request that was under way: %d, %s", status, answer)
		} else if c := first(t, answer); c.Label != "green" {
			t.Errorf("green is taken for %+v", c)
		}
	}()
	if _, err := write.Write(image[:40]); err != nil {
		t.Fatal(err)
	}
	for text := ""; !strings.Contains(text, "classify_running 1\n"); {
		_, text = r.ask(t, "/metrics", nil)
	}
	r.end()
	select {
	case err := <-r.ended:
		t.Fatalf("the service has ended before its last answer: %v", err)
	case <-waitClosed(r.url):
	}
	if _, err := write.Write(image[40:]); err != nil {
		t.Fatal(err)
	}
	write.Close()
	<-done
	if err := <-r.ended; err != nil {
		t.Error(err)
	}
}

// waitClosed tells when nobody listens at an address any more.
func waitClosed(url string) <-chan struct{} {
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		for {
			c, err := new(net.Dialer).DialContext(context.Background(), "tcp", strings.TrimPrefix(url, "http://"))
			if err != nil {
				return
			}
			c.Close()
		}
	}()
	return closed
}

// TestServiceOfModelThatDies: the service ends with its model, and says why.
func TestServiceOfModelThatDies(t *testing.T) {
	t.Parallel()
	script := t.TempDir() + "/model.py"
	const dies = "import os, signal\ndef classify(image, top):\n    os.kill(os.getpid(), signal.SIGKILL)\n"
	if err := os.WriteFile(script, []byte(dies), 0o600); err != nil {
		t.Fatal(err)
	}
	r := start(t, script)
	if status, answer := r.ask(t, "/classify", picture(t, color.White, png.Encode)); status != http.StatusServiceUnavailable {
		t.Errorf("the model has died: %d, %s", status, answer)
	}
	if err := <-r.ended; err == nil || !strings.Contains(err.Error(), syscall.SIGKILL.String()) && !strings.Contains(err.Error(), "SIGKILL") {
		t.Errorf("the service has ended with %v", err)
	}
}
