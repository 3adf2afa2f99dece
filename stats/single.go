package stats

import (
	"math"
	"math/bits"

	"github.com/ndbridge/ndbridge/internal/numbers"
)

// singleLen is how many float32 are summed up at once, at most. They stay in a fast cache for the histogram.
const (
	singleLen   = 1 << 13
	singleLeast = 1 << 8 // fewer are not worth the effort
)

// singleLanes is what passSingleAVX2 gives: each figure of every fourth or eighth number. Sums and squares are of
// differences to the shift.
type singleLanes struct {
	sum, squares   [4]float64
	low, high      [8]float32
	negative, zero [8]int32
}

// single sums up dense float32 where they lie, in one pass: by differences to what is probably near their mean. It
// reports false, and nothing else, if they must go the usual way, because some are not finite.
func (m *moments) single(raw []byte, near float64) bool {
	count := len(raw) / 4
	if count == 0 || count%step != 0 || !fast() {
		return false
	}
	var l singleLanes
	n := float64(count)
	for again := false; ; again = true {
		passSingleAVX2(&raw[0], count, near, &l)
		off := ((l.sum[0] + l.sum[1]) + (l.sum[2] + l.sum[3])) / n
		if off-off != 0 {
			return false
		}
		square := ((l.squares[0] + l.squares[1]) + (l.squares[2] + l.squares[3])) / n
		m.mean, m.std = near+off, math.Sqrt(max(square-off*off, 0))
		if again || math.Abs(off) <= 4*m.std {
			break
		}
		near = m.mean // The difference of the squares was of numbers that are nearly equal.
	}
	low, high := l.low[0], l.high[0]
	for i := range l.low {
		low, high = min(low, l.low[i]), max(high, l.high[i])
		m.negative += int(l.negative[i])
		m.zero += int(l.zero[i])
	}
	m.plus = count - m.negative - m.zero
	m.low, m.high = float64(low), float64(high)
	m.mean = min(max(m.mean, m.low), m.high)
	m.bound()
	return true
}

// addSingle sums dense float32 up and counts them. It reports false, and does nothing else, if they must go the usual way.
func (m *moments) addSingle(c *counter, raw []byte) bool {
	var b moments
	if c != nil && c.pairs == nil || !b.single(raw, m.mean) {
		return false
	}
	m.merge(&b)
	if c != nil {
		c.single(raw)
	}
	return true
}

// dense reports whether the elements are float32 that follow each other.
func (w *walker) dense() bool {
	return w.single && len(w.axes) == 1 && w.axes[0].stride == 4
}

const (
	pairLen   = 1 << 10 // how many float32 are counted at once: few, so that all that is needed stays in the fastest cache
	pairLeast = 1 << 14 // fewer are not worth the effort
	pairBits  = 6       // of a bin, where neighbours are counted together
	pairMask  = 1<<pairBits - 1
	pairTimes = 1 << 31 // after so many numbers words of 32 bits could soon be full
)

// pairCounter counts float32 in few bins: each two neighbours in one of as many places as there are pairs of bins.
type pairCounter struct {
	placing placingSingle
	counts  [1 << (2 * pairBits)]uint32
	counted int // numbers in counts

	pairs [pairLen / 2]uint64
	sure  [pairLen / 16]uint16
}

// placingSingle is what pairsSingleAVX2 needs to know: x*scale+least and x*scale+most are the bin plus one, less and
// plus more than what rounding may have changed.
type placingSingle struct {
	scale, least, most float32
	first              float32 // the first edge, if it is a float32: many arrays have more zeros than all else
	last               uint32  // bin
}

// newPairCounter makes a counter of pairs in p. It gives nil if bins are too many, or too narrow to be told apart by calculations
// in float32.
func newPairCounter(c *counter, p *pairCounter) *pairCounter {
	if c.log || !fast() {
		return nil
	}
	bins := float64(len(c.counts))
	wrong := 0x1p-22 * (bins + 2 + max(-c.low, c.high)*c.scale)
	if bins > pairMask+1 || !(wrong < 0.125) || c.scale < 0x1p-100 || c.scale > 0x1p100 {
		return nil
	}
	zero := 1 - c.low*c.scale
	p.placing = placingSingle{float32(c.scale), float32(zero - wrong), float32(zero + wrong), float32(c.low), uint32(len(c.counts) - 1)}
	p.counted = 0
	clear(p.counts[:])
	if float64(p.placing.first) != c.low {
		p.placing.first = float32(math.NaN()) // which nothing equals
	}
	return p
}

// single counts finite float32.
func (c *counter) single(raw []byte) {
	for ; len(raw) > 4*pairLen; raw = raw[4*pairLen:] {
		c.few(raw[:4*pairLen])
	}
	c.few(raw)
}

// few counts finite float32, at most pairLen.
func (c *counter) few(raw []byte) {
	n, p := len(raw)/4, c.pairs
	if p.counted > pairTimes-pairLen {
		c.unpair()
	}
	p.counted += n
	pairsSingleAVX2(&raw[0], n, &p.placing, &p.pairs[0], &p.sure[0])
	for _, pair := range p.pairs[:n/2] {
		p.counts[pair%uint64(len(p.counts))]++
	}
	for i, sure := range p.sure[:n/16] {
		for unsure := ^sure; unsure != 0; unsure &= unsure - 1 {
			at := 16*i + bits.TrailingZeros16(unsure)
			c.counts[p.pairs[at/2]>>(at%2*pairBits)&pairMask]--
			x := [1]float64{numbers.Single(raw[4*at:])}
			if x[0] == x[0] { // It was when it was summed up; the program may have written since.
				c.sort(x[:], 1)
			}
		}
	}
}

// unpair moves what pairs have counted to the bins.
func (c *counter) unpair() {
	for i, n := range c.pairs.counts[:] {
		if n > 0 {
			c.counts[i&pairMask] += int(n)
			c.counts[i>>pairBits] += int(n)
		}
	}
	clear(c.pairs.counts[:])
	c.pairs.counted = 0
}
