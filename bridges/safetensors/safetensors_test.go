package safetensors

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"iter"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/coretest"
	"github.com/ndbridge/ndbridge/hostplugin"
)

func TestMain(m *testing.M) { coretest.Main(m) }

func python(t *testing.T) string {
	t.Helper()
	if testing.Short() {
		t.Skip("test-short has no environment with safetensors")
	}
	p := os.Getenv("NDBRIDGE_TEST_PYTHON_BRIDGES")
	if p == "" {
		t.Fatal("NDBRIDGE_TEST_PYTHON_BRIDGES is not set; run make test")
	}
	return p
}

// read gives what the format's own library reads.
func read(t *testing.T, file []byte) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "file.safetensors")
	if err := os.WriteFile(name, file, 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), python(t), "testdata/read.py", name).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return string(out)
}

// TestTheLibraryReadsIt writes arrays of each type and of several layouts.
func TestTheLibraryReadsIt(t *testing.T) {
	t.Parallel()
	raw := make([]byte, 256)
	for i := range raw {
		raw[i] = byte(i % 2)
	}
	tensors := map[string]*core.View{
		"transposed": coretest.NewRawView(t, raw, core.LayoutSpec{DType: core.Float32, Shape: []int{4, 8}, Strides: []int{4, 16}}),
		"crop":       coretest.NewRawView(t, raw, core.LayoutSpec{DType: core.Int16, Shape: []int{3, 4}, Strides: []int{32, 2}, Offset: 4}),
		"reversed":   coretest.NewRawView(t, []byte{1, 2, 3}, core.LayoutSpec{DType: core.Uint8, Shape: []int{3}, Strides: []int{-1}, Offset: 2}),
		"scalar":     coretest.NewRawView(t, raw, core.LayoutSpec{DType: core.Float64}),
		"empty":      coretest.NewRawView(t, nil, core.LayoutSpec{DType: core.Float32, Shape: []int{0, 3}}),
		`"größe"\n`:  coretest.NewRawView(t, raw, core.LayoutSpec{DType: core.Uint8, Shape: []int{1}}),
	}
	for _, d := range []core.DType{
		core.Bool, core.Int8, core.Int16, core.Int32, core.Int64, core.Uint8, core.Uint16, core.Uint32, core.Uint64,
		core.Float16, core.BFloat16, core.Float32, core.Float64, core.Complex64,
		coretest.DType("float8_e4m3fn"), coretest.DType("float8_e5m2"), coretest.DType("float8_e8m0fnu"),
	} {
		tensors["of "+d.String()] = coretest.NewRawView(t, raw, core.LayoutSpec{DType: d, Shape: []int{2, 3}})
	}
	var want strings.Builder
	want.WriteString(`[('a', 'b'), ('\xfc', '')]` + "\n")
	for _, name := range slices.Sorted(maps.Keys(tensors)) {
		v := tensors[name]
		elements := make([]byte, v.NBytes())
		if _, err := core.CopyBytes(t.Context(), elements, v); err != nil {
			t.Fatal(err)
		}
		dtype, _ := dtypeOf(v.DType())
		shape := strings.ReplaceAll(fmt.Sprint(v.Layout().Shape()), " ", ", ")
		quoted := strings.NewReplacer("ö", `\xf6`, "ß", `\xdf`, `\`, `\\`).Replace(name)
		fmt.Fprintf(&want, "'%s' %s %s %s\n", quoted, dtype, shape, hex.EncodeToString(elements))
	}
	var file bytes.Buffer
	if err := Write(t.Context(), &file, maps.All(tensors), map[string]string{"a": "b", "ü": ""}); err != nil {
		t.Fatal(err)
	}
	if got := read(t, file.Bytes()); got != want.String() {
		t.Errorf("the library reads\n%s\nwant\n%s", got, want.String())
	}
}

func TestNothing(t *testing.T) {
	t.Parallel()
	var file bytes.Buffer
	if err := Write(t.Context(), &file, maps.All(map[string]*core.View{}), nil); err != nil {
		t.Fatal(err)
	}
	if got := read(t, file.Bytes()); got != "[]\n" {
		t.Errorf("the library reads %s", got)
	}
}

// TestElementsAreAligned sees that whoever maps the file can use the elements there.
func TestElementsAreAligned(t *testing.T) {
	t.Parallel()
	var file bytes.Buffer
	tensors := map[string]*core.View{
		"a": coretest.NewRawView(t, []byte{1, 2, 3}, core.LayoutSpec{DType: core.Uint8, Shape: []int{3}}),
		"b": coretest.NewRawView(t, bytes.Repeat([]byte{0xbb}, 8), core.LayoutSpec{DType: core.Float64, Shape: []int{1}}),
	}
	if err := Write(t.Context(), &file, maps.All(tensors), nil); err != nil {
		t.Fatal(err)
	}
	if at := bytes.Index(file.Bytes(), bytes.Repeat([]byte{0xbb}, 8)); at%8 != 0 {
		t.Errorf("the element of 8 bytes lies at %d", at)
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	one := coretest.NewRawView(t, []byte{1}, core.LayoutSpec{DType: core.Uint8, Shape: []int{1}})
	packed := coretest.NewRawView(t, []byte{1}, core.LayoutSpec{DType: core.Int4, Shape: []int{2}})
	twice := iter.Seq2[string, *core.View](func(yield func(string, *core.View) bool) {
		for more := true; more; {
			more = yield("x", one)
		}
	})
	for name, c := range map[string]struct {
		tensors iter.Seq2[string, *core.View]
		kind    error
	}{
		"packed":   {maps.All(map[string]*core.View{"x": packed}), core.ErrDType},
		"metadata": {maps.All(map[string]*core.View{"__metadata__": one}), core.ErrConfig},
		"twice":    {twice, core.ErrConfig},
	} {
		var file bytes.Buffer
		if err := Write(t.Context(), &file, c.tensors, nil); !errors.Is(err, c.kind) || file.Len() > 0 {
			t.Errorf("%s: %v after %d bytes", name, err, file.Len())
		}
	}
}

type failing int

var errFull = errors.New("no space left")

func (f *failing) Write(p []byte) (int, error) {
	if *f--; *f < 0 {
		return 0, errFull
	}
	return len(p), nil
}

func TestErrorsAreKept(t *testing.T) {
	t.Parallel()
	tensors := maps.All(map[string]*core.View{"x": coretest.NewRawView(t, []byte{1}, core.LayoutSpec{DType: core.Uint8, Shape: []int{1}})})
	for after := range 2 {
		if err := Write(t.Context(), new(failing(after)), tensors, nil); !errors.Is(err, errFull) {
			t.Errorf("after %d writes: %v", after, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := Write(ctx, &bytes.Buffer{}, tensors, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("after its context has ended: %v", err)
	}
}

// TestGroup writes what a program has published together, which reads the file.
func TestGroup(t *testing.T) {
	t.Parallel()
	trainer, err := hostplugin.Run(t.Context(), hostplugin.Program{Script: "testdata/trainer.py", Python: python(t)})
	if err != nil {
		t.Fatal(err)
	}
	defer trainer.Close()
	advance, err := trainer.Func(t.Context(), "advance")
	if err != nil {
		t.Fatal(err)
	}
	check, err := trainer.Func(t.Context(), "check")
	if err != nil {
		t.Fatal(err)
	}
	set, err := trainer.Group("weight", "bias", "step")
	if err != nil {
		t.Fatal(err)
	}
	defer set.Close()
	for step := 1; step <= 3; step++ {
		if _, err := advance.Call(t.Context(), step); err != nil {
			t.Fatal(err)
		}
		name := filepath.Join(t.TempDir(), "checkpoint.safetensors")
		if err := checkpoint(t.Context(), set, name); err != nil {
			t.Fatal(err)
		}
		result, err := check.Call(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		var got struct {
			Shapes map[string][]int `python:"shapes"`
			Value  float64          `python:"value"`
		}
		if err := result.Decode(&got); err != nil {
			t.Fatal(err)
		}
		if want := "map[bias:[40 200] step:[] weight:[300 200]]"; fmt.Sprint(got.Shapes) != want || got.Value != float64(step) {
			t.Errorf("step %d: the program reads %v of %v", step, got.Shapes, got.Value)
		}
		result.Close()
	}
}
