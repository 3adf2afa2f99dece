package npy

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/coretest"
)

func TestMain(m *testing.M) { coretest.Main(m) }

var errFull = errors.New("no space left")

func opaque(t *testing.T, size int) core.DType {
	t.Helper()
	d, err := core.Opaque(size)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// dictOf takes a file apart: version, header, elements.
func dictOf(t *testing.T, file []byte) (version byte, header string, elements []byte) {
	t.Helper()
	if len(file) < 12 || string(file[:6]) != "\x93NUMPY" || file[7] != 0 {
		t.Fatalf("no .npy file: % x", file[:min(len(file), 12)])
	}
	version = file[6]
	n, begin := int(binary.LittleEndian.Uint16(file[8:])), 10
	if version > 1 {
		n, begin = int(binary.LittleEndian.Uint32(file[8:])), 12
	}
	end := begin + n
	if end%64 != 0 || file[end-1] != '\n' {
		t.Fatalf("the header ends at %d with %q", end, file[end-1])
	}
	return version, strings.TrimRight(string(file[begin:end]), " \n"), file[end:]
}

func TestHeader(t *testing.T) {
	t.Parallel()
	vector, err := core.ParseDType("float32x4")
	if err != nil {
		t.Fatal(err)
	}
	complex32, err := core.ParseDType("complex32")
	if err != nil {
		t.Fatal(err)
	}
	long := "[" + strings.Repeat("('a_field_with_a_very_long_name_so_that_headers_grow', '|u1'), ", 1500) + "]"
	cases := []struct {
		dtype   core.DType
		tag     string
		shape   []int
		header  string
		version byte
		note    bool
	}{
		{core.Bool, "", []int{}, "'descr': '|b1', 'fortran_order': False, 'shape': ()", 1, false},
		{core.Uint8, "", []int{3}, "'descr': '|u1', 'fortran_order': False, 'shape': (3,)", 1, false},
		{core.Int16, "", []int{2, 3}, "'descr': '<i2', 'fortran_order': False, 'shape': (2, 3)", 1, false},
		{core.Float16, "", []int{1}, "'descr': '<f2', 'fortran_order': False, 'shape': (1,)", 1, false},
		{core.Float64, "", []int{0, 4}, "'descr': '<f8', 'fortran_order': False, 'shape': (0, 4)", 1, false},
		{core.Complex128, "", []int{1}, "'descr': '<c16', 'fortran_order': False, 'shape': (1,)", 1, false},
		{core.BFloat16, "", []int{1}, "'descr': '|V2', 'fortran_order': False, 'shape': (1,)", 1, true},
		{coretest.DType("float8_e5m2"), "", []int{1}, "'descr': '|V1', 'fortran_order': False, 'shape': (1,)", 1, true},
		{complex32, "", []int{1}, "'descr': '|V4', 'fortran_order': False, 'shape': (1,)", 1, true},
		{vector, "", []int{2}, "'descr': '<f4', 'fortran_order': False, 'shape': (2, 4)", 1, false},
		{opaque(t, 8), ">f8", []int{1}, "'descr': '>f8', 'fortran_order': False, 'shape': (1,)", 1, false},
		{opaque(t, 8), "datetime64[ns]", []int{1}, "'descr': '<M8[ns]', 'fortran_order': False, 'shape': (1,)", 1, false},
		{opaque(t, 8), "timedelta64[25us]", []int{1}, "'descr': '<m8[25us]', 'fortran_order': False, 'shape': (1,)", 1, false},
		{opaque(t, 8), "datetime64", []int{1}, "'descr': '<M8', 'fortran_order': False, 'shape': (1,)", 1, false},
		{opaque(t, 8), ">M8[D]", []int{1}, "'descr': '>M8[D]', 'fortran_order': False, 'shape': (1,)", 1, false},
		{opaque(t, 12), "<U3", []int{1}, "'descr': '<U3', 'fortran_order': False, 'shape': (1,)", 1, false},
		{opaque(t, 5), "|S5", []int{1}, "'descr': '|S5', 'fortran_order': False, 'shape': (1,)", 1, false},
		{opaque(t, 5), "S5", []int{1}, "'descr': '|S5', 'fortran_order': False, 'shape': (1,)", 1, false},
		{opaque(t, 12), "[('a', '<i4'), ('b', '<f8')]", []int{1}, "'descr': [('a', '<i4'), ('b', '<f8')], 'fortran_order': False, 'shape': (1,)", 1, false},
		{opaque(t, 30), "[(('long', 'x'), '>i2'), ('p', [('q', '<f4')], (2, 3)), ('', '|V4')]", []int{1}, "'descr': [(('long', 'x'), '>i2'), ('p', [('q', '<f4')], (2, 3)), ('', '|V4')], 'fortran_order': False, 'shape': (1,)", 1, false},
		{opaque(t, 12), "(numpy.record, [('a', '<i4'), ('b', '<f8')])", []int{1}, "'descr': [('a', '<i4'), ('b', '<f8')], 'fortran_order': False, 'shape': (1,)", 1, false},
		{opaque(t, 4), "{'names': ['a'], 'formats': ['<i2'], 'offsets': [2], 'itemsize': 4}", []int{1}, "'descr': [('', '|V2'), ('a', '<i2')], 'fortran_order': False, 'shape': (1,)", 1, false},
		{opaque(t, 40), "{'names': ['a', \"b'\"], 'formats': ['i1', ('<f4', (3,))], 'offsets': [0, 8], 'itemsize': 40, 'aligned': True}", []int{1}, "'descr': [('a', 'i1'), ('', '|V7'), (\"b'\", '<f4', (3,)), ('', '|V20')], 'fortran_order': False, 'shape': (1,)", 1, false},
		{opaque(t, 4), "[('größe', '<i4')]", []int{1}, "'descr': [('größe', '<i4')], 'fortran_order': False, 'shape': (1,)", 3, false},
		{opaque(t, 1500), long, []int{1}, "'descr': " + long + ", 'fortran_order': False, 'shape': (1,)", 2, false},

		// Tags come from elsewhere: what does not fit is not believed.
		{opaque(t, 4), "", []int{1}, "'descr': '|V4', 'fortran_order': False, 'shape': (1,)", 1, true},
		{opaque(t, 4), ">f8", []int{1}, "'descr': '|V4', 'fortran_order': False, 'shape': (1,)", 1, true},
		{opaque(t, 4), "O", []int{1}, "'descr': '|V4', 'fortran_order': False, 'shape': (1,)", 1, true},
		{opaque(t, 4), "f4', 'x': '", []int{1}, "'descr': '|V4', 'fortran_order': False, 'shape': (1,)", 1, true},
		{opaque(t, 4), "(numpy.record, [('a', '<i4')]", []int{1}, "'descr': '|V4', 'fortran_order': False, 'shape': (1,)", 1, true},
		{opaque(t, 8), "[('a', '<i4')]", []int{1}, "'descr': '|V8', 'fortran_order': False, 'shape': (1,)", 1, true},
		{opaque(t, 4), "[('a', '<i4')], 'x': [('b', '<i4')]", []int{1}, "'descr': '|V4', 'fortran_order': False, 'shape': (1,)", 1, true},
		{opaque(t, 4), "[('a', '<i4'", []int{1}, "'descr': '|V4', 'fortran_order': False, 'shape': (1,)", 1, true},
		{opaque(t, 4), "[('a', '<i2', (99999, 99999))]", []int{1}, "'descr': '|V4', 'fortran_order': False, 'shape': (1,)", 1, true},
		{opaque(t, 4), strings.Repeat("[('a', ", 100), []int{1}, "'descr': '|V4', 'fortran_order': False, 'shape': (1,)", 1, true},
		{opaque(t, 4), "{'names': ['a'], 'formats': ['<i2'], 'offsets': [3], 'itemsize': 4}", []int{1}, "'descr': '|V4', 'fortran_order': False, 'shape': (1,)", 1, true},
		{opaque(t, 4), "{'names': ['b', 'a'], 'formats': ['<i2', '<i2'], 'offsets': [2, 0], 'itemsize': 4}", []int{1}, "'descr': '|V4', 'fortran_order': False, 'shape': (1,)", 1, true},
		{opaque(t, 16), "{'names': ['p'], 'formats': [[('x', 'i1'), ('y', '<f8')]], 'offsets': [0], 'itemsize': 16, 'aligned': True}", []int{1}, "'descr': '|V16', 'fortran_order': False, 'shape': (1,)", 1, true},
		{opaque(t, 4), "{'names': ['a'], 'formats': ['<i2'], 'offsets': [2], 'itemsize': 4", []int{1}, "'descr': '|V4', 'fortran_order': False, 'shape': (1,)", 1, true},
		{opaque(t, 8), "{'names': ['a'], 'formats': ['<i2'], 'offsets': [2], 'itemsize': 4}", []int{1}, "'descr': '|V8', 'fortran_order': False, 'shape': (1,)", 1, true},
		{opaque(t, 4), "{'names': ['a', 'b'], 'formats': ['<i2'], 'offsets': [2], 'itemsize': 4}", []int{1}, "'descr': '|V4', 'fortran_order': False, 'shape': (1,)", 1, true},
	}
	for _, c := range cases {
		l, err := core.NewLayout(core.LayoutSpec{DType: c.dtype, Shape: c.shape, Tag: c.tag})
		if err != nil {
			t.Fatal(err)
		}
		file, note, err := headerOf(l)
		if err != nil {
			t.Fatal(err)
		}
		version, header, rest := dictOf(t, file)
		if want := "{" + c.header + ", }"; header != want || version != c.version || len(rest) > 0 {
			t.Errorf("%v %.40q: version %d, %.300q\nwant %d, %.300q", c.dtype, c.tag, version, header, c.version, want)
		}
		if (note != "") != c.note {
			t.Errorf("%v %.40q: note %q", c.dtype, c.tag, note)
		}
	}
}

func TestPackedIsRefused(t *testing.T) {
	t.Parallel()
	v := coretest.NewRawView(t, make([]byte, 4), core.LayoutSpec{DType: core.Int4, Shape: []int{8}})
	var out bytes.Buffer
	if _, err := Write(t.Context(), &out, v); !errors.Is(err, core.ErrDType) || out.Len() > 0 {
		t.Errorf("got %v after %d bytes", err, out.Len())
	}
}

func TestElementsAreInOrder(t *testing.T) {
	t.Parallel()
	raw := []byte{0, 1, 2, 3, 4, 5}
	v := coretest.NewRawView(t, raw, core.LayoutSpec{DType: core.Uint8, Shape: []int{3, 2}, Strides: []int{-1, 3}, Offset: 2})
	var out bytes.Buffer
	if _, err := Write(t.Context(), &out, v); err != nil {
		t.Fatal(err)
	}
	if _, _, elements := dictOf(t, out.Bytes()); !bytes.Equal(elements, []byte{2, 5, 1, 4, 0, 3}) {
		t.Errorf("elements %v", elements)
	}
	v = coretest.NewRawView(t, raw, core.LayoutSpec{DType: core.Uint8, Shape: []int{3, 2}, Strides: []int{1, 3}})
	out.Reset()
	if _, err := Write(t.Context(), &out, v); err != nil {
		t.Fatal(err)
	}
	if _, header, elements := dictOf(t, out.Bytes()); !bytes.Equal(elements, raw) ||
		!strings.Contains(header, "'fortran_order': True, 'shape': (3, 2)") {
		t.Errorf("column-major: %s, elements %v", header, elements)
	}
}

type failing int

func (f *failing) Write(p []byte) (int, error) {
	if *f--; *f < 0 {
		return 0, errFull
	}
	return len(p), nil
}

func TestErrorsAreKept(t *testing.T) {
	t.Parallel()
	v := coretest.NewRawView(t, make([]byte, 8), core.LayoutSpec{DType: core.Uint8, Shape: []int{8}})
	for after := range 2 {
		if _, err := Write(t.Context(), new(failing(after)), v); !errors.Is(err, errFull) {
			t.Errorf("after %d writes: %v", after, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Write(ctx, &bytes.Buffer{}, v); !errors.Is(err, context.Canceled) {
		t.Errorf("after its context has ended: %v", err)
	}
	if err := v.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := Write(t.Context(), &bytes.Buffer{}, v); !errors.Is(err, core.ErrClosed) {
		t.Errorf("closed: %v", err)
	}
}

// TestNumPyReadsIt lets NumPy read files of each kind and print what it read.
func TestNumPyReadsIt(t *testing.T) {
	t.Parallel()
	python := os.Getenv("NDBRIDGE_TEST_PYTHON")
	if python == "" {
		t.Fatal("NDBRIDGE_TEST_PYTHON is not set; run make test")
	}
	raw := make([]byte, 48)
	for i := range raw {
		raw[i] = byte(i)
	}
	vector, err := core.ParseDType("int16x2")
	if err != nil {
		t.Fatal(err)
	}
	cases := []struct {
		spec core.LayoutSpec
		want string
	}{
		{core.LayoutSpec{DType: core.Uint8, Shape: []int{2, 2}, Strides: []int{1, 2}}, "uint8 (2, 2) [[0, 2], [1, 3]]"},
		{core.LayoutSpec{DType: core.Int32, Offset: 4}, "int32 () 117835012"},
		{core.LayoutSpec{DType: vector, Shape: []int{2}}, "int16 (2, 2) [[256, 770], [1284, 1798]]"},
		{core.LayoutSpec{DType: core.Float32, Shape: []int{0, 7}}, "float32 (0, 7) []"},
		{core.LayoutSpec{DType: core.BFloat16, Shape: []int{1}}, `|V2 (1,) [b'\x00\x01']`},
		{core.LayoutSpec{DType: opaque(t, 2), Tag: ">i2", Shape: []int{2}}, ">i2 (2,) [1, 515]"},
		{core.LayoutSpec{DType: opaque(t, 8), Tag: "datetime64[D]", Shape: []int{0}}, "datetime64[D] (0,) []"},
		{core.LayoutSpec{DType: opaque(t, 3), Tag: "[('größe', 'i1'), ('b', '>u2')]", Shape: []int{2}}, "[('größe', 'i1'), ('b', '>u2')] (2,) [(0, 258), (3, 1029)]"},
		{core.LayoutSpec{DType: opaque(t, 8), Tag: "{'names': ['a', 'b'], 'formats': ['i1', '>u2'], 'offsets': [1, 4], 'itemsize': 8}", Shape: []int{2}}, "{'names': ['a', 'b'], 'formats': ['i1', '>u2'], 'offsets': [1, 4], 'itemsize': 8} (2,) [(1, 1029), (9, 3085)]"},
	}
	dir := t.TempDir()
	var want strings.Builder
	for i, c := range cases {
		var file bytes.Buffer
		if _, err := Write(t.Context(), &file, coretest.NewRawView(t, raw, c.spec)); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, string(rune('a'+i))+".npy"), file.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
		want.WriteString(c.want + "\n")
	}
	script := "import glob, sys, numpy as np\n" +
		"for f in sorted(glob.glob(sys.argv[1] + '/*')):\n" +
		"    a = np.load(f)\n" +
		"    print(a.dtype, a.shape, a.tolist())\n"
	out, err := exec.CommandContext(t.Context(), python, "-X", "utf8", "-c", script, dir).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if string(out) != want.String() {
		t.Errorf("got\n%s\nwant\n%s", out, want.String())
	}
}

func FuzzTag(f *testing.F) {
	for _, tag := range []string{">f8", "datetime64[ns]", "[('a', '<i4'), (('t', 'b'), [('c', 'V4')], (2,))]", "{'names': ['a', 'b'], 'formats': ['i1', ('<u2', (2,))], 'offsets': [0, 4], 'itemsize': 8, 'aligned': True}", "[", "['", ""} {
		f.Add(tag, 8)
	}
	f.Fuzz(func(t *testing.T, tag string, size int) {
		d, err := core.Opaque(size)
		if err != nil {
			return // not an array
		}
		l, err := core.NewLayout(core.LayoutSpec{DType: d, Tag: tag, Shape: []int{2}})
		if err != nil {
			return // not an array
		}
		file, note, err := headerOf(l)
		if err != nil {
			t.Fatal(err)
		}
		_, header, _ := dictOf(t, file)
		if !strings.HasPrefix(header, "{'descr': ") || !strings.HasSuffix(header, ", 'fortran_order': False, 'shape': (2,), }") ||
			strings.Count(header, "\n") > 0 {
			t.Errorf("header %q", header)
		}
		if note != "" && !strings.Contains(header, "'|V") {
			t.Errorf("a note %q, but the header is %q", note, header)
		}
	})
}
