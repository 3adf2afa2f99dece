package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"image"
	"image/png"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

const pythonVariable = "NDBRIDGE_TEST_PYTHON_DEMO"

// config is the demo's own, seen from the root of the repository, where people start the demo.
const config = "examples/demo/ndbridge.hcl"

// TestMain goes to where people start the demo, and makes the configuration find the interpreter.
func TestMain(m *testing.M) {
	if os.Getenv(pythonVariable) == "" || os.Getenv("NDBRIDGE_LIB") == "" {
		log.Fatal(pythonVariable, " and NDBRIDGE_LIB are not set; run make test")
	}
	if err := errors.Join(os.Chdir("../.."), os.Setenv("DEMO_PYTHON", os.Getenv(pythonVariable))); err != nil {
		log.Fatal(err)
	}
	goleak.VerifyTestMain(m)
}

// truth is what the pictures must hold, from a process of its own: name, size and checksum of each.
const truth = `
import hashlib, numpy as np, pywt.data
photo = pywt.data.camera()
marked = photo.copy()
face = marked[30:230, 120:320]
frame = np.ones(face.shape, bool)
frame[16:-16, 16:-16] = False
face[frame] = 255 - face[frame]
y, x = np.ogrid[-256:256, -256:256]
blended = (np.where(x * x + y * y < 200 * 200, np.uint8(255), np.uint8(0)) * 0.4 + photo * 0.6).astype(np.uint8)
for name, a in [("photo", photo), ("transposed", photo.T), ("mirrored", photo[:, ::-1]),
                ("face", photo[30:230, 120:320]), ("marked", marked), ("blended", blended)]:
    print(name, a.shape[1], a.shape[0], hashlib.sha256(a.tobytes()).hexdigest())
`

func TestDemo(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var out bytes.Buffer
	if err := run(t.Context(), &out, "build/ndbridge", config, dir); err != nil {
		t.Fatal(err)
	}
	text := out.String()
	for _, want := range []string{
		`photo +uint8 +512 x 512 +512, 1 +256\.0 KiB +shared-heap +no +\d+\.\d\d ms`,
		`transposed +uint8 +512 x 512 +1, 512 +256\.0 KiB +shared-heap +no +\d`,
		`mirrored +uint8 +512 x 512 +512, -1 +256\.0 KiB +shared-heap +no +\d`,
		`face +uint8 +200 x 200 +512, 1 +39\.1 KiB +shared-heap +no +\d`,
		`spectrum +float64 +2048 x 2048 +16384, 8 +32\.0 MiB +shared-heap +no +\d`,
		`heartbeat +int32 +1024 +4 +4\.0 KiB +staged +below-threshold +\d`,
		`  11776 pixels of my photo have changed: rows 30 to 229, columns 120 to 319`,
		`.* its result is read in place \(shared-heap\):`,
		`.* a variable of its function main \(shared-heap, not copied\)`,
		`The mean of its weights is \d\.\d\d, and a second later \d\.\d\d\. The host leaves, and the script goes on\.`,
		`  http://127\.0\.0\.1:\d+/\?token=\w+\n\z`,
	} {
		if !regexp.MustCompile(`(?m)^` + want).MatchString(text) {
			t.Errorf("no line %q", want)
		}
	}
	if want := excerpt(t); !strings.Contains(timeless(text), want) {
		t.Errorf("the README shows other output:\n%s", want)
	}
	if strings.Contains(text, "\x1b") {
		t.Error("colours, but this is no terminal")
	}
	for line := range strings.Lines(text) {
		if len([]rune(strings.TrimSuffix(line, "\n"))) > 100 {
			t.Errorf("a long line: %q", line)
		}
	}
	said, err := exec.CommandContext(t.Context(), os.Getenv(pythonVariable), "-c", truth).Output()
	if err != nil {
		t.Fatal(err)
	}
	if got := pictures(t, dir); got != string(said) {
		t.Errorf("the pictures hold\n%sPython has\n%s", got, said)
	}
	if img := decode(t, dir, "heartbeat"); img.Bounds().Empty() {
		t.Error("heartbeat.png is empty")
	}
	brightest(t, decode(t, dir, "spectrum"))
	if t.Failed() {
		t.Log(text)
	}
}

// excerpt is what the README shows of the demo.
func excerpt(t *testing.T) string {
	t.Helper()
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(readme), "```text\narray ")
	text, _, found := strings.Cut("array "+text, "```\n")
	if !found {
		t.Fatal("the README shows no output")
	}
	return timeless(text)
}

// timeless takes out what differs from run to run.
func timeless(text string) string {
	return regexp.MustCompile(`\d+\.\d\d ms`).ReplaceAllString(text, "? ms")
}

// pictures says of the pictures of bytes what truth says of the arrays.
func pictures(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	for _, name := range []string{"photo", "transposed", "mirrored", "face", "marked", "blended"} {
		img, ok := decode(t, dir, name).(*image.Gray)
		if !ok {
			t.Fatalf("%s.png is not gray", name)
		}
		sum := sha256.Sum256(img.Pix)
		b.WriteString(strings.Join([]string{
			name, strconv.Itoa(img.Rect.Dx()), strconv.Itoa(img.Rect.Dy()), hex.EncodeToString(sum[:]),
		}, " ") + "\n")
	}
	return b.String()
}

// brightest holds that the spectrum of a photo is greatest in its middle, where the mean is.
func brightest(t *testing.T, img image.Image) {
	t.Helper()
	if img.Bounds() != image.Rect(0, 0, 1024, 1024) {
		t.Fatalf("spectrum.png is %v", img.Bounds())
	}
	var most uint32
	var at image.Point
	for y := range 1024 {
		for x := range 1024 {
			if r, g, b, _ := img.At(x, y).RGBA(); r+g+b > most { // the greatest of viridis is its brightest
				most, at = r+g+b, image.Pt(x, y)
			}
		}
	}
	if d := at.Sub(image.Pt(512, 512)); d.X*d.X+d.Y*d.Y > 4 {
		t.Errorf("the spectrum is greatest at %v", at)
	}
}

func decode(t *testing.T, dir, name string) image.Image {
	t.Helper()
	f, err := os.Open(filepath.Join(dir, name+".png"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	img, err := png.Decode(f)
	if err != nil {
		t.Fatalf("%s.png: %v", name, err)
	}
	return img
}

// TestCommandsToTryNext runs what the demo proposes at its end.
func TestCommandsToTryNext(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	newShow(&out).end("pictures", config)
	commands := 0
	for line := range strings.Lines(out.String()) {
		words := strings.Fields(line)
		if len(words) == 0 || words[0] != "build/ndbridge" {
			continue
		}
		commands++
		words[0] = filepath.Join(os.Getenv("NDBRIDGE_LIB"), "../ndbridge")
		for i, word := range words {
			if word == "build/venv/demo/bin/python" {
				words[i] = os.Getenv(pythonVariable)
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		got, err := exec.CommandContext(ctx, words[0], words[1:]...).CombinedOutput()
		cancel()
		if err != nil || !bytes.Contains(got, []byte("uint8")) && !bytes.Contains(got, []byte("float64")) {
			t.Errorf("%s: %v\n%s", strings.TrimSpace(line), err, got)
		}
	}
	if commands != 3 {
		t.Errorf("%d commands to try:\n%s", commands, out.String())
	}
}

// TestDemoSaysWhatIsMissing holds that somebody who starts it without make learns what to do.
func TestDemoSaysWhatIsMissing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "ndbridge.hcl")
	text := `program "photographer" {
		python = "missing/bin/python"
		script = "program.py"
	}`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	err := run(t.Context(), &bytes.Buffer{}, "build/ndbridge", file, dir)
	if err == nil || !strings.Contains(err.Error(), "missing/bin/python does not exist") {
		t.Errorf("got %v", err)
	}
}
