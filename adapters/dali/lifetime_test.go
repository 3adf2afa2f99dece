package dali_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/ndbridge/ndbridge/adapters/kit/program/programtest"
	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
)

// reuseScript lets the host have a pipeline run on and on, by the name again.now. The answer says
// whether the memory of the first output was written to.
const reuseScript = `
import ctypes

outputs = pipeline(lambda: fn.random.uniform(range=[1.0, 2.0], shape=[300, 400]), OPTIONS)
first = outputs.run()
before = first[0].as_array().copy()
whole = first[0].as_tensor()
address = np.asarray(whole).ctypes.data
del whole
memory = np.frombuffer((ctypes.c_char * before.nbytes).from_address(address), "f4").reshape(before.shape)


class Again:
    @property
    def now(self):
        """Forgets the output, and runs the pipeline until it has used the memory again, or will not."""
        global first
        first = None
        for _ in range(20):
            kept = outputs.run()
            if (memory != before).any():
                return np.ones(1, "f4")
        return np.zeros(1, "f4")


again = Again()
`

// TestOutputsReused runs a pipeline while a view of its output is open. The view keeps its values if the
// pipeline lets outputs be held at all, and shows what is in the memory otherwise.
func TestOutputsReused(t *testing.T) {
	t.Parallel()
	for version, python := range pythons(t) {
		for _, tt := range []struct {
			options string
			reused  bool
		}{
			{"exec_dynamic=True", false},
			// Not run ahead: a pipeline in the background writes while the test compares.
			{"exec_dynamic=False, exec_pipelined=False, exec_async=False", true},
		} {
			t.Run(tt.options+"/"+version, func(t *testing.T) {
				t.Parallel()
				script := setup + strings.ReplaceAll(reuseScript, "OPTIONS", tt.options)
				p := programtest.Start(t, script, programtest.Options{Python: python})
				p.Finish(t)
				v, err := p.View(t, "first[0]", contract.Request{Copy: contract.CopyNever})
				if err != nil {
					t.Fatal(err)
				}
				if got := values(t, p, "again.now")[0] == 1; got != tt.reused {
					t.Errorf("the pipeline has written to the memory again: %v", got)
				}
				now, err := core.Slice[float32](v)
				if err != nil {
					t.Fatal(err)
				}
				if !slices.Equal(now, values(t, p, "memory")) {
					t.Error("the view shows something else than the memory")
				}
				if slices.Equal(now, values(t, p, "before")) == tt.reused {
					t.Errorf("the view keeps the values of before: %v", tt.reused)
				}
			})
		}
	}
}

// values copies an array.
func values(t *testing.T, p *programtest.Program, name string) []float32 {
	t.Helper()
	v, err := p.View(t, name, contract.Request{})
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	x := make([]float32, v.Len())
	if _, err := core.Copy(t.Context(), x, v); err != nil {
		t.Fatal(err)
	}
	return x
}
