package e2e

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"testing"
	"time"

	"github.com/ndbridge/ndbridge/core/contract"
	"github.com/ndbridge/ndbridge/hostplugin"
	"github.com/ndbridge/ndbridge/test/internal/harness"
)

// ranks is the example of docs/torchrun.md.
func ranks(python, script string, world, port int) hostplugin.Config {
	var cfg hostplugin.Config
	for rank := range world {
		cfg.Programs = append(cfg.Programs, hostplugin.Program{
			Name: fmt.Sprintf("rank%d", rank), Python: python, Script: script,
			Env: map[string]string{
				"RANK": strconv.Itoa(rank), "LOCAL_RANK": strconv.Itoa(rank),
				"WORLD_SIZE": strconv.Itoa(world), "LOCAL_WORLD_SIZE": strconv.Itoa(world),
				"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": strconv.Itoa(port),
			},
		})
	}
	return cfg
}

// startRanks is its second part.
func startRanks(ctx context.Context, host *hostplugin.Host, world int) ([]*hostplugin.Session, error) {
	var sessions []*hostplugin.Session
	for rank := range world { // Start does not wait for the script, so the ranks can wait for each other
		session, err := host.Start(ctx, fmt.Sprintf("rank%d", rank))
		if err != nil {
			return nil, err
		}
		sessions = append(sessions, session)
	}
	return sessions, nil
}

// TestRanks runs the example of docs/torchrun.md: each rank is a program of the host.
func TestRanks(t *testing.T) {
	t.Parallel()
	const world = 2
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, port, err := net.SplitHostPort(listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	listener.Close()
	number, err := strconv.Atoi(port)
	if err != nil {
		t.Fatal(err)
	}
	log := harness.NewLog()
	cfg := ranks(harness.PythonAll(t), "testdata/docs/ranks.py", world, number)
	cfg.Logger = log.Logger()
	host, err := hostplugin.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = host.Close()
		if t.Failed() {
			t.Logf("the programs' log:\n%s", log.Text())
		}
	})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	sessions, err := startRanks(ctx, host, world)
	if err != nil {
		t.Fatal(err)
	}
	for rank, session := range sessions {
		if err := session.Wait(ctx); err != nil {
			t.Fatalf("rank %d: %v", rank, err)
		}
		view, err := session.View(ctx, "weights")
		if err != nil {
			t.Fatal(err)
		}
		// 0 and 1 become 1 and 1, then 2 and 2, then 4 and 4.
		if x := slice[float32](t, view)[0]; x != 4 || view.Route() != contract.RouteSharedHeap || view.Version() != 3 {
			t.Errorf("rank %d shows %v, route %v, version %d", rank, x, view.Route(), view.Version())
		}
		closed(t, view)
	}
}
