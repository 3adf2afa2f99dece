package hostplugin_test

import (
	"cmp"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
	"github.com/ndbridge/ndbridge/core/coretest"
	"github.com/ndbridge/ndbridge/hostplugin"
)

// newHost makes a host with the given programs whose log goes to the test.
func newHost(tb testing.TB, programs ...hostplugin.Program) *hostplugin.Host {
	tb.Helper()
	return newHostWith(tb, hostplugin.Config{Programs: programs})
}

func newHostWith(tb testing.TB, cfg hostplugin.Config) *hostplugin.Host {
	tb.Helper()
	cfg.Logger = cmp.Or(cfg.Logger, slog.New(slog.NewTextHandler(tb.Output(), nil)))
	host, err := hostplugin.New(cfg)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := host.Close(); err != nil && !errors.Is(err, core.ErrUnavailable) { // some have to be killed
			tb.Error(err)
		}
	})
	return host
}

func start(t *testing.T, args ...string) *hostplugin.Session {
	t.Helper()
	return startWith(t, func(p *hostplugin.Program) { p.Args = args })
}

// startWith starts the fake program with other settings.
func startWith(tb testing.TB, set func(p *hostplugin.Program)) *hostplugin.Session {
	tb.Helper()
	p := fake("serve")
	set(&p)
	s, err := newHost(tb, p).Start(tb.Context(), "fake")
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

func view(t *testing.T, s *hostplugin.Session, name string, opts ...hostplugin.ViewOption) *core.View {
	t.Helper()
	v, err := s.View(t.Context(), name, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func closeView(t *testing.T, v *core.View) {
	t.Helper()
	if err := v.Close(); err != nil {
		t.Error(err)
	}
}

func info(t *testing.T, s *hostplugin.Session) contract.Info {
	t.Helper()
	i, err := s.Info(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return i
}

// TestConform runs the contract's own suite through a session's producer.
func TestConform(t *testing.T) {
	t.Parallel()
	s := start(t)
	coretest.Conform(t, func(*testing.T) contract.Producer { return s.Producer() })
}

func TestArraysAndInfo(t *testing.T) {
	t.Parallel()
	p := fake("serve")
	p.Env["GREETING"] = "good morning"
	s, err := newHostWith(t, hostplugin.Config{
		Programs: []hostplugin.Program{p},
		Adapters: []hostplugin.Adapter{{Name: "fortran"}, {Name: "cobol"}},
	}).Start(t.Context(), "fake")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for e, err := range s.Arrays(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, e.Name)
	}
	if !slices.IsSorted(names) || !slices.Contains(names, "picture") {
		t.Errorf("names = %v", names)
	}
	i := info(t, s)
	if i.Program != "fake" || i.PID == os.Getpid() || !strings.HasPrefix(i.Interpreter, "2 adapters") ||
		!strings.HasSuffix(i.Interpreter, "good morning") {
		t.Errorf("Info = %+v", i)
	}
}

func TestSettingsErrorsFailTheStart(t *testing.T) {
	t.Parallel()
	for _, setting := range []hostplugin.QuirkSetting{
		{ID: "fortran.refuse-me", Disabled: true},
		{ID: "fortran.refuse-me", Effect: "refuse"},
	} {
		host := newHostWith(t, hostplugin.Config{
			Programs: []hostplugin.Program{fake("serve")},
			Adapters: []hostplugin.Adapter{{
				Name: "fortran", Quirks: []hostplugin.QuirkSetting{setting, {ID: "fortran.other"}},
			}},
		})
		_, err := host.Start(t.Context(), "fake")
		if !errors.Is(err, core.ErrConfig) || err.Error() != "start fake: bad configuration: no such quirk; leave it out" {
			t.Errorf("Start with %+v = %v", setting, err)
		}
	}
}

// TestAdaptersOfAnotherPlugin holds that settings reach only the programs whose plugin they are for.
func TestAdaptersOfAnotherPlugin(t *testing.T) {
	t.Parallel()
	script := filepath.Join(t.TempDir(), "program.py")
	if err := os.WriteFile(script, []byte("value = bytearray(8)\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	host := newHostWith(t, hostplugin.Config{
		Programs: []hostplugin.Program{
			{Name: "numpy", Script: script, Python: os.Getenv("NDBRIDGE_TEST_PYTHON"), Plugin: "numpy"},
			{Name: "all", Script: script, Python: os.Getenv("NDBRIDGE_TEST_PYTHON")},
		},
		Adapters: []hostplugin.Adapter{
			{Name: "torch", Quirks: []hostplugin.QuirkSetting{{ID: "torch.requires-grad", Effect: "refuse"}}},
			{Name: "generic", Copy: contract.CopyNever},
		},
	})
	for _, program := range []string{"numpy", "all"} {
		s, err := host.Start(t.Context(), program)
		if err != nil {
			t.Error(err)
			continue
		}
		if _, err := s.View(t.Context(), "value"); !errors.Is(err, core.ErrNotShared) {
			t.Errorf("%s: a bytearray that must not be copied: %v", program, err)
		}
	}
}

// TestHostKeepsItsConfiguration: what becomes of the Config that New was given is not the host's matter, and a program
// may be started again.
func TestHostKeepsItsConfiguration(t *testing.T) {
	t.Parallel()
	p := fake("serve")
	host := newHost(t, p)
	p.Env[fakeVariable] = "exit"
	for range 2 {
		s, err := host.Start(t.Context(), "fake")
		if err != nil {
			t.Fatal(err)
		}
		closeView(t, view(t, s, "scalar"))
	}
}
