package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/hostplugin"
	"github.com/ndbridge/ndbridge/test/internal/harness"
)

// lookAtCamera is the README's example, word for word.
func lookAtCamera(ctx context.Context) error {
	camera, err := hostplugin.Run(ctx, hostplugin.Program{Script: "camera.py"})
	if err != nil {
		return err
	}
	defer camera.Close()
	frame, err := camera.View(ctx, "frame")
	if err != nil {
		return err
	}
	defer frame.Close()
	pixels, err := core.Slice[uint8](frame) // no copy: the bytes that Python writes
	if err != nil {
		return err
	}
	fmt.Println(frame.Shape(), frame.DType(), frame.Route(), pixels[0]) //nolint:forbidigo // as a reader would
	return nil
}

// lookByFile is the same with the README's configuration.
func lookByFile(ctx context.Context) error {
	host, err := hostplugin.Open(ctx, "ndbridge.hcl")
	if err != nil {
		return err
	}
	defer host.Close()
	camera, err := host.Start(ctx, "camera")
	if err != nil {
		return err
	}
	frame, err := camera.View(ctx, "frame")
	if err != nil {
		return err
	}
	return frame.Close()
}

func TestReadmeExample(t *testing.T) {
	python := harness.Python(t)
	t.Setenv("PYTHON", python)
	t.Setenv("PATH", filepath.Dir(python)+":"+os.Getenv("PATH")) // where a python3 with NumPy is
	t.Chdir("testdata/readme")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := lookAtCamera(ctx); err != nil {
		t.Error(err)
	}
	if err := lookByFile(ctx); err != nil {
		t.Error(err)
	}
}

// TestPythonExample runs the example of docs/python.md, with a host and without one.
func TestPythonExample(t *testing.T) {
	t.Parallel()
	const script = "testdata/readme/versions.py"
	host, err := hostplugin.New(hostplugin.Config{Programs: []hostplugin.Program{
		{Name: "steps", Python: harness.Python(t), Script: script},
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = host.Close() })
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	steps, err := host.Start(ctx, "steps")
	if err != nil {
		t.Fatal(err)
	}
	group, err := steps.Group("positions", "step")
	if err != nil {
		t.Fatal(err)
	}
	for step := int64(0); step < 10; {
		if err := group.Next(ctx); err != nil {
			t.Fatal(err)
		}
		next, positions := slice[int64](t, group.View("step"))[0], group.View("positions")
		if next <= step || positions.Version() != uint64(next) || slice[float64](t, positions)[0] != float64(next) {
			t.Errorf("after step %d, step %d with version %d of positions: %v", step, next, positions.Version(), slice[float64](t, positions)[0])
		}
		step = next
	}
	if out, err := exec.CommandContext(ctx, harness.Python(t), script).CombinedOutput(); err != nil {
		t.Errorf("without a host: %v: %s", err, out)
	}
}
