package stats

import (
	"math"
	"slices"
)

const (
	autoBins = 64
	maxBins  = 1 << 16
)

// Histogram counts elements by value. Infinities and NaN are in none of its counts.
type Histogram struct {
	// Edges are the borders of the bins, in ascending order, one more than there are Counts. It is nil if
	// no histogram was asked for, or if no element is finite.
	Edges []float64
	// Counts[i] are the elements from Edges[i] up to, but not including, Edges[i+1]; the last bin has its upper edge,
	// too, as NumPy's. Bins between powers of two have the edge that is nearer to zero, whatever the sign. Among them is one bin of zero: it reaches
	// to the smallest number on either side that has a bin of its own, and has all that are below 2^-1022 in size.
	Counts []int
	// Below and Above are the finite elements outside the edges.
	Below, Above int
	// Seen is how many elements were looked at for it, NaN and infinities among them.
	Seen int
}

// counter counts the elements of blocks into bins. Each worker has one.
type counter struct {
	low, high, scale float64
	edges            []float64
	borders          []float64 // the edges, and no upper one of the last bin
	last             float64   // bin
	counts           []int
	below, above     int
	log              bool // counts are by the first 12 bits of float64: sign and exponent

	placing placing
	tables  [4][]int     // elements in each bin: in turn, so that equal neighbours need not wait for each other
	pairs   *pairCounter // of dense float32; nil: they are counted as all others
}

// placing is what indexAVX2 needs to know.
type placing struct {
	low, scale, bins float64
	half, sure       float64 // 0.5, and 0.5 less by how much a place may be wrong
	magnitude        uint64  // the bits of a float64 but its sign
}

// logBins is how many patterns the first 12 bits of a float64 have.
const logBins = 1 << 12

func newCounter(edges []float64) *counter {
	if edges == nil {
		return &counter{log: true, counts: make([]int, logBins)}
	}
	n := len(edges) - 1
	c := &counter{low: edges[0], high: edges[n], edges: edges, counts: make([]int, n)}
	c.borders = append(slices.Clone(edges[:n]), math.Inf(1))
	c.scale, c.last = float64(n)/(c.high-c.low), float64(n-1)
	wrong := 0x1p-48 * (float64(n) + max(-c.low, c.high)*c.scale)
	c.placing = placing{c.low, c.scale, float64(n), 0.5, 0.5 - wrong, 1<<63 - 1}
	if fast() && wrong < 0.25 {
		for i := range c.tables {
			c.tables[i] = make([]int, n)
		}
	}
	return c
}

// add counts finite numbers.
func (c *counter) add(xs []float64, times int) {
	if c.log {
		for _, x := range xs {
			c.counts[math.Float64bits(x)>>52] += times
		}
		return
	}
	n := len(xs) / step * step
	if n == 0 || c.tables[0] == nil {
		c.sort(xs, times)
		return
	}
	var index [blockLen]int32
	indexAVX2(&xs[0], n, &c.placing, &index[0])
	bins := len(c.tables[0])
	t, u, v, w := c.tables[0], c.tables[1][:bins], c.tables[2][:bins], c.tables[3][:bins]
	for i := 0; i+4 <= n; i += 4 {
		at := index[i : i+4 : i+4]
		p, q, r, s := uint(at[0]), uint(at[1]), uint(at[2]), uint(at[3])
		if m := uint(bins); p >= m || q >= m || r >= m || s >= m {
			group := xs[i : i+4 : i+4]
			if c.outside(group[0]) || c.outside(group[1]) || c.outside(group[2]) || c.outside(group[3]) {
				c.sort(group, times)
				continue
			}
			// Numbers that are edges, such as zeros, are in many arrays more than all others.
			p, q, r, s = c.place(group[0]), c.place(group[1]), c.place(group[2]), c.place(group[3])
		}
		t[p] += times
		u[q] += times
		v[r] += times
		w[s] += times
	}
	c.sort(xs[n:], times)
}

// sort counts numbers by the edges of the bins.
func (c *counter) sort(xs []float64, times int) {
	for _, x := range xs {
		switch {
		case x < c.low:
			c.below += times
		case x > c.high:
			c.above += times
		default:
			c.counts[c.place(x)] += times
		}
	}
}

// place gives the bin of a number within the edges. It has no branch that a processor could take wrongly.
func (c *counter) place(x float64) uint {
	i := int(min((x-c.low)*c.scale, c.last))
	// The product is rounded: what counts are the edges.
	i -= one(x < c.borders[i])
	i += one(x >= c.borders[i+1])
	return uint(i) //nolint:gosec // the first border is not above x
}

func (c *counter) outside(x float64) bool { return x < c.low || x > c.high }

func one(b bool) int {
	if b {
		return 1
	}
	return 0
}

// fold brings what was counted together, and ends the counting of pairs.
func (c *counter) fold() {
	if c.pairs != nil {
		c.unpair()
		c.pairs = nil
	}
	for _, table := range c.tables {
		for i, n := range table {
			c.counts[i] += n
			table[i] = 0
		}
	}
}

// merge adds what another has counted and folded.
func (c *counter) merge(d *counter) {
	for i, n := range d.counts {
		c.counts[i] += n
	}
	c.below += d.below
	c.above += d.above
}

// histogram gives what was counted.
func (c *counter) histogram() Histogram {
	if !c.log {
		return Histogram{Edges: c.edges, Counts: c.counts, Below: c.below, Above: c.above}
	}
	return c.powers()
}

// powers orders the counts of a logarithmic histogram by value: negative numbers from the largest, zero and what is too
// small to be a normal number in one bin, and positive numbers. That bin has the place of the empty ones beside it: most numbers are some powers
// of two in size, and nobody could see these between two thousand.
func (c *counter) powers() Histogram {
	const half = logBins / 2
	smallest := func(counts []int) int {
		for e := 1; e <= half-2; e++ {
			if counts[e] > 0 {
				return e
			}
		}
		return 1 // there is none: its bins are cut off
	}
	negative, positive := smallest(c.counts[half:]), smallest(c.counts[:half])
	var h Histogram
	for e := half - 2; e >= negative; e-- { // 2047 are infinities and NaN
		h.Edges = append(h.Edges, -math.Ldexp(1, e-1022))
		h.Counts = append(h.Counts, c.counts[half+e])
	}
	h.Edges = append(h.Edges, -math.Ldexp(1, negative-1023))
	h.Counts = append(h.Counts, c.counts[0]+c.counts[half])
	for e := positive; e <= half-2; e++ {
		h.Edges = append(h.Edges, math.Ldexp(1, e-1023))
		h.Counts = append(h.Counts, c.counts[e])
	}
	h.Edges = append(h.Edges, math.MaxFloat64)
	first, last := 0, len(h.Counts)-1
	for first <= last && h.Counts[first] == 0 {
		first++
	}
	for last >= first && h.Counts[last] == 0 {
		last--
	}
	if first > last {
		return Histogram{}
	}
	h.Edges[0] = -math.MaxFloat64
	return Histogram{Edges: h.Edges[first : last+2], Counts: h.Counts[first : last+1]}
}

// narrowest is the width of a range that can just be divided into so many bins, whose edges all differ.
func narrowest(low, high float64, bins int) float64 {
	return float64(bins) * max(-low*0x1p-50, high*0x1p-50, 0x1p-900)
}

// widest is the greatest edge of equal bins, so that the width of all is a number.
const widest = math.MaxFloat64 / 4

// stretch has the first and the last bin reach as far as float64 does, if equal bins could not.
func (h *Histogram) stretch() {
	last := len(h.Counts) - 1
	if h.Edges[0] <= -widest {
		h.Edges[0], h.Counts[0], h.Below = -math.MaxFloat64, h.Counts[0]+h.Below, 0
	}
	if h.Edges[last+1] >= widest {
		h.Edges[last+1], h.Counts[last], h.Above = math.MaxFloat64, h.Counts[last]+h.Above, 0
	}
}

// edgesOf divides a range into equal bins.
func edgesOf(low, high float64, bins int) []float64 {
	low, high = min(max(low, -widest), widest), min(max(high, -widest), widest)
	if bins == Auto {
		bins = autoBins
	}
	if low == high { // as NumPy does it
		low, high = low-0.5, high+0.5
	}
	if least := narrowest(low, high, bins); high-low < least {
		low, high = low-least, high+least
	}
	edges := make([]float64, bins+1)
	step := (high - low) / float64(bins)
	for i := range edges {
		edges[i] = low + float64(i)*step
	}
	edges[bins] = high
	return edges
}
