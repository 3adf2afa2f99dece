//go:build linux

package coretest

import (
	"context"
	"testing"
	"time"

	"github.com/ndbridge/ndbridge/core/contract"
)

// patience bounds each check: a producer that hangs fails rather than hangs the test.
const patience = 2 * time.Minute

// A check is one clause of the contract. Its error says how the producer breaks it.
type check struct {
	name string
	run  func(ctx context.Context, p contract.Producer) error
}

// checks is the contract.
func checks() []check {
	return []check{
		{"info", checkInfo},
		{"info/context", checkInfoContext},
		{"arrays", checkArrays},
		{"arrays/break", checkArraysBreak},
		{"arrays/context", checkArraysContext},
		{"lease/values", checkValues},
		{"lease/routes", checkRoutes},
		{"lease/unknown", checkUnknown},
		{"lease/hostile-names", checkHostileNames},
		{"lease/context", checkLeaseContext},
		{"lease/waiting", checkWaiting},
		{"lease/copy-never", checkCopyNever},
		{"lease/writable", checkWritable},
		{"descriptor/unknown", checkDescriptorUnknown},
		{"descriptor/owned", checkDescriptorOwned},
		{"descriptor/read-only", checkDescriptorReadOnly},
		{"descriptor/released", checkDescriptorReleased},
		{"descriptor/context", checkDescriptorContext},
		{"release/idempotent", checkRelease},
		{"release/counts", checkReleaseCounts},
		{"release/others", checkReleaseOthers},
		{"concurrent", checkConcurrent},
	}
}

// Conform checks that a producer keeps the contract of [contract.Producer]. The producer must offer at least the arrays
// of [Arrays]. The function open makes, or returns, the producer for one clause of the contract. Clauses run one after
// another, and nobody else may use the producer meanwhile.
//
// The suite checks what the comments of contract.Producer promise: exact values through a mapped descriptor, sorted
// listings, categories of errors, contexts that are obeyed, leases that end once, and files that are read-only
// unless writing was granted. What a producer may choose (routes, strides, whether arrays can be written) it takes from
// the leases, and then holds the producer to it.
func Conform(t *testing.T, open func(t *testing.T) contract.Producer) {
	t.Helper()
	for _, c := range checks() {
		t.Run(c.name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			if err := c.run(ctx, open(t)); err != nil {
				t.Error(err)
			}
		})
	}
}
