package tensorflow_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/ndbridge/ndbridge/adapters/kit/program/programtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// pythons lists the interpreters that have TensorFlow.
func pythons(t *testing.T) map[string]string {
	t.Helper()
	return programtest.Versions(t, "tensorflow", "NDBRIDGE_TEST_PYTHON_MORE")
}

func newest(t *testing.T) string {
	t.Helper()
	return programtest.Newest(t, "tensorflow", "NDBRIDGE_TEST_PYTHON_MORE")
}
