package wire

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
	pb "github.com/ndbridge/ndbridge/internal/gen/ndbridge/v1"
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

// Numbers cross with their types and values; one without a value is none.
func TestNumbersCross(t *testing.T) {
	t.Parallel()
	all := []contract.Number{
		{Name: "epoch", Whole: true, Int: math.MinInt64, Value: math.MinInt64},
		{Name: "zero", Whole: true},
		{Name: "loss", Value: 0.5},
		{Name: "none"},
		{Name: "worst", Value: math.Inf(-1)},
		{Name: "bad", Value: math.NaN()},
	}
	for i, message := range numbersToProto(all) {
		bytes, err := proto.Marshal(message)
		if err != nil {
			t.Fatal(err)
		}
		var came pb.Number
		if err := proto.Unmarshal(bytes, &came); err != nil {
			t.Fatal(err)
		}
		n, err := numberToCore(&came)
		if fmt.Sprint(n) != fmt.Sprint(all[i]) || err != nil {
			t.Errorf("%+v came as %+v, %v", all[i], n, err)
		}
	}
	for _, wrong := range []*pb.Number{{Name: "x"}, {Name: strings.Repeat("x", maxText+1), Value: &pb.Number_Whole{}}} {
		if n, err := numberToCore(wrong); err == nil {
			t.Errorf("%.20s was taken for %+v", n.Name, n)
		}
	}
}
