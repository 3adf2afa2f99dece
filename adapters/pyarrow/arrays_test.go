package pyarrow_test

import (
	_ "embed" // scripts
	"strconv"
	"testing"

	"github.com/ndbridge/ndbridge/adapters/kit/program/programtest"
	"github.com/ndbridge/ndbridge/core"
)

//go:embed testdata/setup.py
var setup string

//go:embed testdata/arrays.py
var arraysScript string

// TestArrays compares the view of each kind of array with what PyArrow says of it, for arrays in its own
// pool of memory and for those of malloc, which are shared.
func TestArrays(t *testing.T) {
	t.Parallel()
	for version, python := range pythons(t) {
		for _, pool := range []string{"", "system"} {
			env := []string{"ARROW_DEFAULT_MEMORY_POOL=" + pool}
			if pool == "" {
				env = nil
			}
			t.Run(version+" "+pool, func(t *testing.T) {
				t.Parallel()
				p := programtest.Start(t, setup+arraysScript, programtest.Options{
					Python: python, Plugin: "pyarrow", Env: env,
				})
				p.Finish(t)
				everything := programtest.Report(t, p, "report")
				if len(everything) < 25 {
					t.Fatalf("only %d arrays", len(everything))
				}
				for _, s := range everything {
					v, err := p.View(t, "arrays["+strconv.Quote(s.Name)+"]", core.Request{})
					if err := s.Check("pyarrow", v, err); err != nil {
						t.Errorf("%s: %v", s.Name, err)
					}
					if v != nil {
						_ = v.Close()
					}
				}
				if info, err := p.Info(t.Context()); err != nil || info.Leases != 0 {
					t.Errorf("%d leases are left (%v)", info.Leases, err)
				}
			})
		}
	}
}
