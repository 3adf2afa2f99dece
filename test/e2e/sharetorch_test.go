package e2e

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/hostplugin"
	"github.com/ndbridge/ndbridge/test/internal/harness"
)

// attachToRanks is the example of docs/torchrun.md.
func attachToRanks(ctx context.Context, host *hostplugin.Host, world int) ([]*hostplugin.Session, error) {
	var ranks []*hostplugin.Session
	for rank := range world {
		session, err := host.Attach(ctx, hostplugin.Name(fmt.Sprintf("train.%d", rank)))
		if err != nil {
			return nil, err
		}
		ranks = append(ranks, session)
	}
	return ranks, nil
}

// training is a script as torchrun starts it, with nothing of ndbridge's in it. After each step it waits for the host.
const training = `
import os, sys, time
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(7)
    model = DistributedDataParallel(torch.nn.Linear(512, 128))
    torch.manual_seed(rank)
    step = torch.zeros(1, dtype=torch.int64)
    for n in range(1, 4):
        own = torch.randn(16, 512)
        model.zero_grad(set_to_none=False)
        model(own).square().mean().backward()
        gradient = model.module.weight.grad
        step[0] = n
        while not os.path.exists("%s.%d" % (sys.argv[1], n)):
            time.sleep(0.01)
    dist.barrier()
    dist.destroy_process_group()

main()
`

// TestShareTorchrun attaches to all ranks of a training that torchrun has started, and compares the gradient that each holds after a step.
func TestShareTorchrun(t *testing.T) {
	const ranks = 4
	dir := t.TempDir()
	script, steps := filepath.Join(dir, "train.py"), filepath.Join(dir, "step")
	if err := os.WriteFile(script, []byte(training), 0o600); err != nil {
		t.Fatal(err)
	}
	python := harness.PythonAll(t)
	s := share(t, nil, python, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", strconv.Itoa(ranks), script, steps)
	s.start(t)
	host := harness.NewHost(t)
	launcher := s.attach(t, host, hostplugin.Name("torch.distributed.run"))
	var sessions []*hostplugin.Session
	harness.Eventually(t, harness.StartBound, "all ranks listen", func() bool {
		var err error
		sessions, err = attachToRanks(t.Context(), host, ranks)
		return err == nil
	})
	children, err := launcher.Children(t.Context())
	if err != nil || len(children) < ranks {
		t.Errorf("the launcher's children: %+v, %v", children, err)
	}
	for n := 1; n <= 3; n++ {
		var gradients [][]float32
		for rank, session := range sessions {
			awaitStep(t, session, n)
			v, err := session.View(t.Context(), "main().gradient")
			if err != nil {
				t.Fatal(err)
			}
			gradients = append(gradients, slice[float32](t, v))
			if v.Copied() {
				t.Errorf("rank %d: %v", rank, v.Reason())
			}
			if own, err := session.View(t.Context(), "main().own"); err != nil || own.Layout().Shape()[1] != 512 {
				t.Errorf("rank %d: %v", rank, err)
			}
		}
		sum := 0.0
		for i, g := range gradients[0] {
			sum += math.Abs(float64(g))
			for rank, other := range gradients {
				if g != other[i] {
					t.Fatalf("step %d: ranks 0 and %d have %v and %v at %d", n, rank, g, other[i], i)
				}
			}
		}
		if sum == 0 {
			t.Errorf("step %d: the gradient is 0", n)
		}
		if err := os.WriteFile(steps+"."+strconv.Itoa(n), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Wait(); err != nil {
		t.Errorf("%v\n%s", err, s.stderr.String())
	}
	if left := s.left(t); len(left) != 0 {
		t.Errorf("left %v", left)
	}
}

// ranksBound is how long all ranks may take to import PyTorch at the same time.
const ranksBound = 4 * harness.StartBound

func awaitStep(t *testing.T, session *hostplugin.Session, n int) {
	t.Helper()
	harness.Eventually(t, ranksBound, "step "+strconv.Itoa(n), func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), harness.StartBound)
		defer cancel()
		v, err := session.View(ctx, "main().step")
		if err != nil {
			return false
		}
		data, err := core.Slice[int64](v)
		return err == nil && data[0] == int64(n)
	})
}

// loading is a training that reads by worker processes.
const loading = `
import sys, time
import torch
from torch.utils.data import DataLoader, Dataset

class Rows(Dataset):
    def __init__(self):
        self.rows = torch.arange(64.0).reshape(64, 1).repeat(1, 4096)
    def __len__(self): return len(self.rows)
    def __getitem__(self, i): return self.rows[i]

if __name__ == "__main__":
    rows = Rows()
    loaders = [DataLoader(rows, batch_size=8, num_workers=2, multiprocessing_context=kind, persistent_workers=True) for kind in ("fork", "spawn", "forkserver")]
    sums = [[batch.sum().item() for batch in loader] for loader in loaders]
    total = torch.tensor(sums).sum(1)
    print("loaded", flush=True)
    sys.stdin.read()
`

// TestShareDataLoader attaches to a training and to the workers that load its data.
func TestShareDataLoader(t *testing.T) {
	script := filepath.Join(t.TempDir(), "load.py")
	if err := os.WriteFile(script, []byte(loading), 0o600); err != nil {
		t.Fatal(err)
	}
	s := share(t, nil, harness.PythonAll(t), "-W", "error::DeprecationWarning", script)
	s.start(t)
	host := harness.NewHost(t)
	parent := s.attach(t, host, hostplugin.Name("load")) // before the workers are made
	harness.Eventually(t, harness.StartBound, "the data are loaded", func() bool { return s.stdout.String() == "loaded\n" })
	v, err := parent.View(t.Context(), "total")
	if err != nil {
		t.Fatal(err)
	}
	for i, sum := range slice[float32](t, v) {
		if sum != 63*64/2*4096 {
			t.Errorf("loader %d: %v", i, sum)
		}
	}
	var children []hostplugin.Child
	harness.Eventually(t, harness.StartBound, "all workers listen", func() bool {
		children, err = parent.Children(t.Context())
		listen := 0
		for _, c := range children {
			if c.Name != "" {
				listen++
			}
		}
		return err == nil && listen >= 7
	})
	rows := 0
	for _, c := range children {
		worker, err := host.Attach(t.Context(), hostplugin.PID(c.PID))
		if err != nil {
			t.Errorf("%+v: %v", c, err)
			continue
		}
		if c.Name == "load" {
			v, err := worker.View(t.Context(), "rows.rows")
			if err != nil {
				t.Errorf("%+v: %v", c, err)
			} else if data := slice[float32](t, v); data[5*4096] != 5 {
				t.Errorf("%+v: %v", c, data[5*4096])
			}
			rows++
		}
		if err := worker.Close(); err != nil {
			t.Error(err)
		}
	}
	if rows != 2 {
		t.Errorf("%d workers have the rows: %+v", rows, children)
	}
	if status := s.end(t); status != 0 || s.stderr.String() != "" {
		t.Errorf("status %d, %s", status, s.stderr.String())
	}
	if left := s.left(t); len(left) != 0 {
		t.Errorf("left %v", left)
	}
}
