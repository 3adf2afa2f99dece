// Package harness holds what the end-to-end tests share: programs that a test can steer from
// outside, and what /proc says about processes.
package harness

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Python gives the interpreter of the base environment, which has numpy.
func Python(tb testing.TB) string {
	tb.Helper()
	return need(tb, "NDBRIDGE_TEST_PYTHON")
}

// PythonAll gives the interpreter of the environment that has numpy, torch and jax.
func PythonAll(tb testing.TB) string {
	tb.Helper()
	return need(tb, "NDBRIDGE_TEST_PYTHON_ALL")
}

// PythonMore gives the interpreter of the environment that has warp, dali, tensorflow and pyarrow.
func PythonMore(tb testing.TB) string {
	tb.Helper()
	return need(tb, "NDBRIDGE_TEST_PYTHON_MORE")
}

// PythonWarp gives the interpreter of the environment that has the Warp of the founding problems, 1.6.0.
func PythonWarp(tb testing.TB) string {
	tb.Helper()
	return need(tb, "NDBRIDGE_TEST_PYTHON_WARP")
}

// PythonADBC gives the interpreter of the environment that has a driver of ADBC, which is a Go library.
func PythonADBC(tb testing.TB) string {
	tb.Helper()
	return need(tb, "NDBRIDGE_TEST_PYTHON_ADBC")
}

// PythonLaunchers gives the interpreter of the environment that has gunicorn and a server of Jupyter, with their commands beside it.
func PythonLaunchers(tb testing.TB) string {
	tb.Helper()
	return need(tb, "NDBRIDGE_TEST_PYTHON_LAUNCHERS")
}

// UV gives the program uv, which made the environments.
func UV(tb testing.TB) string {
	tb.Helper()
	return need(tb, "NDBRIDGE_TEST_UV")
}

// PythonJava gives the interpreter of the environment that has a JVM, which is a Python 3.14.
func PythonJava(tb testing.TB) string {
	tb.Helper()
	return need(tb, "NDBRIDGE_TEST_PYTHON_JAVA")
}

// Mallocs gives the folder that has other mallocs than the C library's: jemalloc.so, mimalloc.so, tcmalloc.so.
func Mallocs(tb testing.TB) string {
	tb.Helper()
	return need(tb, "NDBRIDGE_TEST_MALLOCS")
}

// Pythons gives the interpreters of the version matrix.
func Pythons(tb testing.TB) []string {
	tb.Helper()
	return filepath.SplitList(need(tb, "NDBRIDGE_TEST_PYTHONS"))
}

// Library gives the path of a file of the build: "ndbridge-all.so".
func Library(tb testing.TB, name string) string {
	tb.Helper()
	return filepath.Join(need(tb, "NDBRIDGE_LIB"), name)
}

// CI reports whether this run decides about a change, where nothing may be missing.
func CI() bool { return os.Getenv("CI") == "true" }

func need(tb testing.TB, name string) string {
	tb.Helper()
	value := strings.TrimSpace(os.Getenv(name))
	if value == "" {
		tb.Fatalf("%s is not set; run make test", name)
	}
	return value
}
