package looks

import (
	"slices"
	"testing"

	"github.com/ndbridge/ndbridge/core/contract"
)

// TestJoin joins what was found a while ago with the variables of now.
func TestJoin(t *testing.T) {
	t.Parallel()
	found := contract.Found{Entries: []contract.Entry{{Name: "x", Framework: "numpy", Also: []string{"y"}}, {Name: "model.weight", Framework: "torch"}}}
	joined := Join(found, []contract.Entry{{Name: "x", Framework: "torch"}, {Name: "y", Framework: "torch"}, {Name: "z", Framework: "numpy"}, {Name: "more"}}, 3)
	var got []string
	for _, e := range joined.Entries {
		got = append(got, e.Name+" "+e.Framework)
	}
	if want := []string{"x torch", "model.weight torch", "z numpy"}; !slices.Equal(got, want) || joined.More != 1 || len(joined.Entries[0].Also) != 1 {
		t.Errorf("joined %q and %d more, want %q and 1 more", got, joined.More, want)
	}
	if found.Entries[0].Framework != "numpy" {
		t.Error("what was found has changed")
	}
}
