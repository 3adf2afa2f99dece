package stats_test

import (
	"context"
	"fmt"
	"math"
	"testing"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/coretest"
	"github.com/ndbridge/ndbridge/stats"
)

// example gives a view of some numbers, as a session gives one of a program's.
func example(data []float32, shape ...int) *core.View {
	return coretest.NewView(new(testing.B), data, shape...)
}

func Example() {
	ctx := context.Background()
	weight := example([]float32{1, -2, 0, float32(math.NaN()), 4, 5}, 2, 3)

	s, err := stats.Of(ctx, weight, &stats.Options{Bins: stats.Auto})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%d NaN of %d, mean %.3g, norm %.3g\n", s.NaN, s.Seen, s.Mean, s.Norm)
	fmt.Printf("%.0f%% are zero\n", 100*s.Share(s.Zero))
	// Output:
	// 1 NaN of 6, mean 1.6, norm 6.78
	// 17% are zero
}

func ExampleOf_sample() {
	ctx := context.Background()
	large := example(make([]float32, 1<<20))

	s, err := stats.Of(ctx, large, &stats.Options{Sample: 1 << 14})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(s.Seen, s.Exact())
	fmt.Printf("%.0f%%\n", 100*s.Missed(1<<14)) // the probability that none of so many special elements was seen
	// Output:
	// 16384 false
	// 0%
}

func ExampleOptions_base() {
	ctx := context.Background()
	data := []float32{1, 2, 3, 4}
	weight := example(data)

	before, err := stats.Keep(ctx, weight)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer before.Close()
	data[2] = 3.5 // the program goes on
	s, err := stats.Of(ctx, weight, &stats.Options{Base: before})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%d of %d have changed, by %.3g in all\n", s.Len-s.Zero, s.Len, s.Norm)
	// Output:
	// 1 of 4 have changed, by 0.5 in all
}

func ExampleImage() {
	ctx := context.Background()
	weight := example([]float32{0, 1, 10, 11, 2, 3, 12, 13}, 2, 4)

	cells, err := stats.Image(ctx, weight, stats.PlaneOf(weight.Layout()), 2, 1, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(cells.Mean, cells.Min, cells.Max)
	// Output:
	// [1.5 11.5] [0 10] [3 13]
}

func ExampleLine() {
	ctx := context.Background()
	weight := example([]float32{0, 1, 10, 11, 2, 3, 12, 13}, 2, 4)

	row, err := stats.Line(ctx, weight, 1, []int{1, 0}, 2, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(row.Mean)
	// Output:
	// [2.5 12.5]
}
