package install

import (
	"debug/elf"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/ndbridge/ndbridge/internal/native"
)

// newestGlibc is the newest version of the C library, 2.x, that the libraries may need.
const newestGlibc = 17

// known lists what the libraries may be linked with: the parts of glibc that are in every system.
var known = []string{"libc.so.6", "libpthread.so.0", "libdl.so.2", "libresolv.so.2", "ld-linux-x86-64.so.2", "libm.so.6"}

// TestOldSystems: the embedded libraries load with an old glibc, and need nothing besides it.
func TestOldSystems(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	dir, err := native.Dir()
	if err != nil {
		t.Fatal(err)
	}
	libraries, err := filepath.Glob(filepath.Join(dir, "*.so"))
	if err != nil || len(libraries) != 2 {
		t.Fatal(libraries, err)
	}
	for _, library := range libraries {
		f, err := elf.Open(library)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = f.Close() })
		imported, err := f.ImportedLibraries()
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range imported {
			if !slices.Contains(known, name) {
				t.Errorf("%s needs %s", library, name)
			}
		}
		needs, err := f.DynamicVersionNeeds()
		if err != nil || len(needs) == 0 {
			t.Fatal(needs, err)
		}
		for _, need := range needs {
			for _, version := range need.Needs {
				number, ok := strings.CutPrefix(version.Dep, "GLIBC_2.")
				minor, err := strconv.Atoi(strings.SplitN(number, ".", 2)[0])
				if !ok || err != nil || minor > newestGlibc {
					t.Errorf("%s needs %s of %s", filepath.Base(library), version.Dep, need.Name)
				}
			}
		}
	}
}

// TestPluginLeavesOut: what a plugin must not be linked with. Each of these is used by a host, and makes Go's linker keep every method of
// every type, or is large: each program would take megabytes more.
func TestPluginLeavesOut(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), "go", "list", "-deps", "-tags", "cuda,grpcnotrace", "./adapters/all/plugin")
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	linked := strings.Fields(string(out))
	for _, name := range []string{
		"text/template", "html/template", "net/rpc", "encoding/gob", "golang.org/x/net/trace", "github.com/hashicorp/go-plugin",
		"github.com/hashicorp/hcl/v2", "github.com/klauspost/compress/zstd", module + "/hostplugin",
	} {
		if slices.Contains(linked, name) {
			t.Errorf("the plugin contains %s", name)
		}
	}
	if !slices.Contains(linked, module+"/adapters/kit/entry") {
		t.Errorf("this is no plugin: %v", linked)
	}
}
