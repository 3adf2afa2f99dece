package engine_test

import (
	"errors"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/ndbridge/ndbridge/adapters/kit/program/programtest"
	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
	"github.com/ndbridge/ndbridge/core/coretest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestConform(t *testing.T) {
	t.Parallel()
	for name, script := range map[string]string{
		"ended":   coretest.Script,
		"running": coretest.Script + "import threading\nthreading.Event().wait()\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := programtest.Start(t, script, programtest.Options{})
			if name == "ended" {
				p.Finish(t)
			} else if _, err := p.View(t, "threading.Event", contract.Request{}); err == nil {
				t.Error("a class is viewed as an array")
			}
			coretest.Conform(t, func(*testing.T) contract.Producer { return p })
		})
	}
}

// first gives the first element of an array of float64.
func first(t *testing.T, p *programtest.Program, name string) float64 {
	t.Helper()
	v, err := p.View(t, name, contract.Request{})
	if err != nil {
		t.Error(err)
		return -1
	}
	defer v.Close()
	x, err := core.At[float64](v, make([]int, v.Rank())...)
	if err != nil {
		t.Error(err)
	}
	return x
}

// wants checks an error's category, and that its text holds each of texts.
func wants(t *testing.T, what string, err, kind error, texts ...string) {
	t.Helper()
	if !errors.Is(err, kind) {
		t.Errorf("%s: %v, want %v", what, err, kind)
		return
	}
	for _, text := range texts {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("%s: %q does not say %q", what, err, text)
		}
	}
}
