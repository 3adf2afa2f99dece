package e2e_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/hostplugin"
	"github.com/ndbridge/ndbridge/test/internal/harness"
)

// TestHeapOfAnotherRelease: a heap whose pins the plugin does not know would give memory that a host looks at to other
// arrays, so nothing starts with it.
func TestHeapOfAnotherRelease(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	source := filepath.Join(dir, "heap.c")
	if err := os.WriteFile(source, []byte("#include <stdint.h>\nuint32_t ndheap_abi = 1;\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	heap := filepath.Join(dir, "libndbridge-heap.so")
	if out, err := exec.CommandContext(t.Context(), "cc", "-shared", "-fPIC", "-o", heap, source).CombinedOutput(); err != nil {
		t.Fatalf("cc: %v: %s", err, out)
	}
	const plugin = "ndbridge-all.so"
	library, err := os.ReadFile(filepath.Join(os.Getenv("NDBRIDGE_LIB"), plugin)) // a link leads to the heap beside its file
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, plugin), library, 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, _ := harness.Config(t, "import numpy as np\na = np.full(1 << 17, 1.0)\n", harness.Options{Configs: []func(*hostplugin.Config){
		func(c *hostplugin.Config) { c.Programs[0].Plugin = filepath.Join(dir, plugin) },
	}})
	host, err := hostplugin.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer host.Close()
	_, err = host.Start(t.Context(), "program")
	if !errors.Is(err, core.ErrVersion) || !strings.Contains(err.Error(), "libndbridge-heap.so") {
		t.Errorf("a start with a heap of another release = %v, want ErrVersion and a remedy", err)
	}
}
