package py_test

import (
	"errors"
	"testing"

	"github.com/ndbridge/ndbridge/adapters/kit/py"
	"github.com/ndbridge/ndbridge/core"
)

func TestOpenWithoutInterpreter(t *testing.T) {
	t.Parallel()
	_, err := py.Open() // the test's own process has none
	if e, ok := errors.AsType[*core.Error](err); !ok || !errors.Is(err, core.ErrUnsupported) || e.Remedy == "" {
		t.Errorf("error %v, want one that wraps core.ErrUnsupported and has a remedy", err)
	}
}
