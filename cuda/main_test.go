package cuda

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"testing"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/cuda/internal/driver"
)

// childVar makes this test binary say what it sees of CUDA in its environment. A process sees one
// driver, so each other one needs a process.
const childVar = "NDBRIDGE_TEST_CUDA_CHILD"

// seen is what the child tells.
type seen struct {
	Category, Text string // of Available
	Driver         bool   // the cause is an error of the driver
	Active         bool
	Devices        []DeviceInfo
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
	if err := json.NewEncoder(os.Stdout).Encode(s); err != nil {
		panic(err)
	}
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
