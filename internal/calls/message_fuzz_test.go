package calls

import (
	"bytes"
	"errors"
	"slices"
	"testing"

	"github.com/ndbridge/ndbridge/core/contract"
)

// FuzzMessages: what is read of foreign bytes is written and read alike, and nothing panics.
func FuzzMessages(f *testing.F) {
	l, err := plain{}.Layout([]byte{4, 0, 0, 0})
	if err != nil {
		f.Fatal(err)
	}
	r := Request{Op: OpCall, Number: 1, Target: 2, Framework: "torch", Ended: []contract.LeaseID{7, 8}, Arrays: []Argument{{Segment: 3, Layout: l}, {Lease: 9, Layout: l, ReadOnly: true}}, Values: []byte("v")}
	a := Answer{Kind: Done, Retained: 1, Target: 2, Leases: []contract.Lease{{ID: 5}, {ID: 6}}, Values: []byte("v")}
	request, err1 := r.Append(nil, plain{})
	answer, err2 := a.Append(nil, plain{})
	if err := errors.Join(err1, err2); err != nil {
		f.Fatal(err)
	}
	f.Add(request)
	f.Add(answer)
	f.Fuzz(func(t *testing.T, b []byte) {
		var r Request
		if r.Parse(b, plain{}) == nil {
			again, err := r.Append(nil, plain{})
			var same Request
			if err != nil || same.Parse(again, plain{}) != nil || same.Number != r.Number || !slices.Equal(same.Ended, r.Ended) || len(same.Arrays) != len(r.Arrays) || !bytes.Equal(same.Values, r.Values) {
				t.Errorf("a request did not survive: %+v, %+v, %v", r, same, err)
			}
		}
		var a Answer
		if a.Parse(b, plain{}) == nil {
			again, err := a.Append(nil, plain{})
			var same Answer
			if err != nil || same.Parse(again, plain{}) != nil || len(same.Leases) != len(a.Leases) || !bytes.Equal(same.Values, a.Values) {
				t.Errorf("an answer did not survive: %+v, %+v, %v", a, same, err)
			}
			if len(granted(b, plain{})) > len(a.Leases) {
				t.Error("more leases were granted than there are")
			}
		}
	})
}
