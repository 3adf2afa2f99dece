package hostplugin

import (
	"errors"
	"strings"
	"testing"

	"github.com/ndbridge/ndbridge/core"
)

// TestSupportedSystems: each system on which programs cannot run is named, with what to do.
func TestSupportedSystems(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		release      string
		bits         int
		says, remedy string // "" is supported
	}{
		{"6.18.44", 64, "", ""},
		{"6.8.0-1015-azure", 64, "", ""},
		{"4.4.0-19041-Microsoft", 64, "this is WSL1", "WSL2"},
		{"4.19.104-microsoft-standard", 64, "", ""},
		{"5.15.167.4-microsoft-standard-WSL2", 64, "", ""},
		{"6.18.44", 32, "built for 32 bits", "GOARCH=amd64"},
	} {
		err := supported(c.release, c.bits)
		if c.says == "" {
			if err != nil {
				t.Errorf("%s: %v", c.release, err)
			}
			continue
		}
		if e, ok := errors.AsType[*core.Error](err); !ok || !errors.Is(err, core.ErrUnsupported) || !strings.Contains(err.Error(), c.says) ||
			!strings.Contains(e.Remedy, c.remedy) {
			t.Errorf("%s, %d bits: %v", c.release, c.bits, err)
		}
	}
	if err := checkSystem(); err != nil {
		t.Error(err)
	}
}
