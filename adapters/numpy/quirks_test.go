package numpy_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/ndbridge/ndbridge/adapters/kit/program/programtest"
	"github.com/ndbridge/ndbridge/adapters/numpy"
	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
)

func quirks() *programtest.Quirks {
	return &programtest.Quirks{
		Framework: "numpy",
		Table:     numpy.New().Quirks(),
		Setup:     "import numpy as np",
		Witnesses: []programtest.Witness{
			{
				ID: "numpy.object-dtype", Array: `np.zeros(3, [("x", "f4"), ("o", "O")])`,
				With:    `^wrong dtype: .*pointers into the process; convert`,
				Without: `^wrong dtype: .*fields are pointers to Python objects`, // without a word of what helps
			}, {
				ID: "numpy.longdouble", Array: `np.zeros(3, "longdouble")`,
				With:    `^wrong dtype: .*long doubles; convert`,
				Without: `^python error: .*Error: .*IEEE floating point|^wrong dtype: .*f16`,
			}, {
				ID: "numpy.mask-dropped", Array: `np.ma.array([1, 2], mask=[False, True], dtype="i1")`,
				With:    `^unsupported operation: .*masked; publish`,
				Without: `^view of int8\[2\].*: 0102$`, // the 2 is masked
			}, {
				ID: "numpy.scalars-without-dlpack", Array: `np.float64(2.5)`,
				With:    `^view of float64\[\] read-only, staged converted`,
				Without: `^view of float64\[\] writable, staged below-threshold`,
			}, {
				ID: "numpy.non-numeric-dtypes", Alone: true,
				Array: `np.ones(2, np.dtype([("a", "u1"), ("b", "i2")], align=True))`,
				With:  `^view of \{'names':\s*\['a',\s*'b'\].*\[2\] writable.*: 01..010001..0100$`,
				// Before there was DLPack, only the name was another.
				Without: `^python error: .*Error: DLPack only supports|^view of \[\('a'.*\('', '\|V1'\)`,
			}, {
				ID: "numpy.foreign-byte-order", Array: `np.arange(1, 4).astype(">i2")`,
				With:    `^view of >i2\[3\] writable.*: 000100020003$`,
				Without: `^python error: .*Error: DLPack only supports native byte`,
			}, {
				ID: "numpy.stride-not-multiple", Array: `np.ones(3, [("a", "u1"), ("x", "i2")])["x"]`,
				With:    `^view of int16\[3\] writable.*: 010001000100$`,
				Without: `^python error: .*Error: DLPack only supports strides which are a multiple of itemsize`,
			}, {
				ID: "numpy.bool-before-1.25", Array: `np.array([True, False])`,
				With:    `^view of bool\[2\] writable.*: 0100$`,
				Without: `^python error: .*Error: DLPack only supports`,
			}, {
				ID: "numpy.readonly-needs-versioned", Array: `np.frombuffer(b"abcd", "u1")`,
				With:    `^view of uint8\[4\] read-only.*: 61626364$`,
				Without: `^python error: .*Error: .*(readonly|writeable) array`,
			}, {
				ID: "numpy.stream-none-only", Array: `np.arange(3.0)`, Alone: true,
				With:    `^view of float64\[3\] writable`,
				Without: `^python error: .*(RuntimeError|ValueError): NumPy only supports stream=None`,
			}, {
				ID: "numpy.kwargs-before-2.1", Array: `np.arange(4.0)`, Alone: true,
				With:    `^view of float64\[4\] writable`,
				Without: `^python error: .*TypeError: .*(max_version|copy|keyword)`,
			},
		},
	}
}

// withML adds what can be seen only where ml_dtypes is installed.
func withML(q *programtest.Quirks) *programtest.Quirks {
	q.Setup += ", ml_dtypes"
	q.Witnesses = append(q.Witnesses, programtest.Witness{
		ID: "numpy.extension-dtypes", Array: `np.arange(3).astype(ml_dtypes.float8_e5m2)`,
		With:    `^view of float8_e5m2\[3\] writable.*: 003c40$`,
		Without: `^python error: .*BufferError: DLPack only supports`,
	})
	return q
}

// TestQuirks proves each quirk on the real NumPy, in every version at hand that has it.
func TestQuirks(t *testing.T) {
	t.Parallel()
	interpreters := pythons(t)
	proven := make(chan []core.QuirkID, len(interpreters))
	t.Run("versions", func(t *testing.T) {
		for venv, python := range interpreters {
			t.Run(venv, func(t *testing.T) {
				t.Parallel()
				q := quirks()
				if python == programtest.Variable(t, "NDBRIDGE_TEST_PYTHON") {
					q = withML(q)
				}
				proven <- q.Prove(t, python)
			})
		}
	})
	close(proven)
	var all []core.QuirkID
	for ids := range proven {
		all = append(all, ids...)
	}
	for _, q := range numpy.New().Quirks() {
		if !slices.Contains(all, q.ID) && !testing.Short() {
			t.Errorf("%s is proven in no version of NumPy", q.ID)
		}
	}
}

// TestQuirkTable checks what a reader of the table is promised.
func TestQuirkTable(t *testing.T) {
	t.Parallel()
	seen := map[core.QuirkID]bool{}
	for _, q := range numpy.New().Quirks() {
		if seen[q.ID] {
			t.Errorf("%s stands twice", q.ID)
		}
		seen[q.ID] = true
		if q.Framework != "numpy" || !strings.HasPrefix(string(q.ID), "numpy.") {
			t.Errorf("%s is of framework %q", q.ID, q.Framework)
		}
		if q.Summary == "" || q.Upstream == "" || q.Effect == "" {
			t.Errorf("%s: something is missing: %+v", q.ID, q)
		}
		if q.Effect == contract.EffectRefuse && q.Remedy == "" {
			t.Errorf("%s refuses without a remedy", q.ID)
		}
		if q.Effect != contract.EffectRefuse && q.Protocol == "" {
			t.Errorf("%s does not say which protocol it concerns", q.ID)
		}
		for _, version := range []string{q.Since, q.Until} {
			if _, err := contract.ParseVersion(version); version != "" && err != nil {
				t.Errorf("%s: %v", q.ID, err)
			}
		}
		if !slices.ContainsFunc(withML(quirks()).Witnesses, func(w programtest.Witness) bool { return w.ID == q.ID }) {
			t.Errorf("%s has no witness", q.ID)
		}
	}
	for _, w := range withML(quirks()).Witnesses {
		if !seen[w.ID] {
			t.Errorf("%s is witnessed and is no quirk", w.ID)
		}
	}
}
