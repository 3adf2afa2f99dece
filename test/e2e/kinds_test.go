package e2e

import (
	"crypto/sha256"
	_ "embed" // kinds.py
	"encoding/hex"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
	"github.com/ndbridge/ndbridge/hostplugin"
	"github.com/ndbridge/ndbridge/test/internal/harness"
)

//go:embed testdata/kinds.py
var kindsScript string

// kind is what numpy says about one array of kinds.py.
type kind struct {
	Name     string
	Shape    []int
	Strides  []int
	DType    string
	Tag      string
	ReadOnly bool `json:"read_only"`
	Routes   []string
	SHA256   string
	Error    string
}

// TestEveryKindOfArray compares the host's view of each kind of array with what numpy says of it.
func TestEveryKindOfArray(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "kinds.json")
	run := harness.Start(t, kindsScript, harness.Options{Args: []string{file}})
	harness.Eval[int](t, run.Remote, "len(cases)") // answers when the file is complete
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var kinds []kind
	if err := json.Unmarshal(text, &kinds); err != nil {
		t.Fatal(err)
	}
	if len(kinds) < 60 {
		t.Fatalf("only %d kinds", len(kinds))
	}
	listed := map[string]contract.Entry{}
	for entry, err := range run.Arrays(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		listed[entry.Name] = entry
	}
	for _, k := range kinds {
		t.Run(k.Name, func(t *testing.T) {
			if k.Error != "" {
				refused(t, run, listed, k)
				return
			}
			view := run.View(t, k.Name)
			same(t, k, view)
			entry, ok := listed[k.Name]
			if !ok || entry.Err != nil {
				t.Fatalf("listed: %v, %v", ok, entry.Err)
			}
			if entry.Layout.DType() != view.DType() || !slices.Equal(entry.Layout.Shape(), view.Shape()) {
				t.Errorf("listed as %v %v, viewed as %v %v",
					entry.Layout.DType(), entry.Layout.Shape(), view.DType(), view.Shape())
			}
			writableAsSaid(t, run, k, view)
		})
	}
	run.NoLeases(t)
}

func same(t *testing.T, k kind, view *core.View) {
	t.Helper()
	if !slices.Equal(view.Shape(), k.Shape) {
		t.Errorf("shape %v, numpy says %v", view.Shape(), k.Shape)
	}
	strides := make([]int, view.Rank())
	for axis := range strides {
		strides[axis] = view.Stride(axis)
	}
	if view.Len() > 0 && !slices.Equal(strides, k.Strides) {
		t.Errorf("strides %v, numpy says %v", strides, k.Strides)
	}
	if view.DType().String() != k.DType || view.Tag() != k.Tag {
		t.Errorf("dtype %v tag %q, numpy says %s %q", view.DType(), view.Tag(), k.DType, k.Tag)
	}
	if view.ReadOnly() != k.ReadOnly {
		t.Errorf("read-only: %v, numpy says %v", view.ReadOnly(), k.ReadOnly)
	}
	if !slices.Contains(k.Routes, string(view.Route())) {
		t.Errorf("route %v (%v), want one of %v", view.Route(), view.Reason(), k.Routes)
	}
	if view.Copied() != (view.Reason() != "") {
		t.Errorf("copied: %v, but the reason is %v", view.Copied(), view.Reason())
	}
	data := make([]byte, view.NBytes())
	if n, err := core.CopyBytes(t.Context(), data, view); err != nil || n != len(data) {
		t.Fatalf("copied %d of %d bytes: %v", n, len(data), err)
	}
	if sum := sha256.Sum256(data); hex.EncodeToString(sum[:]) != k.SHA256 {
		t.Error("the values differ from numpy's")
	}
}

// writableAsSaid asks for a writable view, which must be granted exactly if the array is writable
// and not copied.
func writableAsSaid(t *testing.T, run *harness.Run, k kind, view *core.View) {
	t.Helper()
	writable, err := run.Session.View(t.Context(), k.Name, hostplugin.Writable())
	if err == nil {
		defer writable.Close()
	}
	switch {
	case k.ReadOnly:
		if !errors.Is(err, core.ErrReadOnly) {
			t.Errorf("a writable view of a read-only array: %v, want ErrReadOnly", err)
		}
	case view.Copied():
		if !errors.Is(err, core.ErrNotShared) {
			t.Errorf("a writable view of a copy: %v, want ErrNotShared", err)
		}
	case err != nil:
		t.Errorf("a writable view: %v", err)
	case !writable.Writable():
		t.Error("a view asked for as writable is not")
	}
}

func refused(t *testing.T, run *harness.Run, listed map[string]contract.Entry, k kind) {
	t.Helper()
	categories := map[string]error{"dtype": core.ErrDType, "unsupported": core.ErrUnsupported}
	view, err := run.Session.View(t.Context(), k.Name)
	if err == nil {
		view.Close()
		t.Fatal("got a view")
	}
	if !errors.Is(err, categories[k.Error]) {
		t.Errorf("error %q is not of category %s", err, k.Error)
	}
	if e, ok := errors.AsType[*core.Error](err); !ok || e.Remedy == "" {
		t.Errorf("error %q names no remedy", err)
	}
	if entry, ok := listed[k.Name]; !ok || !errors.Is(entry.Err, categories[k.Error]) {
		t.Errorf("listed: %v, with %v", ok, entry.Err)
	}
}
