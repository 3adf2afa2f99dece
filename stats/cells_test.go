package stats_test

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/coretest"
	"github.com/ndbridge/ndbridge/stats"
)

// TestCellsAreThoseOfTheirElements compares images with sums over each cell.
func TestCellsAreThoseOfTheirElements(t *testing.T) {
	t.Parallel()
	shape := []int{3, 37, 2, 53}
	data := make([]float64, 3*37*2*53)
	for i := range data {
		data[i] = math.Sin(float64(i) * 12.9898)
	}
	data[500], data[501] = math.NaN(), math.Inf(1)
	v := coretest.NewView(t, data, shape...)
	for _, c := range []struct {
		plane         stats.Plane
		width, height int
	}{
		{stats.Plane{Y: 1, X: 3, At: []int{2, 0, 1, 0}}, 10, 7},
		{stats.Plane{Y: 3, X: 1}, 100, 100},
		{stats.Plane{Y: 3, X: 0, At: []int{0, 4, 1, 0}}, 2, 53},
		{stats.Plane{Y: stats.None, X: 3, At: []int{0, 4, 1, 0}}, 20, 5},
		{stats.Plane{Y: 1, X: stats.None}, 1, 4},
		{stats.Plane{Y: stats.None, X: stats.None, At: []int{1, 1, 1, 1}}, 9, 9},
	} {
		have, err := stats.Image(t.Context(), v, c.plane, c.width, c.height, nil)
		if err != nil {
			t.Fatal(err)
		}
		if !have.Exact() {
			t.Errorf("%+v: looked at %d elements of %d x %d", c.plane, have.Seen, have.Columns, have.Rows)
		}
		for y := range have.Height {
			for x := range have.Width {
				want := cellOf(v, c.plane, have, x, y)
				i := y*have.Width + x
				if got := fmt.Sprintf("%.12g %v %v %d %d", have.Mean[i], have.Min[i], have.Max[i], have.NaN[i], have.Inf[i]); got != want {
					t.Fatalf("%+v, cell %d, %d: %s, want %s", c.plane, x, y, got, want)
				}
			}
		}
	}
}

// cellOf sums one cell up in the simplest way.
func cellOf(v *core.View, p stats.Plane, c *stats.Cells, x, y int) string {
	index := make([]int, v.Rank())
	copy(index, p.At)
	low, high, sum, n, nan, inf := math.Inf(1), math.Inf(-1), 0.0, 0.0, 0, 0
	for row := y * c.Rows / c.Height; row < (y+1)*c.Rows/c.Height; row++ {
		for column := x * c.Columns / c.Width; column < (x+1)*c.Columns/c.Width; column++ {
			if p.Y != stats.None {
				index[p.Y] = row
			}
			if p.X != stats.None {
				index[p.X] = column
			}
			e, err := core.At[float64](v, index...)
			switch {
			case err != nil:
				return err.Error()
			case math.IsNaN(e):
				nan++
			case math.IsInf(e, 0):
				inf++
			default:
				low, high = min(low, e), max(high, e)
				sum += e
				n++
			}
		}
	}
	if n == 0 {
		low, high = math.NaN(), math.NaN()
	}
	return fmt.Sprintf("%.12g %v %v %d %d", sum/n, low, high, nan, inf)
}

func TestFewOfEachCell(t *testing.T) {
	t.Parallel()
	v := coretest.NewView(t, make([]uint8, 4096*1024), 4096, 1024)
	c, err := stats.Image(t.Context(), v, stats.PlaneOf(v.Layout()), 32, 32, &stats.CellOptions{PerCell: 64})
	if err != nil {
		t.Fatal(err)
	}
	if c.Exact() || c.Seen > 64*32*32 || c.Seen < 16*32*32 {
		t.Errorf("looked at %d elements for %d cells", c.Seen, 32*32)
	}
}

// TestCellsOfVirtualArrays: what NumPy's broadcast_to makes has more elements than anybody could count.
func TestCellsOfVirtualArrays(t *testing.T) {
	t.Parallel()
	for _, shape := range [][]int{{1 << 62}, {1 << 31, 1 << 30}, {1 << 60, 3}, {3, 1 << 60}} {
		v := bytesView(t, []byte{7}, core.LayoutSpec{DType: core.Uint8, Shape: shape, Strides: make([]int, len(shape))}, nil)
		c, err := stats.Image(t.Context(), v, stats.PlaneOf(v.Layout()), 30, 20, &stats.CellOptions{PerCell: 16})
		if err != nil || c.Seen > 30*20*16 || c.Mean[0] != 7 || c.Mean[len(c.Mean)-1] != 7 {
			t.Errorf("cells of %v: %v, %+v", shape, err, c)
		}
		if s := of(t, v, &stats.Options{Sample: 1 << 16, Bins: stats.Auto}); s.Mean != 7 || s.Len != v.Len() {
			t.Errorf("figures of %v: %+v", shape, s)
		}
	}
}

func TestPlaneOf(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		shape []int
		y, x  int
	}{{nil, -1, -1}, {[]int{5}, -1, 0}, {[]int{3, 4}, 0, 1}, {[]int{3, 4, 1}, 0, 1}, {[]int{2, 3, 4}, 1, 2}, {[]int{7, 1, 9, 1}, 0, 2}} {
		l, err := core.NewLayout(core.LayoutSpec{DType: core.Int8, Shape: c.shape})
		if err != nil {
			t.Fatal(err)
		}
		if p := stats.PlaneOf(l); p.Y != c.y || p.X != c.x || len(p.At) != len(c.shape) {
			t.Errorf("%v: %+v", c.shape, p)
		}
	}
}

func TestJSON(t *testing.T) {
	t.Parallel()
	v := coretest.NewView(t, []float64{math.NaN(), math.Inf(1)})
	text, err := json.Marshal(of(t, v, nil))
	if err != nil {
		t.Fatal(err)
	}
	var object map[string]any
	if err := json.Unmarshal(text, &object); err != nil || object["mean"] != nil || object["nan"] != 1.0 || object["norm"] != 0.0 {
		t.Errorf("%v: %s", err, text)
	}
	text, err = json.Marshal(of(t, coretest.NewView(t, []float64{math.NaN(), 1}), &stats.Options{Bins: 1}))
	if want := `"histogram":{"edges":[0.5,1.5],"counts":[1],"below":0,"above":0,"seen":2}`; err != nil || !strings.Contains(string(text), want) {
		t.Errorf("%v: %s", err, text)
	}
	c, err := stats.Line(t.Context(), v, 0, nil, 2, nil)
	if err != nil {
		t.Fatal(err)
	}
	if text, err = json.Marshal(c); err != nil {
		t.Fatal(err)
	}
	var cells struct {
		Mean []*float64
		NaN  []int
	}
	if err := json.Unmarshal(text, &cells); err != nil || len(cells.Mean) != 2 || cells.Mean[0] != nil || !slices.Equal(cells.NaN, []int{1, 0}) {
		t.Errorf("%v: %s", err, text)
	}
}

// TestNarrowCells compares cells of few elements, which are summed up one by one, with what is in them.
func TestNarrowCells(t *testing.T) {
	t.Parallel()
	data := []float64{1, 2, math.MaxFloat64, math.MaxFloat64, math.NaN(), -4, math.Inf(-1), math.NaN(), -math.MaxFloat64, math.MaxFloat64, 7, 8}
	c, err := stats.Image(t.Context(), coretest.NewView(t, data, 2, 6), stats.PlaneOf(coretest.NewView(t, data, 2, 6).Layout()), 3, 2, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []struct {
		low, high, mean float64
		nan, inf        int
	}{
		{1, 2, 1.5, 0, 0},
		{math.MaxFloat64, math.MaxFloat64, math.MaxFloat64, 0, 0},
		{-4, -4, -4, 1, 0},
		{math.NaN(), math.NaN(), math.NaN(), 1, 1},
		{-math.MaxFloat64, math.MaxFloat64, 0, 0, 0},
		{7, 8, 7.5, 0, 0},
	} {
		if got := fmt.Sprint(c.Min[i], c.Max[i], c.Mean[i], c.NaN[i], c.Inf[i]); got != fmt.Sprint(want.low, want.high, want.mean, want.nan, want.inf) {
			t.Errorf("cell %d: got %s, want %v", i, got, want)
		}
	}
}

// TestSampledCellsSeeWhatRepeats looks at some elements of arrays that repeat themselves in steps of all sizes.
func TestSampledCellsSeeWhatRepeats(t *testing.T) {
	t.Parallel()
	for _, every := range []int{2, 3, 4, 8, 16} {
		const rows, columns = 256, 1024
		data := make([]float32, rows*columns)
		for i := range data {
			if i/columns%every == every-1 && i%columns%every == every-1 {
				data[i] = float32(every * every)
			}
		}
		c, err := stats.Image(t.Context(), coretest.NewView(t, data, rows, columns), stats.Plane{Y: 0, X: 1}, 16, 4, &stats.CellOptions{PerCell: 1024})
		if err != nil {
			t.Fatal(err)
		}
		mean := 0.0
		for _, x := range c.Mean {
			mean += x / float64(len(c.Mean))
		}
		if c.Exact() || math.Abs(mean-1) > 0.4 {
			t.Errorf("one in %d: the mean is %v, want about 1; exact: %t", every*every, mean, c.Exact())
		}
	}
}

// TestCellsOfSamples: what is looked at in a cell lies in it, there is something of each, and no more than asked for.
func TestCellsOfSamples(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		rows, columns := 1+random.IntN(40), 1+random.IntN(20_000)
		width, height, per := 1+random.IntN(60), 1+random.IntN(20), 1+random.IntN(1<<random.IntN(16))
		data := make([]float64, rows*columns)
		for i := range data {
			data[i] = float64(i)
		}
		c, err := stats.Image(t.Context(), coretest.NewView(t, data, rows, columns), stats.Plane{Y: 0, X: 1}, width, height, &stats.CellOptions{PerCell: per})
		if err != nil {
			t.Fatal(err)
		}
		about := fmt.Sprintf("%d x %d in %d x %d of %d", rows, columns, width, height, per)
		if most := c.Width * c.Height * per; c.Seen > most || c.Seen < c.Width*c.Height {
			t.Errorf("%s: %d elements were looked at, of %d at most", about, c.Seen, most)
		}
		for i := range c.Mean {
			y, x := i/c.Width, i%c.Width
			for _, value := range []float64{c.Min[i], c.Max[i]} {
				row, column := int(value)/columns, int(value)%columns
				if row < y*rows/c.Height || row >= (y+1)*rows/c.Height || column < x*columns/c.Width || column >= (x+1)*columns/c.Width {
					t.Fatalf("%s: cell %d of row %d has the element of column %d of row %d", about, x, y, column, row)
				}
			}
			if c.Mean[i] < c.Min[i] || c.Mean[i] > c.Max[i] || c.NaN[i]+c.Inf[i] > 0 {
				t.Fatalf("%s: cell %d: a mean of %v between %v and %v, %d NaN, %d infinities", about, i, c.Mean[i], c.Min[i], c.Max[i], c.NaN[i], c.Inf[i])
			}
		}
	}
}
