package main

import (
	"bytes"
	"context"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"strings"
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

// torchPython is an interpreter that has PyTorch.
func torchPython(t *testing.T) string {
	t.Helper()
	if testing.Short() {
		t.Skip("test-short has no PyTorch")
	}
	python := os.Getenv("NDBRIDGE_TEST_PYTHON_ALL")
	if python == "" {
		t.Fatal("NDBRIDGE_TEST_PYTHON_ALL is not set; run make test")
	}
	return python
}

func start(t *testing.T, python, script string) *running {
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
		r.ended <- run(ctx, listener, hostplugin.Program{Script: script, Python: python})
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

// metrics gives the numbers of /metrics.
func (r *running) metrics(t *testing.T) map[string]float64 {
	t.Helper()
	_, text := r.ask(t, "/metrics", nil)
	numbers := make(map[string]float64)
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		n, err := strconv.ParseFloat(value, 64)
		if err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		numbers[name] = n
	}
	return numbers
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

func TestService(t *testing.T) {
	t.Parallel()
	r := start(t, torchPython(t), "model.py")
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
		"nothing": {strings.NewReader(""), http.StatusBadRequest},
		"a part":  {bytes.NewReader(picture(t, color.White, png.Encode).Bytes()[:60]), http.StatusBadRequest},
		"too long a comment": {
			io.MultiReader(strings.NewReader("\xff\xd8"), strings.NewReader(strings.Repeat("\xff\xfe\xff\xff"+strings.Repeat(" ", 65533), 300))),
			http.StatusRequestEntityTooLarge,
		},
	} {
		if status, answer := r.ask(t, "/classify", c.body); status != c.status || !strings.Contains(answer, `"error"`) {
			t.Errorf("%s: %d, %s", name, status, answer)
		}
	}
	for path, want := range map[string]string{"/healthz": "ok\n", "/readyz": "ready\n"} {
		if status, answer := r.ask(t, path, nil); status != http.StatusOK || answer != want {
			t.Errorf("%s: %d, %s", path, status, answer)
		}
	}
	if status, _ := r.ask(t, "/classify", nil); status != http.StatusMethodNotAllowed {
		t.Errorf("GET /classify: %d", status)
	}
	checkMetrics(t, r)
	r.end()
	if err := <-r.ended; err != nil {
		t.Error(err)
	}
}

// checkMetrics holds that /metrics counts what TestService has done, and that the README names all of it.
func checkMetrics(t *testing.T, r *running) {
	t.Helper()
	got := r.metrics(t)
	for name, want := range map[string]float64{
		`classify_requests_total{code="200"}`: 1, `classify_requests_total{code="400"}`: 4, `classify_requests_total{code="413"}`: 1,
		"classify_duration_seconds_count": 6, `classify_duration_seconds_bucket{le="+Inf"}`: 6, "classify_running": 0, "classify_waiting": 0,
		"classify_queue_seconds_count": 1, "classify_batch_images_sum": 1, "classify_batch_images_count": 1, "classify_batch_seconds_count": 1,
		"classify_batches_failed_total": 0, "classify_gave_up_total": 0,
	} {
		if n, ok := got[name]; !ok || n != want {
			t.Errorf("%s is %v, expected %v", name, n, want)
		}
	}
	for _, name := range []string{"classify_duration_seconds_sum", "classify_queue_seconds_sum", "classify_batch_seconds_sum"} {
		if n := got[name]; n <= 0 || n > 60 {
			t.Errorf("%s is %v", name, n)
		}
	}
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text := r.ask(t, "/metrics", nil)
	for _, family := range regexp.MustCompile(`# TYPE (\S+)`).FindAllStringSubmatch(text, -1) {
		if !bytes.Contains(readme, []byte("`"+family[1]+"`")) {
			t.Errorf("the README does not name %s", family[1])
		}
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

// TestServiceOfModelThatFails: an exception is the error of one batch, and not the client's business.
func TestServiceOfModelThatFails(t *testing.T) {
	t.Parallel()
	script := t.TempDir() + "/model.py"
	const fails = "calls = 0\ndef classify(images, top):\n    global calls\n    calls += 1\n    if calls == 1:\n        raise ValueError('secret')\n    return [[] for _ in images]\n"
	if err := os.WriteFile(script, []byte(fails), 0o600); err != nil {
		t.Fatal(err)
	}
	r := start(t, os.Getenv("NDBRIDGE_TEST_PYTHON"), script)
	for i, want := range []int{http.StatusInternalServerError, http.StatusOK} {
		if status, answer := r.ask(t, "/classify", picture(t, color.White, png.Encode)); status != want || strings.Contains(answer, "secret") {
			t.Errorf("request %d: %d, %s", i, status, answer)
		}
	}
	if now := r.metrics(t); now["classify_batches_failed_total"] != 1 || now["classify_batch_images_count"] != 2 {
		t.Errorf("the metrics are %v", now)
	}
	r.end()
	if err := <-r.ended; err != nil {
		t.Error(err)
	}
}

// TestServiceOfModelThatDies: the service ends with its model, and says why.
func TestServiceOfModelThatDies(t *testing.T) {
	t.Parallel()
	script := t.TempDir() + "/model.py"
	const dies = "import os, signal\ndef classify(images, top):\n    os.kill(os.getpid(), signal.SIGKILL)\n"
	if err := os.WriteFile(script, []byte(dies), 0o600); err != nil {
		t.Fatal(err)
	}
	r := start(t, os.Getenv("NDBRIDGE_TEST_PYTHON"), script)
	if status, answer := r.ask(t, "/classify", picture(t, color.White, png.Encode)); status != http.StatusServiceUnavailable {
		t.Errorf("the model has died: %d, %s", status, answer)
	}
	if err := <-r.ended; err == nil || !strings.Contains(err.Error(), syscall.SIGKILL.String()) && !strings.Contains(err.Error(), "SIGKILL") {
		t.Errorf("the service has ended with %v", err)
	}
}
