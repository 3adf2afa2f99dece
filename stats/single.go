package stats

import "math"

// singleLen is how many float32 are summed up at once: as many bytes as blockLen float64.
const singleLen = 2 * blockLen

// singleLanes is what passSingleAVX2 gives: each figure of every fourth or eighth number.
type singleLanes struct {
	sum            [4]float64
	low, high      [8]float32
	negative, zero [8]int32
}

// single sums up dense float32 where they lie: in half the time that it takes to make float64 of them first. It reports
// false, and nothing else, if they must go the usual way, because some are not finite.
func (m *moments) single(raw []byte) bool {
	n := len(raw) / 4
	if n == 0 || n%step != 0 || !fast() {
		return false
	}
	var l singleLanes
	passSingleAVX2(&raw[0], n, &l)
	sum := (l.sum[0] + l.sum[1]) + (l.sum[2] + l.sum[3])
	if sum-sum != 0 {
		return false
	}
	low, high := l.low[0], l.high[0]
	for i := range l.low {
		low, high = min(low, l.low[i]), max(high, l.high[i])
		m.negative += int(l.negative[i])
		m.zero += int(l.zero[i])
	}
	m.plus = n - m.negative - m.zero
	m.low, m.high = float64(low), float64(high)
	m.mean = min(max(sum/float64(n), m.low), m.high)
	var s [4]float64
	squaresSingleAVX2(&raw[0], n, m.mean, &s)
	m.std = math.Sqrt(((s[0] + s[1]) + (s[2] + s[3])) / float64(n))
	m.bound()
	return true
}

// dense gives the bytes of n elements of the sequence if they are float32 that follow each other; else nil.
func (w *walker) dense(raw []byte, at, n int) []byte {
	if row := w.axes[len(w.axes)-1]; !w.single || row.stride != 4 || len(w.axes) > 1 || n == 0 {
		return nil
	}
	return raw[w.first+4*at:][:4*n]
}
