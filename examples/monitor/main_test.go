package main

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/hostplugin"
	"github.com/ndbridge/ndbridge/internal/golden"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// brokenAt is the step of training.py that ruins the weights.
const brokenAt = 2999

func TestRun(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("test-short has no PyTorch")
	}
	python := os.Getenv("NDBRIDGE_TEST_PYTHON_ALL")
	if python == "" || os.Getenv("NDBRIDGE_LIB") == "" {
		t.Fatal("NDBRIDGE_TEST_PYTHON_ALL and NDBRIDGE_LIB are not set; run make test")
	}
	core.ObserveLeaks(func(l core.Leak) { t.Errorf("a view was not closed: %+v", l) })
	var out strings.Builder
	m := monitor{every: 50 * time.Millisecond, weights: "main().model.**", step: "main().step", file: filepath.Join(t.TempDir(), "good"), out: &out}
	err := m.run(t.Context(), hostplugin.Program{Script: "training.py", Python: python})
	if !errors.Is(err, errBroken) {
		t.Fatalf("%v; it prints\n%s", err, &out)
	}
	steps := regexp.MustCompile(`step (\d+)`)
	found := steps.FindAllStringSubmatch(out.String(), -1)
	if len(found) != 2 {
		t.Fatalf("it prints\n%s", &out)
	}
	broken, _ := strconv.Atoi(found[0][1])
	good, _ := strconv.Atoi(found[1][1])
	if broken < brokenAt || good > brokenAt {
		t.Errorf("broken at step %d, the last good one was %d", broken, good)
	}
	golden.Shown(t, "README.md", "text", strings.NewReplacer( // which steps are met depends on the machine
		found[0][0], "step 3000", found[1][0], "step 2970", m.file, "last-good.safetensors",
	).Replace(out.String()))
	checkFile(t, m.file, good)
}

// checkFile reads a file of float32 in the format safetensors.
func checkFile(t *testing.T, name string, step int) {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	n := 8 + binary.LittleEndian.Uint64(data)
	var header map[string]struct {
		DType string `json:"dtype"`
		Step  string `json:"step"`
	}
	if err := json.Unmarshal(data[8:n], &header); err != nil {
		t.Fatal(err)
	}
	if len(header) != 5 || header["__metadata__"].Step != strconv.Itoa(step) || header["main().model[0].weight"].DType != "F32" {
		t.Errorf("the header is %+v", header)
	}
	for at := n; at < uint64(len(data)); at += 4 {
		if x := math.Float32frombits(binary.LittleEndian.Uint32(data[at:])); math.IsNaN(float64(x)) || math.IsInf(float64(x), 0) {
			t.Fatalf("%v in the weights that were good", x)
		}
	}
}
