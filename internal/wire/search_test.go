package wire

import (
	"errors"
	"reflect"
	"testing"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
)

// An entry of a search crosses with all that a search tells.
func TestFoundEntriesCross(t *testing.T) {
	t.Parallel()
	l, err := core.NewLayout(core.LayoutSpec{DType: core.Float32, Shape: []int{2, 3}})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range []contract.Entry{
		{Name: "x", Framework: "numpy", Layout: l, Also: []string{"m.x", `d["x"]`}, Route: contract.RouteSharedHeap},
		{Name: "x", Framework: "numpy", Layout: l, Reason: contract.ReasonBelowThreshold},
	} {
		message, err := entryToProto(e)
		if err != nil {
			t.Fatal(err)
		}
		back, err := entryToCore(message)
		if err != nil || !reflect.DeepEqual(back.Also, e.Also) && len(e.Also)+len(back.Also) > 0 || back.Route != e.Route || back.Reason != e.Reason {
			t.Errorf("%+v came as %+v, %v", e, back, err)
		}
	}
}

// A program that cannot be searched is not asked.
func TestSearchIsOptional(t *testing.T) {
	t.Parallel()
	c := &Client{}
	if _, err := c.Search(t.Context(), contract.Search{Pattern: "*"}); !errors.Is(err, core.ErrUnsupported) {
		t.Error(err)
	}
}
