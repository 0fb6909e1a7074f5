package lublin

import "math"

// randomSource is a stream of random numbers: SplitMix64 (Steele, Lea and Flood, OOPSLA
// 2014, fig. 15). Products that are added to something are converted explicitly, so that
// no processor fuses the two operations (Go specification, "Floating-point operators").
type randomSource uint64

func (s *randomSource) next() uint64 {
	*s += 0x9e3779b97f4a7c15
	z := uint64(*s)
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// uniform draws a number between 0 and 1, both excluded.
func (s *randomSource) uniform() float64 { return (float64(s.next()>>11) + 0.5) / (1 << 53) }

// between draws a number from low to high, uniformly.
func (s *randomSource) between(low, high float64) float64 {
	return low + float64(s.uniform()*(high-low))
}

// normal draws from the standard normal distribution, by Marsaglia's polar method.
func (s *randomSource) normal() float64 {
	for {
		u, v := s.between(-1, 1), s.between(-1, 1)
		if r := float64(u*u) + float64(v*v); r > 0 && r < 1 {
			return u * math.Sqrt(-2*math.Log(r)/r)
		}
	}
}

// gammaDistribution is a gamma distribution: its mean is shape*scale, its variance
// shape*scale*scale.
type gammaDistribution struct{ shape, scale float64 }

// draw draws from the distribution, whose shape must be 1 or more. The method is that of
// Marsaglia and Tsang (A Simple Method for Generating Gamma Variables, ACM TOMS 26(3),
// 2000).
func (g gammaDistribution) draw(s *randomSource) float64 {
	d := g.shape - 1./3
	c := 1 / math.Sqrt(9*d)
	for {
		x := s.normal()
		v := 1 + float64(c*x)
		if v = v * v * v; v <= 0 {
			continue
		}
		if math.Log(s.uniform()) < float64(0.5*x*x)+d-float64(d*v)+float64(d*math.Log(v)) {
			return d * v * g.scale
		}
	}
}

// drawBelow draws repeatedly until the number is no more than a limit.
func (g gammaDistribution) drawBelow(s *randomSource, limit float64) float64 {
	for {
		if x := g.draw(s); x <= limit {
			return x
		}
	}
}

// distributionBelow returns the part of the distribution that lies below x. It computes
// the regularised incomplete gamma function (Abramowitz and Stegun, 6.5.29) by its
// series, whose terms are all positive. The series always converges, and fast if x is not
// far above the shape.
func (g gammaDistribution) distributionBelow(x float64) float64 {
	if x /= g.scale; x <= 0 {
		return 0
	}
	sum, term := 0., 1/g.shape
	for n := 1.; term > sum*1e-16; n++ {
		sum += term
		term *= x / (g.shape + n)
	}
	log, _ := math.Lgamma(g.shape)
	return sum * math.Exp(float64(g.shape*math.Log(x))-x-log)
}
