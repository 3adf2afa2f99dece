package e2e

import (
	"strings"
	"testing"
	"time"

	"github.com/ndbridge/ndbridge/core/contract"
	"github.com/ndbridge/ndbridge/test/internal/harness"
)

// TestSearchBesideCalls searches a program for a while in which a method is called again and again: what the method's object holds has names that last,
// which are found later than those that end with the call.
func TestSearchBesideCalls(t *testing.T) {
	t.Parallel()
	const weights = 2000
	run := harness.Start(t, `
import time
import numpy as np
class Model:
    def __init__(self):
        self.w = [np.zeros(3) for _ in range(2000)]
    def forward(self):
        time.sleep(0.001)
def main():
    top = {"a": {"b": Model()}}
    while True:
        top["a"]["b"].forward()
        time.sleep(0.0005)
main()
`, harness.Options{})
	var found contract.Found
	harness.Eventually(t, 10*time.Second, "the model is found", func() bool {
		found = search(t, run, "**", 0)
		return len(found.Entries) >= weights
	})
	for range 40 {
		lasting := 0
		for _, e := range found.Entries {
			if strings.HasPrefix(e.Name, `main().top["a"]["b"].w[`) {
				lasting++
			} else {
				t.Errorf("an array is told as %s, and as %v, too", e.Name, e.Also)
			}
		}
		if lasting != weights || len(found.Entries) != weights {
			t.Fatalf("%d arrays, %d of them by names that last, want %d", len(found.Entries), lasting, weights)
		}
		found = search(t, run, "**", 0)
	}
}
