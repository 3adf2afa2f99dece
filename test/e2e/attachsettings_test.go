package e2e

import (
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"testing"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
	"github.com/ndbridge/ndbridge/hostplugin"
	"github.com/ndbridge/ndbridge/test/internal/harness"
)

// TestAttachPublishedForEachHost: what was published before a host came is given to it as its own settings want.
func TestAttachPublishedForEachHost(t *testing.T) {
	t.Parallel()
	run := harness.RunAlone(t, listening, harness.RunningOptions{Heap: true})
	file := filepath.Join(t.TempDir(), "file")
	run.Remote.Exec(t, fmt.Sprintf("m = np.memmap(%q, np.float64, 'w+', shape=1 << 17); m[:] = 3", file))
	run.Remote.Exec(t, "ndbridge.publish({'mapped': m, 'small': np.arange(3.0)})")
	for _, tt := range []struct {
		name string
		set  func(*hostplugin.Config)
		want map[string]string // how each is had
	}{
		{"default", func(*hostplugin.Config) {}, map[string]string{"mapped": "shared", "small": "copied"}},
		{
			"copies of mapped files", func(c *hostplugin.Config) { c.Programs[0].CopyMappedFiles = true },
			map[string]string{"mapped": "copied", "small": "copied"},
		},
		{
			"no copies", func(c *hostplugin.Config) {
				c.Adapters = []hostplugin.Adapter{{Name: "numpy", Copy: contract.CopyNever}}
			}, map[string]string{"mapped": "shared", "small": "refused"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			config := hostplugin.Config{Logger: slog.New(slog.DiscardHandler), Programs: []hostplugin.Program{{Name: "trainer", Module: "x"}}}
			tt.set(&config)
			host, err := hostplugin.New(config)
			if err != nil {
				t.Fatal(err)
			}
			defer host.Close()
			s := run.Attach(t, host)
			for name, want := range tt.want {
				got := "shared"
				source, err := s.Source(name)
				if err != nil {
					t.Fatal(err)
				}
				v, err := source.Next(t.Context(), nil)
				switch {
				case err == nil && v.Version() != 1:
					t.Errorf("%s: version %d", name, v.Version())
				case errors.Is(err, core.ErrNotShared):
					got = "refused"
				case err != nil:
					t.Error(err)
				case v.Copied():
					got = "copied"
				}
				if got != want {
					t.Errorf("%s: %s, want %s", name, got, want)
				}
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}
