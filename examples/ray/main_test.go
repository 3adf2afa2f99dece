package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/hostplugin"
	"github.com/ndbridge/ndbridge/internal/golden"
)

// late is how long a cluster may take for what it does in seconds.
const late = 5 * time.Minute

func TestMain(m *testing.M) {
	if os.Getenv("NDBRIDGE_TEST_PYTHON_RAY") == "" || os.Getenv("NDBRIDGE_LIB") == "" {
		log.Fatal("NDBRIDGE_TEST_PYTHON_RAY and NDBRIDGE_LIB are not set; run make test")
	}
	goleak.VerifyTestMain(m)
}

// cluster is a cluster of two nodes on this machine.
type cluster struct {
	python, dir, address string
	env                  []string
	second               *exec.Cmd // what runs the node that does not have the driver
}

func startCluster(t *testing.T) *cluster {
	t.Helper()
	dir, err := os.MkdirTemp("", "ray") //nolint:usetesting // its sockets have long names
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Log(err)
		}
	})
	c := &cluster{python: os.Getenv("NDBRIDGE_TEST_PYTHON_RAY"), dir: dir, address: fmt.Sprintf("127.0.0.1:%d", freePort(t))}
	c.env = append(os.Environ(), "RAY_AUTH_TOKEN="+strings.Repeat(rand.Text(), 2), "RAY_AUTH_MODE=token", "RAY_USAGE_STATS_ENABLED=0", "RAY_TMPDIR="+dir)
	_, port, err := net.SplitHostPort(c.address)
	if err != nil {
		t.Fatal(err)
	}
	c.node(t, "--head", "--port="+port, "--node-ip-address=127.0.0.1", "--include-dashboard=false")
	c.second = c.node(t, "--address="+c.address, "--node-ip-address=127.0.0.2")
	return c
}

// node starts a node, which ends with the test.
func (c *cluster) node(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	args = append([]string{"start", "--block", "--num-cpus=1", "--object-store-memory=100000000"}, args...)
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), filepath.Join(filepath.Dir(c.python), "ray"), args...)
	cmd.Env = c.env
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	log, err := os.CreateTemp(t.TempDir(), "node")
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.kill(cmd)
		if text, err := os.ReadFile(log.Name()); err == nil && t.Failed() {
			t.Logf("ray %v:\n%s", args, text)
		}
		log.Close()
	})
	return cmd
}

// kill kills a node and all that runs on it.
func (*cluster) kill(node *exec.Cmd) {
	_ = syscall.Kill(-node.Process.Pid, syscall.SIGKILL) // or it was killed before
	_ = node.Wait()
}

func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port //nolint:errcheck,forcetypeassert // it is one
}

func (c *cluster) driver() hostplugin.Program {
	p := hostplugin.Program{Script: "cluster.py", Args: []string{c.address}, Python: c.python, Env: map[string]string{}}
	for _, name := range []string{"RAY_AUTH_TOKEN", "RAY_AUTH_MODE", "RAY_USAGE_STATS_ENABLED", "RAY_TMPDIR"} {
		for _, v := range c.env {
			if value, ok := strings.CutPrefix(v, name+"="); ok {
				p.Env[name] = value
			}
		}
	}
	return p
}

// TestCluster: a Go program calls functions and actors of a cluster of two nodes, of which one is killed.
func TestCluster(t *testing.T) {
	t.Parallel()
	c := startCluster(t)
	ctx, cancel := context.WithTimeout(t.Context(), late)
	defer cancel()
	c.joined(ctx, t)
	var out strings.Builder
	if err := run(ctx, &out, c.driver()); err != nil {
		t.Fatal(err)
	}
	golden.Shown(t, "README.md", "text", out.String())
	driver, err := hostplugin.Run(ctx, c.driver())
	if err != nil {
		t.Fatal(err)
	}
	defer driver.Close()
	cancelled(ctx, t, c, driver)
	killed(ctx, t, c, driver)
}

// joined waits until the cluster has both nodes.
func (c *cluster) joined(ctx context.Context, t *testing.T) {
	t.Helper()
	for n := 0; n < 2; time.Sleep(100 * time.Millisecond) {
		driver, err := hostplugin.Run(ctx, c.driver())
		if err != nil {
			t.Fatal(err)
		}
		err = call(ctx, driver, "nodes", &n)
		if ctx.Err() != nil {
			t.Fatalf("%d nodes: %v", n, err)
		}
		if err := driver.Close(); err != nil {
			t.Log(err)
		}
	}
}

// cancelled gives up tasks that would keep all CPUs of the cluster for ever.
func cancelled(ctx context.Context, t *testing.T, c *cluster, driver *hostplugin.Session) {
	t.Helper()
	some, cancel := context.WithCancel(ctx)
	defer cancel()
	var tasks sync.WaitGroup
	for i := range 2 {
		begun := filepath.Join(c.dir, fmt.Sprint("begun", i))
		tasks.Go(func() {
			if err := call(some, driver, "endless", nil, begun); !errors.Is(err, context.Canceled) {
				t.Errorf("a task that was given up: %v", err)
			}
		})
		for _, err := os.Stat(begun); err != nil && ctx.Err() == nil; _, err = os.Stat(begun) {
			time.Sleep(10 * time.Millisecond)
		}
	}
	cancel()
	tasks.Wait()
	check(ctx, t, driver) // which has a CPU again
}

// killed kills a node while its tasks run.
func killed(ctx context.Context, t *testing.T, c *cluster, driver *hostplugin.Session) {
	t.Helper()
	var callers sync.WaitGroup
	for caller := range 3 {
		callers.Go(func() {
			for i := range 10 {
				if caller == 0 && i == 3 {
					c.kill(c.second)
				}
				check(ctx, t, driver)
			}
		})
	}
	callers.Wait()
}

// check has the cluster add up an array.
func check(ctx context.Context, t *testing.T, driver *hostplugin.Session) {
	t.Helper()
	x, err := driver.New(core.Int64, 100_000)
	if err != nil {
		t.Error(err)
		return
	}
	defer x.Close()
	numbers, err := core.Slice[int64](x)
	if err != nil {
		t.Error(err)
		return
	}
	for i := range numbers {
		numbers[i] = int64(i)
	}
	var sum float64
	if err := call(ctx, driver, "total", &sum, x); err != nil || sum != 4999950000 {
		t.Errorf("the sum is %v, %v", sum, err)
	}
}
