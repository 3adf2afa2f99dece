package stats

import "math"

// blockLen is how many numbers are summed up at once: so few that they stay in the fastest cache, where a second pass over
// them, which makes the deviation exact, costs next to nothing.
const blockLen = 2048

// moments sums numbers up. Those of two parts of an array merge into those of both.
type moments struct {
	nan, posInf, negInf  int
	zero, negative, plus int
	low, high            float64 // of finite ones
	mean                 float64
	std                  float64 // root of the mean squared deviation: the sum of squares might overflow
}

func (m *moments) finite() int { return m.zero + m.negative + m.plus }

// block sums up at most blockLen numbers. It may reorder xs; the finite ones come first, and their number is n.
func block(xs []float64) (m moments, n int) {
	sum, low, high, negative, zero := pass(xs)
	if sum-sum != 0 { // some number is not finite, or the sum is too large
		xs = m.sift(xs)
		if len(xs) == 0 {
			return m, 0
		}
		_, low, high, negative, zero = pass(xs)
		sum = math.NaN()
	}
	n = len(xs)
	m.low, m.high = low, high
	m.negative, m.zero = negative, zero
	m.plus = n - negative - zero
	scale := scaleOf(low, high)
	if scale != 1 || sum != sum {
		sum = 0
		for _, x := range xs {
			sum += x * scale
		}
	}
	mean := min(max(sum/float64(n), low*scale), high*scale)
	square := 0.0
	if scale == 1 {
		square = squares(xs, mean)
	} else { // not in place: small ones beside large ones would be gone, and are still to be counted
		for _, x := range xs {
			d := x*scale - mean
			square += d * d
		}
	}
	m.std = math.Sqrt(square/float64(n)) / scale
	m.bound()
	m.mean = mean / scale
	return m, n
}

// scaleOf gives a scale that keeps sums and squares of numbers between low and high away from the ends of the range of float64.
func scaleOf(low, high float64) float64 {
	switch most := max(-low, high); {
	case most > 0x1p500:
		return 0x1p-600
	case most < 0x1p-450 && most > 0:
		return 0x1p600
	default:
		return 1
	}
}

// bound keeps rounding from making a deviation that numbers in this range cannot have, and that may be too large for a float64.
func (m *moments) bound() {
	if width := m.high - m.low; math.IsInf(width, 0) {
		m.std = min(m.std, m.high/2-m.low/2)
	} else {
		m.std = min(m.std, width/2)
	}
}

// sift counts what is not finite and moves the others to the front.
func (m *moments) sift(xs []float64) []float64 {
	n := 0
	for _, x := range xs {
		switch {
		case x-x == 0:
			xs[n] = x
			n++
		case x > 0:
			m.posInf++
		case x < 0:
			m.negInf++
		default:
			m.nan++
		}
	}
	return xs[:n]
}

// merge adds the numbers of o. After Chan, Golub and LeVeque: the error of the deviation does not grow with the mean.
func (m *moments) merge(o *moments) {
	m.nan += o.nan
	m.posInf += o.posInf
	m.negInf += o.negInf
	a, b := float64(m.finite()), float64(o.finite())
	m.zero += o.zero
	m.negative += o.negative
	m.plus += o.plus
	switch {
	case b == 0:
		return
	case a == 0:
		m.low, m.high, m.mean, m.std = o.low, o.high, o.mean, o.std
		return
	}
	m.low, m.high = min(m.low, o.low), max(m.high, o.high)
	a, b = a/(a+b), b/(a+b)
	half := o.mean/2 - m.mean/2 // the difference itself may overflow
	m.std = math.Hypot(math.Hypot(m.std*math.Sqrt(a), o.std*math.Sqrt(b)), half*(2*math.Sqrt(a*b)))
	m.bound()
	m.mean += 2 * (half * b)
}

// add adds one number, but for the deviation and the sign: cells of pictures have neither.
func (m *moments) add(x float64) {
	switch {
	case x-x == 0:
		m.plus++
		if m.plus == 1 {
			m.low, m.high, m.mean = x, x, x
			return
		}
		m.low, m.high = min(m.low, x), max(m.high, x)
		m.mean += 2 * ((x/2 - m.mean/2) / float64(m.plus)) // the difference itself may overflow
		m.mean = min(max(m.mean, m.low), m.high)
	case x > 0:
		m.posInf++
	case x < 0:
		m.negInf++
	default:
		m.nan++
	}
}

// repeated is as if each number were there several times.
func (m *moments) repeated(times int) {
	for _, n := range []*int{&m.nan, &m.posInf, &m.negInf, &m.zero, &m.negative, &m.plus} {
		*n *= times
	}
}

// lanes is what passAVX2 gives: each figure of every fourth number.
type lanes struct {
	sum, low, high [4]float64
	negative, zero [4]int64
}

// pass gives the sum, the extremes, and the counts of negative numbers and zeros. If the sum is not finite, nothing
// else is to be relied upon.
func pass(xs []float64) (sum, low, high float64, negative, zero int) {
	low, high = math.Inf(1), math.Inf(-1)
	if n := len(xs) / step * step; n > 0 && fast() {
		var l lanes
		passAVX2(&xs[0], n, &l)
		for i := range l.sum {
			sum += l.sum[i]
			low, high = min(low, l.low[i]), max(high, l.high[i])
			negative += int(l.negative[i])
			zero += int(l.zero[i])
		}
		xs = xs[n:]
	}
	var a, b, c, d float64
	i := 0
	for ; i+4 <= len(xs); i += 4 {
		x := xs[i : i+4 : i+4]
		a += x[0]
		b += x[1]
		c += x[2]
		d += x[3]
	}
	for ; i < len(xs); i++ {
		a += xs[i]
	}
	for _, x := range xs {
		if x < low {
			low = x
		}
		if x > high {
			high = x
		}
		switch {
		case x < 0:
			negative++
		case x == 0:
			zero++
		}
	}
	return sum + ((a + b) + (c + d)), low, high, negative, zero
}

// squares gives the sum of squared deviations from mean.
func squares(xs []float64, mean float64) (sum float64) {
	if n := len(xs) / step * step; n > 0 && fast() {
		var l [4]float64
		squaresAVX2(&xs[0], n, mean, &l)
		sum = (l[0] + l[1]) + (l[2] + l[3])
		xs = xs[n:]
	}
	var a, b, c, d float64
	i := 0
	for ; i+4 <= len(xs); i += 4 {
		x := xs[i : i+4 : i+4]
		p, q, r, s := x[0]-mean, x[1]-mean, x[2]-mean, x[3]-mean
		a += p * p
		b += q * q
		c += r * r
		d += s * s
	}
	for ; i < len(xs); i++ {
		p := xs[i] - mean
		a += p * p
	}
	return sum + ((a + b) + (c + d))
}
