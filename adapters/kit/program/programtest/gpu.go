package programtest

import (
	"os"
	"path/filepath"
	"testing"
)

// The environment variables that say where GPUs are.
const (
	simulatedVariable = "NDBRIDGE_TEST_CUDASIM"    // the folder with the simulated driver's libcuda.so.1
	gpuVariable       = "NDBRIDGE_TEST_PYTHON_GPU" // an interpreter with all frameworks, on a machine with a GPU
)

// GPU gives the interpreter for a test that needs a GPU, and none that could be simulated: what
// `make test-gpu` names. Such tests have the build tag "gpu", for they cannot run elsewhere.
func GPU(tb testing.TB) string {
	tb.Helper()
	return Variable(tb, gpuVariable)
}

// GPUs lists the interpreters for a framework on GPUs that runs on the simulated driver too: on a
// machine with a GPU the one there; elsewhere those of [Versions], and env makes them use that driver.
func GPUs(tb testing.TB, framework, variable string) (pythons map[string]string, env []string) {
	tb.Helper()
	if python := os.Getenv(gpuVariable); python != "" {
		return map[string]string{"GPU": python}, nil
	}
	pythons = Versions(tb, framework, variable)
	folder, err := filepath.Abs(Variable(tb, simulatedVariable))
	check(tb, err)
	return pythons, []string{
		"LD_LIBRARY_PATH=" + folder,
		"CUDA_PYTHON_DISABLE_MAJOR_VERSION_WARNING=1", // the simulated driver is one of CUDA 12
	}
}
