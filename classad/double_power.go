package classad

import "math"

// exactPower returns x to the power y, rounded correctly except in about one case in
// 2^40. The Pow of package math can be wrong in the last digits; the C library's, whose
// results HTCondor prints, is not.
func exactPower(x, y float64) float64 {
	f := math.Pow(x, y)
	if x == 0 || x == 1 || y == 0 || math.Abs(f) < 1e-300 || math.IsInf(f, 0) || math.IsNaN(f) || math.IsInf(y, 0) {
		return f
	}
	sign := 1.0
	if f < 0 {
		sign = -1
	}
	// f is almost right: with r = y ln|x| − ln f, the result is f e^r, and r is so small
	// that e^r is 1 + r.
	r := logarithm(math.Abs(x)).times(y).minus(logarithm(math.Abs(f)))
	return sign * math.FMA(math.Abs(f), r.high+r.low, math.Abs(f))
}

// doubleDouble is the sum of two reals with 106 bits in all. The second is less than half
// a unit in the last place of the first.
type doubleDouble struct{ high, low float64 }

func sumOf(a, b float64) doubleDouble {
	s := a + b
	t := s - a
	return doubleDouble{s, (a - (s - t)) + (b - t)}
}

func (d doubleDouble) plus(e doubleDouble) doubleDouble {
	s, t := sumOf(d.high, e.high), sumOf(d.low, e.low)
	s = sumOf(s.high, s.low+t.high)
	return sumOf(s.high, s.low+t.low)
}

func (d doubleDouble) minus(e doubleDouble) doubleDouble {
	return d.plus(doubleDouble{-e.high, -e.low})
}

func (d doubleDouble) times(f float64) doubleDouble {
	p := d.high * f
	return sumOf(p, math.FMA(d.high, f, -p)+d.low*f)
}

func (d doubleDouble) over(e doubleDouble) doubleDouble {
	q := d.high / e.high
	r := d.minus(e.times(q))
	q2 := r.high / e.high
	r = r.minus(e.times(q2))
	return sumOf(q, q2).plus(doubleDouble{r.high / e.high, 0})
}

// logarithm returns the natural logarithm of x > 0.
func logarithm(x float64) doubleDouble {
	m, exp := math.Frexp(x)
	if m < math.Sqrt2/2 {
		m, exp = 2*m, exp-1
	}
	// ln m = 2 artanh z = 2 (z + z³/3 + z⁵/5 + …) with z = (m−1)/(m+1), which is less
	// than 0.18 here.
	z := sumOf(m, -1).over(sumOf(m, 1))
	square := z.multiply(z)
	series := doubleDouble{}
	for k := 43; k >= 1; k -= 2 {
		series = series.multiply(square).plus(doubleDouble{1, 0}.over(doubleDouble{float64(k), 0}))
	}
	ln2 := doubleDouble{0x1.62e42fefa39efp-1, 0x1.abc9e3b39803fp-56}
	return ln2.times(float64(exp)).plus(z.multiply(series).times(2))
}

func (d doubleDouble) multiply(e doubleDouble) doubleDouble {
	p := d.high * e.high
	return sumOf(p, math.FMA(d.high, e.high, -p)+(d.high*e.low+d.low*e.high))
}
