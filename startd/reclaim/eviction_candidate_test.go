package reclaim

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/roost-batch/roost"
)

func TestChoose(t *testing.T) {
	g := roost.GiB
	old := EvictionCandidate{ID: 1, Band: roost.BatchBand, Reclaimed: true, Began: time.Minute, Freed: 2 * g}
	young := EvictionCandidate{ID: 2, Band: roost.BatchBand, Reclaimed: true, Began: time.Hour, Freed: 2 * g}
	free := EvictionCandidate{ID: 3, Band: roost.FreeBand, Reclaimed: true, Began: time.Second, Freed: g}
	own := EvictionCandidate{ID: 4, Band: roost.FreeBand, Began: time.Hour, Freed: 4 * g}
	over := EvictionCandidate{ID: 5, Band: roost.BatchBand, Excess: g, Freed: g}
	leaving := EvictionCandidate{ID: 6, IsVacating: true, Freed: 2 * g}
	for _, test := range []struct {
		name string
		need roost.Bytes
		from []EvictionCandidate
		want []uint64
	}{
		{"nothing is short", 0, []EvictionCandidate{old}, nil},
		{"the youngest", g, []EvictionCandidate{old, young}, []uint64{2}},
		{"the lowest band", g, []EvictionCandidate{old, young, free}, []uint64{3}},
		{"and the next, if that is not enough", 3 * g, []EvictionCandidate{old, young, free}, []uint64{3, 2}},
		{"who is not needed then stays", 2 * g, []EvictionCandidate{old, young, free}, []uint64{2}},
		{"those with something of their own last", 2 * g, []EvictionCandidate{own, young}, []uint64{2}},
		{"one that uses more than it asked for first", g, []EvictionCandidate{free, over}, []uint64{5}},
		{"those that go already are enough", 2 * g, []EvictionCandidate{leaving, young}, nil},
		{"all", 100 * g, []EvictionCandidate{old, young, free}, []uint64{3, 2, 1}},
		{"nobody", g, nil, nil},
	} {
		if got := SelectVictims(test.need, test.from); !slices.Equal(got, test.want) {
			t.Errorf("%s: %v go, want %v", test.name, got, test.want)
		}
	}
}

// TestChooseEnough checks that the selected claims are enough if all together are. None
// of them may be unnecessary.
func TestChooseEnough(t *testing.T) {
	for seed := range uint64(2000) {
		rnd := rand.New(rand.NewPCG(seed, 3))
		var all []EvictionCandidate
		var sum roost.Bytes
		frees := map[uint64]roost.Bytes{}
		for i := range rnd.IntN(8) {
			one := EvictionCandidate{ID: uint64(i + 1), Band: roost.PriorityBand(rnd.IntN(2)),
				Reclaimed: rnd.IntN(2) == 0, Began: time.Duration(rnd.IntN(9)), Freed: roost.Bytes(rnd.IntN(100))}
			one.IsVacating = rnd.IntN(5) == 0
			all, sum = append(all, one), sum+one.Freed
			frees[one.ID] = one.Freed
		}
		need, got := roost.Bytes(rnd.IntN(300)), roost.Bytes(0)
		chosen := SelectVictims(need, all)
		for _, one := range all {
			if one.IsVacating {
				got += one.Freed
			}
		}
		for _, id := range chosen {
			got += frees[id]
		}
		if got < min(need, sum) {
			t.Fatalf("seed %d: %d of %d is got back, and there was %d", seed, got, need, sum)
		}
		for _, id := range chosen {
			if got-frees[id] >= need {
				t.Fatalf("seed %d: %d could have stayed: %v of %+v for %d", seed, id, chosen, all, need)
			}
		}
	}
}

func TestShort(t *testing.T) {
	g := roost.GiB
	for _, test := range []struct{ available, total, want roost.Bytes }{
		{10 * g, 100 * g, 0}, {g, 100 * g, 3 * g}, {roost.MiB, g, 127 * roost.MiB}, {0, 0, 0},
	} {
		if got := MemoryShortfall(test.available, test.total); got != test.want {
			t.Errorf("with %v of %v, %v is short, want %v", test.available, test.total, got, test.want)
		}
	}
}

func TestEvictionForMemory(t *testing.T) {
	for _, test := range []struct{ deficit, asked, one, want roost.MilliCPU }{
		{0, 4000, 1000, 1000}, {2000, 4000, 1000, 500}, {5000, 4000, 2000, 200}, {1, 0, 0, 0},
	} {
		if got := ThrottleShares(test.deficit, test.asked, test.one); got != test.want {
			t.Errorf("%v too many of %v leave one that asked for %v with %v, want %v", test.deficit, test.asked,
				test.one, got, test.want)
		}
	}
}
