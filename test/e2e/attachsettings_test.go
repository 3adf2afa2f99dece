package e2e

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

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
			s := run.Attach(t, settingHost(t, tt.set))
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

// settingHost makes a host with settings for the program trainer.
func settingHost(t *testing.T, set func(*hostplugin.Config)) *hostplugin.Host {
	t.Helper()
	config := hostplugin.Config{Logger: harness.Discard(), Programs: []hostplugin.Program{{Name: "trainer", Module: "x"}}}
	set(&config)
	host, err := hostplugin.New(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := host.Close(); err != nil {
			t.Errorf("host.Close: %v", err)
		}
	})
	return host
}

// TestAttachHostsDiffer: hosts with different settings look at one program at once, and each has what its own say, also of what is
// published while all are there.
func TestAttachHostsDiffer(t *testing.T) {
	t.Parallel()
	run := harness.RunAlone(t, listening, harness.RunningOptions{Python: harness.PythonAll(t), Heap: true})
	run.Remote.Exec(t, `
import torch, time
w = torch.ones(1 << 17, requires_grad=True)
def slow(): time.sleep(0.5); return 1
`)
	torch := func(quirk hostplugin.QuirkSetting) func(*hostplugin.Config) {
		return func(c *hostplugin.Config) {
			c.Adapters = []hostplugin.Adapter{{Name: "torch", Quirks: []hostplugin.QuirkSetting{quirk}}}
		}
	}
	plain := run.Attach(t, settingHost(t, func(*hostplugin.Config) {}))
	refuses := run.Attach(t, settingHost(t, torch(hostplugin.QuirkSetting{ID: "torch.requires-grad", Effect: "refuse"})))
	trusts := run.Attach(t, settingHost(t, torch(hostplugin.QuirkSetting{ID: "torch.requires-grad", Disabled: true})))
	asks := run.Attach(t, settingHost(t, func(c *hostplugin.Config) { c.Programs[0].Handoff.Off = true }))
	narrow := run.Attach(t, settingHost(t, func(c *hostplugin.Config) { c.Programs[0].Workers = 1 }))
	run.Remote.Exec(t, "ndbridge.publish({'w2': w, 'small': np.arange(3.0)})")
	for _, name := range []string{"w", "w2"} {
		if v := plain.View(t, name); v.Copied() || slice[float32](t, v)[3] != 1 {
			t.Errorf("%s of a host without settings: %v", name, v)
		}
		for what, s := range map[string]*harness.Run{"which refuses": refuses, "which switches the quirk off": trusts} {
			if v, err := s.Session.View(t.Context(), name); err == nil {
				t.Errorf("%s of a host %s: %v", name, what, v)
			}
		}
		if v := asks.View(t, name); v.Copied() || slice[float32](t, v)[3] != 1 {
			t.Errorf("%s of a host without the hand-off: %v", name, v)
		}
	}
	if _, _, err := source(t, asks, "small").Latest(t.Context(), nil); !errors.Is(err, core.ErrUnsupported) {
		t.Errorf("Latest without the hand-off: %v", err)
	}
	slow := fn(t, narrow, "slow")
	begun := time.Now()
	first, second := slow.Go(t.Context()), slow.Go(t.Context())
	for _, f := range []*hostplugin.Future{first, second} {
		if _, err := f.Wait(t.Context()); err != nil {
			t.Error(err)
		}
	}
	if d := time.Since(begun); d < time.Second {
		t.Errorf("with one worker, two calls of half a second took %v", d)
	}
}

// TestAttachStuck: a function that still runs ends the session of a host that does not want to wait for it, and not the program, which
// other hosts have as well; that is what the errors say.
func TestAttachStuck(t *testing.T) {
	t.Parallel()
	run := harness.RunAlone(t, listening, harness.RunningOptions{Heap: true})
	run.Remote.Exec(t, "import time\ndef stuck(): time.sleep(5)")
	other := run.Attach(t, harness.NewHost(t))
	s := run.Attach(t, settingHost(t, func(c *hostplugin.Config) {
		c.Programs[0].OnStuck, c.Programs[0].StuckTimeout = "end", 200*time.Millisecond
	}))
	_, err := cancelled(t, s, "stuck").Wait(t.Context())
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "the session was ended") {
		t.Errorf("the call that was stuck: %v", err)
	}
	<-s.Done()
	if err := s.Err(); !errors.Is(err, core.ErrUnavailable) || !strings.Contains(err.Error(), "the host ended the session") {
		t.Errorf("Err = %v", err)
	}
	if v := other.View(t, "x"); slice[float64](t, v)[5] != 1 || !run.Alive() {
		t.Errorf("another host: %v, the program is alive: %v", v, run.Alive())
	}
}
