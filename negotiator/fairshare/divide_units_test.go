package fairshare

import (
	"math/rand/v2"
	"slices"
	"testing"
)

func TestPortions(t *testing.T) {
	for _, c := range []struct {
		q           int64
		wants, want []int64
	}{
		{10, nil, []int64{}},
		{10, []int64{3}, []int64{3}},
		{10, []int64{30}, []int64{10}},
		{10, []int64{30, 30}, []int64{5, 5}},
		{10, []int64{30, 30, 30}, []int64{4, 3, 3}},
		{10, []int64{1, 30, 30}, []int64{1, 5, 4}},
		{10, []int64{0, 2, -5, 3}, []int64{0, 2, 0, 3}},
		{2, []int64{5, 5, 5}, []int64{1, 1, 0}},
		{0, []int64{5}, []int64{0}},
		{-3, []int64{5}, []int64{0}},
	} {
		if got := DivideUnits(c.q, c.wants); !slices.Equal(got, c.want) {
			t.Errorf("%d among %v: got %v, want %v", c.q, c.wants, got, c.want)
		}
	}
}

// TestPortionsAddUp checks random divisions. Everything that is wanted is given, no job
// gets more than it wants, and one that gets less than another, by more than one, has all
// it wants.
func TestPortionsAddUp(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		q := rng.Int64N(100)
		wants, sum := make([]int64, 1+rng.IntN(8)), int64(0)
		for i := range wants {
			wants[i] = rng.Int64N(40)
			sum += wants[i]
		}
		got, given := DivideUnits(q, wants), int64(0)
		for i, n := range got {
			given += n
			if n < 0 || n > wants[i] {
				t.Fatalf("%d among %v: got %v", q, wants, got)
			}
			for j := range got {
				if n+1 < got[j] && n < wants[i] {
					t.Fatalf("%d among %v: got %v, where %d has less than %d and wants more", q, wants, got, i, j)
				}
			}
		}
		if given != min(q, sum) {
			t.Fatalf("%d among %v: got %v, which is %d", q, wants, got, given)
		}
	}
}
