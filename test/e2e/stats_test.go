package e2e

import (
	_ "embed" // stats.py
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"github.com/ndbridge/ndbridge/stats"
	"github.com/ndbridge/ndbridge/test/internal/harness"
)

//go:embed testdata/stats.py
var statsScript string

// said is what numpy says of one array of stats.py. Floating-point numbers are hexadecimal, so that they are exact.
type said struct {
	Name                     string
	DType                    string
	Shape, Strides           []int
	Len                      int
	NaN                      int
	PosInf                   int `json:"pos_inf"`
	NegInf                   int `json:"neg_inf"`
	Zero, Negative, Positive int
	Figures                  map[string]string
	Low, High                float64
	Counts                   []int
	Edges                    []string
}

// TestStatisticsAreNumPys compares the statistics of a program's arrays with what numpy makes of them.
func TestStatisticsAreNumPys(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "stats.json")
	run := harness.Start(t, statsScript, harness.Options{Python: harness.PythonAll(t), Args: []string{file, "1", "300"}})
	harness.Eval[int](t, run.Remote, "len(cases)") // answers when the file is complete
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var cases []said
	if err := json.Unmarshal(text, &cases); err != nil {
		t.Fatal(err)
	}
	for _, c := range cases {
		v := run.View(t, c.Name)
		s, err := stats.Of(t.Context(), v, &stats.Options{Bins: 10, Low: c.Low, High: c.High})
		if err != nil {
			t.Errorf("%s %s%v: %v", c.Name, c.DType, c.Shape, err)
			continue
		}
		if diff := c.compare(s); diff != "" {
			t.Errorf("%s, %s of shape %v and strides %v: %s", c.Name, c.DType, c.Shape, c.Strides, diff)
		}
	}
}

// compare says how statistics differ from what numpy said.
func (c *said) compare(s *stats.Summary) string {
	have := []int{s.Len, s.Seen, s.NaN, s.PosInf, s.NegInf, s.Zero, s.Negative, s.Positive}
	if want := []int{c.Len, c.Len, c.NaN, c.PosInf, c.NegInf, c.Zero, c.Negative, c.Positive}; !slices.Equal(have, want) {
		return fmt.Sprintf("counts %v, want %v", have, want)
	}
	figures := map[string]float64{"mean": s.Mean, "std": s.Std, "norm": s.Norm, "min": s.Min, "max": s.Max}
	for name, have := range figures {
		want := hexNumber(c.Figures[name])
		const eps = 0x1p-52
		bound := 32 * eps * math.Abs(want)
		switch name {
		case "min", "max":
			bound = 0
		case "mean", "std":
			bound += 8 * eps * max(math.Abs(s.Min), math.Abs(s.Max)) // positive and negative numbers cancel out
		case "norm":
			bound += math.Sqrt(float64(s.Len)) * math.SmallestNonzeroFloat64 // std is rounded to one of these
		}
		if have != want && !(math.IsNaN(have) && math.IsNaN(want)) && !(math.Abs(have-want) <= bound) {
			return fmt.Sprintf("%s %v, want %v", name, have, want)
		}
	}
	if s.Finite() == 0 {
		return ""
	}
	if !slices.Equal(s.Histogram.Counts, c.Counts) {
		return fmt.Sprintf("counts of bins %v, want %v", s.Histogram.Counts, c.Counts)
	}
	for i, edge := range s.Histogram.Edges {
		if edge != hexNumber(c.Edges[i]) {
			return fmt.Sprintf("edge %d is %v, want %v", i, edge, hexNumber(c.Edges[i]))
		}
	}
	in := s.Histogram.Below + s.Histogram.Above
	for _, n := range s.Histogram.Counts {
		in += n
	}
	if in != s.Finite() {
		return fmt.Sprintf("%d elements in the histogram and beside it, of %d", in, s.Finite())
	}
	return ""
}

func hexNumber(text string) float64 {
	x, err := strconv.ParseFloat(text, 64)
	if err != nil {
		panic(err)
	}
	return x
}
