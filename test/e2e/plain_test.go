package e2e

import (
	"crypto/sha256"
	_ "embed" // plain.py
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/test/internal/harness"
)

//go:embed testdata/plain.py
var plainScript string

// plain is what plain.py says about one object.
type plain struct {
	kind
	Text string
}

// TestPlainObjects views objects of no framework by whatever protocol they have, and compares them with
// NumPy's arrays of the same elements. What is no array is an error, and the session goes on.
func TestPlainObjects(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "plain.json")
	run := harness.Start(t, plainScript, harness.Options{Python: harness.PythonMore(t), Args: []string{file}})
	if n := harness.Eval[int](t, run.Remote, "len(said)"); n < 43 { // answers when the file is complete
		t.Fatalf("only %d objects", n)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var objects []plain
	if err := json.Unmarshal(text, &objects); err != nil {
		t.Fatal(err)
	}
	for _, o := range objects {
		t.Run(o.Name, func(t *testing.T) {
			t.Parallel()
			view, err := run.Session.View(t.Context(), "objects["+strconv.Quote(o.Name)+"]")
			if o.Error != "" {
				if err == nil {
					view.Close()
				}
				if core.Category(err) != o.Error || !strings.Contains(err.Error(), o.Text) {
					t.Errorf("%v, want %s that says %q", err, o.Error, o.Text)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			defer view.Close()
			if view.DType().String() != o.DType || !slices.Equal(view.Shape(), o.Shape) ||
				view.ReadOnly() != o.ReadOnly || !slices.Contains(o.Routes, string(view.Route())) {
				t.Errorf("%v read-only %v, by %v; want %+v", view.Layout(), view.ReadOnly(), view.Route(), o)
			}
			if view.Len() > 1 && !view.Copied() && !slices.Equal(view.Strides(), o.Strides) {
				t.Errorf("strides %v, want %v", view.Strides(), o.Strides)
			}
			data := make([]byte, view.NBytes())
			if _, err := core.CopyBytes(t.Context(), data, view); err != nil {
				t.Fatal(err)
			}
			if sum := sha256.Sum256(data); hex.EncodeToString(sum[:]) != o.SHA256 {
				t.Errorf("other bytes than in the program: % x", data[:min(len(data), 32)])
			}
		})
	}
}
