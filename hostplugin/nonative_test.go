//go:build ndbridge_nonative

package hostplugin_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/hostplugin"
)

// TestNothingIsEmbedded: a host that leaves the native module out says so where it finds no plugin.
func TestNothingIsEmbedded(t *testing.T) {
	t.Setenv("NDBRIDGE_LIB", "")
	_, err := hostplugin.Run(t.Context(), hostplugin.Program{Script: write(t, "camera.py", "")})
	if e, ok := errors.AsType[*core.Error](err); !ok || !errors.Is(err, core.ErrConfig) || !strings.Contains(err.Error(), "ndbridge_nonative") ||
		!strings.Contains(e.Remedy, "set NDBRIDGE_LIB") {
		t.Error(err)
	}
}
