package e2e

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/hostplugin"
	"github.com/ndbridge/ndbridge/test/internal/harness"
)

// lookAtCamera is the README's example, word for word.
func lookAtCamera(ctx context.Context) error {
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
	defer frame.Close()
	pixels, err := core.Slice[uint8](frame) // no copy: the bytes that Python writes
	if err != nil {
		return err
	}
	fmt.Println(frame.Shape(), frame.DType(), frame.Route(), pixels[0]) //nolint:forbidigo // as a reader would
	return nil
}

func TestReadmeExample(t *testing.T) {
	t.Setenv("PYTHON", harness.Python(t))
	t.Chdir("testdata/readme")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := lookAtCamera(ctx); err != nil {
		t.Fatal(err)
	}
}
