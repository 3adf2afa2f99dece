//go:build cuda

package driver

import (
	"bytes"
	"debug/elf"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ndbridge/ndbridge/core"
)

// childVar makes this test binary look at the driver of its environment, once.
const childVar = "NDBRIDGE_TEST_DRIVER_CHILD"

// seen is what the child tells.
type seen struct {
	Early, Late  bool // Active before and after Init
	Loaded       bool // libcuda.so.1, before Init
	Init         int  // the code
	Text         string
	Count        int // the code of DeviceCount
	Unsupported  bool
	StillWorking bool
}

func TestMain(m *testing.M) {
	if os.Getenv(childVar) == "" {
		os.Exit(m.Run())
	}
	look()
}

// look says what this process sees of a driver.
func look() {
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		panic(err)
	}
	s := seen{Early: Active(), Loaded: bytes.Contains(maps, []byte("libcuda.so"))}
	init := Init()
	s.Init, s.Text = code(init), fmt.Sprint(init)
	_, count := DeviceCount()
	s.Count = code(count)
	s.Unsupported = errors.Is(init, core.ErrUnsupported) && errors.Is(count, core.ErrUnsupported)
	s.Late = Active()
	_, again := MemAlloc(1)
	s.StillWorking = code(again) != 0
	if err := json.NewEncoder(os.Stdout).Encode(s); err != nil {
		panic(err)
	}
}

func code(err error) int {
	if e, ok := errors.AsType[*Error](err); ok {
		return int(e.Code)
	}
	return 0
}

// child runs this test binary with the libcuda.so.1 of a folder.
func child(t *testing.T, libraries string) seen {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), childVar+"=1", "LD_LIBRARY_PATH="+libraries)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var s seen
	if err := json.Unmarshal(out, &s); err != nil {
		t.Fatalf("%q: %v", out, err)
	}
	return s
}

func TestABinaryStartsWithoutADriver(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "libcuda.so.1"), []byte("not a library"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := child(t, dir)
	if s.Early || s.Late || s.Loaded {
		t.Errorf("CUDA is active or loaded without a driver: %+v", s)
	}
	if s.Init != int(StubLibrary) || s.Count != int(StubLibrary) || !s.Unsupported {
		t.Errorf("got %+v, want CUDA_ERROR_STUB_LIBRARY, which is unsupported", s)
	}
	for _, want := range []string{"cuInit: CUDA_ERROR_STUB_LIBRARY (34): ", "libcuda.so.1"} {
		if !strings.Contains(s.Text, want) {
			t.Errorf("%q does not say %q", s.Text, want)
		}
	}
	if !s.StillWorking {
		t.Error("an allocation succeeded without a driver")
	}
}

func TestAFunctionThatTheDriverLacksIsNotSupported(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	compile(t, filepath.Join(dir, "libcuda.so.1"), "int cuInit(unsigned int flags) { return 0; }")
	s := child(t, dir)
	if s.Init != 0 || s.Count != int(NotSupported) {
		t.Errorf("got %+v, want an Init that works and a DeviceCount that is not supported", s)
	}
}

// A program may fork after its plugin is loaded, and CUDA does not survive that.
func TestNothingLoadsTheDriverBeforeInit(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	compile(t, filepath.Join(dir, "libcuda.so.1"), `
		static int ready;
		int cuInit(unsigned int flags) { ready = 1; return 0; }
		int cuDeviceGetCount(int *n) { *n = 1; return ready ? 0 : 3; }`)
	s := child(t, dir)
	if s.Loaded || s.Early {
		t.Errorf("the driver was loaded or initialised before Init: %+v", s)
	}
	if !s.Late {
		t.Errorf("CUDA is not active after Init: %+v", s)
	}
}

func compile(t *testing.T, out, source string) {
	t.Helper()
	cc := os.Getenv("CC")
	if cc == "" {
		cc = "cc"
	}
	cmd := exec.CommandContext(t.Context(), cc, "-shared", "-fPIC", "-o", out, "-xc", "-")
	cmd.Stdin = strings.NewReader(source)
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
}

// Other users of the driver in a plugin's process must not meet our stubs instead.
func TestALibraryExportsNoStubs(t *testing.T) {
	t.Parallel()
	out := filepath.Join(t.TempDir(), "library.so")
	cmd := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-tags", "cuda", "-buildmode=c-shared", "-o", out,
		"./testdata/library")
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	file, err := elf.Open(out)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	inside, err := file.Symbols()
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(inside, func(s elf.Symbol) bool { return s.Name == "cuMemGetAddressRange_v2" }) {
		t.Fatal("the library holds no stubs")
	}
	exported, err := file.DynamicSymbols()
	if err != nil {
		t.Fatal(err)
	}
	// No functions of the driver, but C functions of gorgonia.org/cu.
	its := []string{"cuAllocAndCopy", "cuDeviceGetAttributes", "cuLaunchAndSync"}
	for _, s := range exported {
		stub := strings.HasPrefix(s.Name, "cu") || strings.HasPrefix(s.Name, "ndbridge_cu")
		if stub && !slices.Contains(its, s.Name) {
			t.Errorf("%s is visible outside, defined in section %d", s.Name, s.Section)
		}
	}
	needed, err := file.ImportedLibraries()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range needed {
		if strings.HasPrefix(name, "libcuda") {
			t.Errorf("the library needs %s to be loaded", name)
		}
	}
}
