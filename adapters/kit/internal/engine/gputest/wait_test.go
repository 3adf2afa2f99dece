//go:build cuda

package gputest

import (
	"strings"
	"testing"
)

// TestWaitErrors calls ndbridge.wait for what it cannot be called for, and for an array that nobody reads.
func TestWaitErrors(t *testing.T) {
	t.Parallel()
	s := start(t, streams+captures+`
import numpy as np
array = Array(alloc(MB), 4)
begin()
errors = []
for arguments in (np.zeros(4),), (array,), ("text",), (array, mine), (array, other), (array, 0):
    try:
        ndbridge.wait(*arguments)
        errors.append("none")
    except Exception as error:
        errors.append(f"{type(error).__name__}: {error}")
end()
text = memoryview("\n".join(errors).encode())
`, options{})
	said := strings.Split(string(bytesOf(t, take(t, s, "text"))), "\n")
	for i, want := range []string{
		"TypeError: wait: unsupported operation: the array is in host memory",
		"ValueError: wait: ", "TypeError: wait: ", "RuntimeError: wait: unavailable: the stream is being captured", "none", "none",
	} {
		if i >= len(said) || !strings.HasPrefix(said[i], want) {
			t.Errorf("error %d: %q, expected %q", i, said, want)
		}
	}
}
