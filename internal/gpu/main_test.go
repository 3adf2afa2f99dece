//go:build cuda

package gpu

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"testing"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/internal/gpu/driver"
)

// childVar makes this test binary say what it sees of CUDA in its environment. A process sees one
// driver, so each other one needs a process.
const childVar = "NDBRIDGE_TEST_CUDA_CHILD"

// seen is what the child tells.
type seen struct {
	Category, Text string // of Available
	Driver         bool   // the cause is an error of the driver
	Active         bool
	Devices        []Device
	Pointers       map[string]string // kind and route of memory or why there is none, by how it is allocated
}

func TestMain(m *testing.M) {
	if os.Getenv(childVar) == "" {
		os.Exit(m.Run())
	}
	var s seen
	if err := Available(); err != nil {
		s.Category, s.Text = core.Category(err), err.Error()
		_, s.Driver = errors.AsType[*driver.Error](err)
	}
	s.Active = Active()
	s.Devices, _ = Devices() // nothing, if they are not available
	if len(s.Devices) > 0 {
		if err := s.look(); err != nil {
			panic(err)
		}
	}
	if err := json.NewEncoder(os.Stdout).Encode(s); err != nil {
		panic(err)
	}
}

// look allocates memory of a GPU in each way.
func (s *seen) look() error {
	s.Pointers = map[string]string{}
	ctx, err := driver.PrimaryCtxRetain(0)
	if err != nil {
		return err
	}
	return driver.With(ctx, func() error {
		chunk, err := driver.MemGranularity(0)
		if err != nil {
			return err
		}
		for name, alloc := range map[string]func() (uintptr, error){
			"cuMemAlloc":              func() (uintptr, error) { return driver.MemAlloc(chunk) },
			"cuMemAllocFromPoolAsync": func() (uintptr, error) { return pooled(chunk) },
			"cuMemMap":                func() (uintptr, error) { return mapped(chunk) },
		} {
			addr, err := alloc()
			if err != nil {
				s.Pointers[name] = core.Category(err)
				continue
			}
			p, err := Inspect(addr, chunk)
			if err != nil {
				return err
			}
			s.Pointers[name] = p.Kind.String() + " by " + string(p.Route)
		}
		return nil
	})
}

func pooled(n int64) (uintptr, error) {
	pool, err := driver.PoolCreate(0)
	if err != nil {
		return 0, err
	}
	return driver.MemAllocFromPoolAsync(n, pool, 0)
}

func mapped(n int64) (uintptr, error) {
	addr, err := driver.MemAddressReserve(n)
	if err != nil {
		return 0, err
	}
	h, err := driver.MemCreate(0, n)
	if err != nil {
		return 0, err
	}
	if err := driver.MemMap(addr, n, h); err != nil {
		return 0, err
	}
	return addr, driver.MemSetAccess(addr, n, 0, true)
}

// child looks at CUDA with some variables set.
func child(t *testing.T, env ...string) seen {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(append(os.Environ(), childVar+"=1"), env...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var s seen
	if err := json.Unmarshal(out, &s); err != nil {
		t.Fatalf("%q: %v", out, err)
	}
	return s
}
