package stats

import (
	"encoding/json"
	"math"
)

// Number is a float64 that JSON can carry: NaN and infinities, which JSON does not have, become null.
type Number float64

// MarshalJSON implements [json.Marshaler].
func (n Number) MarshalJSON() ([]byte, error) {
	if x := float64(n); math.IsNaN(x) || math.IsInf(x, 0) {
		return []byte("null"), nil
	}
	return json.Marshal(float64(n))
}

// numbers makes Numbers of a slice; nil stays nil.
func numbersOf(xs []float64) []Number {
	if xs == nil {
		return nil
	}
	out := make([]Number, len(xs))
	for i, x := range xs {
		out[i] = Number(x)
	}
	return out
}

// MarshalJSON gives an object with the figures under lower-case names; those that are NaN are null.
func (s Summary) MarshalJSON() ([]byte, error) {
	var h *histogramJSON
	if s.Histogram.Edges != nil {
		h = &histogramJSON{numbersOf(s.Histogram.Edges), s.Histogram.Counts, s.Histogram.Below, s.Histogram.Above, s.Histogram.Seen}
	}
	return json.Marshal(struct {
		Len       int            `json:"len"`
		Seen      int            `json:"seen"`
		Exact     bool           `json:"exact"`
		Torn      bool           `json:"torn"`
		OnGPU     bool           `json:"on_gpu"`
		Version   uint64         `json:"version"`
		Seconds   float64        `json:"seconds"`
		NaN       int            `json:"nan"`
		PosInf    int            `json:"pos_inf"`
		NegInf    int            `json:"neg_inf"`
		Zero      int            `json:"zero"`
		Negative  int            `json:"negative"`
		Positive  int            `json:"positive"`
		Min       Number         `json:"min"`
		Max       Number         `json:"max"`
		Mean      Number         `json:"mean"`
		MeanError Number         `json:"mean_error"`
		Std       Number         `json:"std"`
		Norm      Number         `json:"norm"`
		Histogram *histogramJSON `json:"histogram"`
	}{
		s.Len, s.Seen, s.Exact(), s.Torn, s.OnGPU, s.Version, s.Taken.Seconds(), s.NaN, s.PosInf, s.NegInf, s.Zero, s.Negative, s.Positive,
		Number(s.Min), Number(s.Max), Number(s.Mean), Number(s.MeanError()), Number(s.Std), Number(s.Norm), h,
	})
}

type histogramJSON struct {
	Edges  []Number `json:"edges"`
	Counts []int    `json:"counts"`
	Below  int      `json:"below"`
	Above  int      `json:"above"`
	Seen   int      `json:"seen"`
}

// MarshalJSON gives an object with the cells under lower-case names; those without a number are null.
func (c Cells) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Width   int      `json:"width"`
		Height  int      `json:"height"`
		Rows    int      `json:"rows"`
		Columns int      `json:"columns"`
		Exact   bool     `json:"exact"`
		Torn    bool     `json:"torn"`
		Version uint64   `json:"version"`
		Min     []Number `json:"min"`
		Max     []Number `json:"max"`
		Mean    []Number `json:"mean"`
		NaN     []int    `json:"nan"`
		Inf     []int    `json:"inf"`
	}{
		c.Width, c.Height, c.Rows, c.Columns, c.Exact(), c.Torn, c.Version,
		numbersOf(c.Min), numbersOf(c.Max), numbersOf(c.Mean), c.NaN, c.Inf,
	})
}
