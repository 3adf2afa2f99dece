package e2e_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/ndbridge/ndbridge/hostplugin"
	"github.com/ndbridge/ndbridge/test/internal/harness"
)

// TestProgramSavesAtTheEnd: a program has stop_timeout to write what it has to write after the KeyboardInterrupt, and is
// not killed before that.
func TestProgramSavesAtTheEnd(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "checkpoint")
	r := harness.Start(t, `
import os, time
import numpy as np
state = np.arange(1000.0)
try:
    time.sleep(3600)
except KeyboardInterrupt:
    time.sleep(3)
    with open(os.environ["CHECKPOINT"], "w") as f: f.write("saved")
`, harness.Options{
		Env:     map[string]string{"CHECKPOINT": file},
		Configs: []func(*hostplugin.Config){func(c *hostplugin.Config) { c.Programs[0].StopTimeout = harness.StartBound }},
	})
	if err := r.View(t, "state").Close(); err != nil {
		t.Error(err)
	}
	began := time.Now()
	if err := r.Close(); err != nil {
		t.Errorf("Close of a program that ends by itself = %v", err)
	}
	if text, err := os.ReadFile(file); err != nil || string(text) != "saved" {
		t.Errorf("after %v: %q, %v", time.Since(began), text, err)
	}
}
