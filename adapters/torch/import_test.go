package torch_test

import (
	_ "embed" // imports.py
	"strings"
	"testing"

	"github.com/ndbridge/ndbridge/adapters/kit/program/programtest"
	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
)

//go:embed testdata/imports.py
var importsScript string

const readOnlyMemory core.QuirkID = "torch.no-readonly-memory"

// TestImports makes tensors of a host's memory.
func TestImports(t *testing.T) {
	t.Parallel()
	lib := programtest.NewImports(t)
	python := programtest.Newest(t, "torch", "NDBRIDGE_TEST_PYTHON_ALL")
	if out := lib.Run(t, python, importsScript, contract.Settings{}); !strings.HasSuffix(out, "done\n") {
		t.Error(out)
	}
}

// TestImportsReadOnlyMemory is the witness of the quirk about it.
func TestImportsReadOnlyMemory(t *testing.T) {
	t.Parallel()
	lib := programtest.NewImports(t)
	python := programtest.Newest(t, "torch", "NDBRIDGE_TEST_PYTHON_ALL")
	const script = `
import torch
x = host("torch", "int32", [3], readonly=True)
print("shared" if held() else "copied", flush=True)
x[0] = 1
print("written", memory(4).tolist())
`
	for name, tt := range map[string]struct {
		settings contract.AdapterSettings
		want     string
		ends     bool // badly
	}{
		"usual":    {contract.AdapterSettings{}, "copied\nwritten [0, 0, 0, 0]\n", false},
		"off":      {contract.AdapterSettings{DisabledQuirks: []core.QuirkID{readOnlyMemory}}, "shared\n", true},
		"copy":     {chosen("copy"), "copied\nwritten [0, 0, 0, 0]\n", false},
		"writable": {chosen("writable"), "shared\n", true},
		"refuse":   {chosen("refuse"), "configuration says no to tensors of such memory", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tt.settings.Name = "torch"
			out, err := lib.Try(t, python, script, contract.Settings{Adapters: []contract.AdapterSettings{tt.settings}})
			if !strings.Contains(out, tt.want) || (err != nil) != tt.ends || tt.ends && strings.Contains(out, "written") {
				t.Errorf("%v, %s, want %q", err, out, tt.want)
			}
		})
	}
}

func chosen(effect string) contract.AdapterSettings {
	return contract.AdapterSettings{QuirkEffects: map[core.QuirkID]string{readOnlyMemory: effect}}
}
