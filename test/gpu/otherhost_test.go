//go:build cuda

package gpu

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"testing"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/hostplugin"
	"github.com/ndbridge/ndbridge/test/internal/harness"
)

const hostConfigEnv = "GPU_HOST_CONFIG" // makes the test binary a host that runs this configuration

// sight is what a host in a process of its own saw of its program's array.
type sight struct {
	Route  core.Route
	Reason core.Reason
	First  float32
	PID    int // of the program
}

// runHost is such a host: it starts its program, takes a view, says what it saw, and waits for the end
// of its input, or to be killed.
func runHost(config string) int {
	if err := lookOnce(config); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func lookOnce(config string) error {
	var cfg hostplugin.Config
	if err := json.Unmarshal([]byte(config), &cfg); err != nil {
		return err
	}
	host, err := hostplugin.New(cfg)
	if err != nil {
		return err
	}
	defer host.Close()
	ctx := contextOfProcess()
	session, err := host.Start(ctx, cfg.Programs[0].Name)
	if err != nil {
		return err
	}
	view, err := session.View(ctx, "a")
	if err != nil {
		return err
	}
	defer view.Close()
	info, err := session.Info(ctx)
	if err != nil {
		return err
	}
	data := make([]byte, view.NBytes())
	if _, err := core.CopyBytes(ctx, data, view); err != nil {
		return err
	}
	seen := sight{Route: view.Route(), Reason: view.Reason(), First: floats(data)[0], PID: info.PID}
	if err := json.NewEncoder(os.Stdout).Encode(seen); err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

// otherHost is a host in a process of its own.
type otherHost struct {
	command *exec.Cmd
	in      io.Closer
	seen    sight
}

// startHost starts a host whose program has an array a of sevens. The host's own environment is this
// one's and one variable more.
func startHost(t *testing.T, programEnv map[string]string, variable string) *otherHost {
	t.Helper()
	cfg, _ := harness.Config(t, `
import time
import with_driver as framework
from work import synchronize
a = framework.make("cuMemAlloc")
framework.write("cuMemAlloc", a, 7.0)
synchronize()
`, options(t, programEnv))
	text, err := json.Marshal(cfg)
	if err != nil {
		t.Fatal(err)
	}
	h := &otherHost{command: exec.CommandContext(context.WithoutCancel(t.Context()), os.Args[0])} // ends with its input
	h.command.Env = append(os.Environ(), hostConfigEnv+"="+string(text))
	if variable != "" {
		h.command.Env = append(h.command.Env, variable)
	}
	h.command.Stderr = os.Stderr
	if h.in, err = h.command.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := h.command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := h.command.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, &h.seen)
	}
	if err != nil {
		h.end()
		t.Fatalf("the host said %q: %v", line, err)
	}
	return h
}

func (h *otherHost) end() {
	h.in.Close()
	_ = h.command.Wait() // it may have been killed
}

// hostOf gives what such a host saw.
func hostOf(t *testing.T, programEnv map[string]string, variable string) sight {
	t.Helper()
	h := startHost(t, programEnv, variable)
	h.end()
	return h.seen
}
