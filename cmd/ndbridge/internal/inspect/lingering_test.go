package inspect

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ndbridge/ndbridge/core/contract"
)

// TestLingering has arrays go and come back: each stays in its place for a while, once, and under the name that it has now.
func TestLingering(t *testing.T) {
	t.Parallel()
	var l lingering
	begun := time.Now()
	for _, tt := range []struct {
		after             int
		found, also, want string
	}{
		{0, "a a.grad b b.grad c", "", "a a.grad b b.grad c"},
		{1, "a b c", "", "a a.grad b b.grad c"},
		{2, "a b.grad c", "", "a a.grad b b.grad c"},
		{3, "a c d", "", "a a.grad b b.grad c d"},
		{6, "a c d", "", "a b b.grad c d"},
		{6, "a c d", "a: b.grad", "a b c d"},
		{7, "a c d", "", "a c d"},
		{8, "", "", "a c d"},
		{11, "e a", "", "e a c d"},
		{13, "", "", "e a"},
		{14, "#e a", "", "a"}, // e is a number now
		{15, "", "", "a"},
		{20, "", "", ""},
		{21, "x", "", "x"},
		{60, "", "", "x"}, // nobody has looked for it meanwhile
	} {
		var found contract.Found
		for name := range strings.FieldsSeq(tt.found) {
			if number, ok := strings.CutPrefix(name, "#"); ok {
				found.Numbers = append(found.Numbers, contract.Number{Name: number})
				continue
			}
			e := contract.Entry{Name: name}
			if of, also, _ := strings.Cut(tt.also, ": "); of == name {
				e.Also = []string{also}
			}
			found.Entries = append(found.Entries, e)
		}
		var got []string
		for _, e := range l.with(found, begun.Add(time.Duration(tt.after)*time.Second)) {
			got = append(got, e.Name)
		}
		if want := strings.Fields(tt.want); !slices.Equal(got, want) {
			t.Errorf("after %d s, found %q: %q, want %q", tt.after, tt.found, got, want)
		}
	}
}
