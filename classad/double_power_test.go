package classad

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
)

// TestPower compares whole powers with multiplication in 300 bits, and square roots with
// package math.
func TestPower(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range 20_000 {
		x, n := (rng.Float64()-0.3)*math.Exp(10*rng.NormFloat64()), rng.IntN(40)-20
		product := big.NewFloat(1).SetPrec(300)
		for range max(n, -n) {
			product.Mul(product, big.NewFloat(x))
		}
		if n < 0 {
			product.Quo(big.NewFloat(1).SetPrec(300), product)
		}
		want, _ := product.Float64()
		if math.Abs(want) < 1e-300 || math.IsInf(want, 0) {
			continue
		}
		if got := exactPower(x, float64(n)); got != want {
			t.Fatalf("%v to the %d: got %v, want %v", x, n, got, want)
		}
		if got := exactPower(math.Abs(x), 0.5); got != math.Sqrt(math.Abs(x)) {
			t.Fatalf("the root of %v: got %v", math.Abs(x), got)
		}
	}
	for _, test := range []struct{ x, y, want float64 }{
		{0, 0, 1}, {0, -1, math.Inf(1)}, {-8, 1. / 3, math.NaN()}, {2, 1024, math.Inf(1)},
		{math.Inf(-1), 3, math.Inf(-1)}, {1, math.NaN(), 1},
		{-2, 3, -8}, {2, -1074, 5e-324}, {1e-320, 0.5, math.Sqrt(1e-320)}, {3, 2.5, 15.588457268119896},
	} {
		if got := exactPower(test.x, test.y); got != test.want && !(math.IsNaN(got) && math.IsNaN(test.want)) {
			t.Errorf("%v to the %v: got %v, want %v", test.x, test.y, got, test.want)
		}
	}
}
