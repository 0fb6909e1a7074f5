package fairshare

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// TestExp2Neg compares the series with the library's function.
func TestExp2Neg(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 1))
	for range 100_000 {
		halfLife := 1 + rng.Int64N(int64(48*time.Hour))
		passed := rng.Int64N(5 * halfLife)
		got, want := exp2Neg(passed, halfLife), math.Exp2(-float64(passed)/float64(halfLife))
		if math.Abs(got-want) > 4e-15*want {
			t.Fatalf("%d of %d: got %v, want %v", passed, halfLife, got, want)
		}
	}
	for _, extreme := range [][2]int64{{0, 1}, {math.MaxInt64, 1}, {1, math.MaxInt64}, {math.MaxInt64, math.MaxInt64}} {
		if got := exp2Neg(extreme[0], extreme[1]); !(got >= 0 && got <= 1) {
			t.Errorf("%v: %v", extreme, got)
		}
	}
}

// TestBits checks the bits of an accountant after a fixed history. They must be equal on
// every processor, because a difference would be one between replicas.
func TestBits(t *testing.T) {
	b := NewAccountant(HalfLife)
	rng := rand.New(rand.NewPCG(1, 2))
	now := begin
	for range 10_000 {
		now = now.Add(time.Duration(rng.Int64N(int64(time.Minute))))
		who := []Submitter{ann, bob}[rng.IntN(2)]
		b.SetUsage(now, who, float64(rng.IntN(1_000_000))/1000)
	}
	want := map[Submitter][2]uint64{ann: {0x407c7a26b493e3f2, 0x41a1cd00bc3c4582},
		bob: {0x407be347366d16a0, 0x41a173dc5ecfc7a2}}
	for s, bits := range want {
		a := b.accounts[s]
		if got := [2]uint64{math.Float64bits(a.Real), math.Float64bits(a.Used)}; got != bits {
			t.Errorf("%v: %#x %#x, want %#x", s, got[0], got[1], bits)
		}
	}
}

// TestReplicas checks that two accountants with the same events are equal to the last
// bit. One is read all the time, and the other saved and loaded in between.
func TestReplicas(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 1))
	asked, saved := NewAccountant(time.Hour), NewAccountant(time.Hour)
	now := begin
	for range 5000 {
		now = now.Add(time.Duration(rng.Int64N(int64(time.Hour))))
		who, cores := []Submitter{ann, bob}[rng.IntN(2)], 100*rng.Float64()
		for _, b := range []*Accountant{asked, saved} {
			switch {
			case cores < 5:
				b.ResetUsage(now, who)
			case cores < 10:
				b.SetFactor(now, who, cores)
			case cores < 11:
				b.SetHalfLife(now, time.Duration(cores*float64(time.Hour)))
			default:
				b.SetUsage(now, who, cores)
			}
			b.mustBeValid()
		}
		asked.EffectivePriority(now.Add(time.Second), ann)
		asked.CoreSeconds(now.Add(time.Hour), bob)
		if rng.IntN(20) == 0 {
			again := NewAccountant(saved.HalfLife())
			for _, a := range saved.Accounts() {
				if err := again.PutAccount(a); err != nil {
					t.Fatal(err)
				}
			}
			saved = again
		}
		if !slices.Equal(asked.Accounts(), saved.Accounts()) || asked.HalfLife() != saved.HalfLife() {
			t.Fatalf("%v\n%v", asked.Accounts(), saved.Accounts())
		}
	}
}

func BenchmarkHold(b *testing.B) {
	accountant := NewAccountant(HalfLife)
	now := begin
	for i := 0; b.Loop(); i++ {
		now = now.Add(time.Second)
		accountant.SetUsage(now, ann, float64(i%100))
	}
}
