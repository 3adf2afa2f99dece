package hostplugin_test

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/hashicorp/go-hclog"

	"github.com/ndbridge/ndbridge/hostplugin"
	"github.com/ndbridge/ndbridge/hostplugin/bootstrap/bootstraptest"
)

func TestOutput(t *testing.T) {
	t.Parallel()
	var log bootstraptest.Buffer
	host := newHostWith(t, hostplugin.Config{
		Programs: []hostplugin.Program{fake("serve", "hello")},
		Logger:   slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelInfo})),
	})
	if _, err := host.Start(t.Context(), "fake"); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`msg="hello by go-plugin" program=fake stream=stdout`,
		`msg="hello by descriptor 1" program=fake stream=stdout`,
		`msg="hello by descriptor 2" program=fake stream=stderr`,
	} {
		eventually(t, want, func() bool { return strings.Contains(log.String(), want) })
	}
	if err := host.Close(); err != nil {
		t.Error(err)
	}
	if n := strings.Count(log.String(), "\n"); n != 3 {
		t.Errorf("more than the program has printed:\n%s", log.String())
	}
}

// TestOutputByHCLog: the same records by the other way of logging.
func TestOutputByHCLog(t *testing.T) {
	t.Parallel()
	var log bootstraptest.Buffer
	logger := hclog.New(&hclog.LoggerOptions{Name: "app", Output: &log, JSONFormat: true, DisableTime: true, Level: hclog.Info})
	host, err := hostplugin.New(hostplugin.Config{
		Programs: []hostplugin.Program{fake("serve", "hello")},
		Logger:   slog.New(hostplugin.HCLogHandler(logger)),
	})
	if err != nil {
		t.Fatal(err)
	}
	defer host.Close()
	if _, err := host.Start(t.Context(), "fake"); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`{"@level":"info","@message":"hello by descriptor 1","@module":"app","program":"fake","stream":"stdout"}`,
		`{"@level":"info","@message":"hello by descriptor 2","@module":"app","program":"fake","stream":"stderr"}`,
	} {
		eventually(t, want, func() bool { return strings.Contains(log.String(), want+"\n") })
	}
}

func TestRawOutput(t *testing.T) {
	t.Parallel()
	var stdout, stderr bootstraptest.Buffer
	p := fake("serve", "hello", "print=2")
	p.Stdout, p.Stderr = &stdout, &stderr
	host := newHost(t, p)
	if _, err := host.Start(t.Context(), "fake"); err != nil {
		t.Fatal(err)
	}
	line := strings.Repeat("x", 99) + "\n"
	eventually(t, "all output", func() bool {
		return strings.Contains(stdout.String(), "hello by go-plugin\n") &&
			strings.Contains(stdout.String(), "hello by descriptor 1\n") &&
			stderr.String() == "hello by descriptor 2\n"+line+line
	})
	if strings.Contains(stdout.String(), "|grpc|") {
		t.Error("the handshake is part of the output")
	}
}

// TestMuchOutput: neither a slow log nor a lot of output stops a program.
func TestMuchOutput(t *testing.T) {
	t.Parallel()
	host := newHostWith(t, hostplugin.Config{
		Programs: []hostplugin.Program{fake("serve", "print=200000")},
		Logger:   slog.New(slog.DiscardHandler),
	})
	s, err := host.Start(t.Context(), "fake") // it prints before it answers
	if err != nil {
		t.Fatal(err)
	}
	closeView(t, view(t, s, "samples"))
}
