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
	old := Tenant{ID: 1, Band: roost.Batch, Reclaimed: true, Began: time.Minute, Frees: 2 * g}
	young := Tenant{ID: 2, Band: roost.Batch, Reclaimed: true, Began: time.Hour, Frees: 2 * g}
	free := Tenant{ID: 3, Band: roost.Free, Reclaimed: true, Began: time.Second, Frees: g}
	own := Tenant{ID: 4, Band: roost.Free, Began: time.Hour, Frees: 4 * g}
	over := Tenant{ID: 5, Band: roost.Batch, Over: g, Frees: g}
	leaving := Tenant{ID: 6, Leaving: true, Frees: 2 * g}
	for _, test := range []struct {
		name string
		need roost.Bytes
		from []Tenant
		want []uint64
	}{
		{"nothing is short", 0, []Tenant{old}, nil},
		{"the youngest", g, []Tenant{old, young}, []uint64{2}},
		{"the lowest band", g, []Tenant{old, young, free}, []uint64{3}},
		{"and the next, if that is not enough", 3 * g, []Tenant{old, young, free}, []uint64{3, 2}},
		{"who is not needed then stays", 2 * g, []Tenant{old, young, free}, []uint64{2}},
		{"those with something of their own last", 2 * g, []Tenant{own, young}, []uint64{2}},
		{"one that uses more than it asked for first", g, []Tenant{free, over}, []uint64{5}},
		{"those that go already are enough", 2 * g, []Tenant{leaving, young}, nil},
		{"all", 100 * g, []Tenant{old, young, free}, []uint64{3, 2, 1}},
		{"nobody", g, nil, nil},
	} {
		if got := Choose(test.need, test.from); !slices.Equal(got, test.want) {
			t.Errorf("%s: %v go, want %v", test.name, got, test.want)
		}
	}
}

// TestChooseEnough: what goes is enough if all would be, and none of it could stay.
func TestChooseEnough(t *testing.T) {
	for seed := range uint64(2000) {
		rnd := rand.New(rand.NewPCG(seed, 3))
		var all []Tenant
		var sum roost.Bytes
		frees := map[uint64]roost.Bytes{}
		for i := range rnd.IntN(8) {
			one := Tenant{ID: uint64(i + 1), Band: roost.Band(rnd.IntN(2)), Reclaimed: rnd.IntN(2) == 0, Began: time.Duration(rnd.IntN(9)), Frees: roost.Bytes(rnd.IntN(100))}
			one.Leaving = rnd.IntN(5) == 0
			all, sum = append(all, one), sum+one.Frees
			frees[one.ID] = one.Frees
		}
		need, got := roost.Bytes(rnd.IntN(300)), roost.Bytes(0)
		chosen := Choose(need, all)
		for _, one := range all {
			if one.Leaving {
				got += one.Frees
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
		if got := Short(test.available, test.total); got != test.want {
			t.Errorf("with %v of %v, %v is short, want %v", test.available, test.total, got, test.want)
		}
	}
}

func TestSqueeze(t *testing.T) {
	for _, test := range []struct{ deficit, asked, one, want roost.MilliCPU }{
		{0, 4000, 1000, 1000}, {2000, 4000, 1000, 500}, {5000, 4000, 2000, 200}, {1, 0, 0, 0},
	} {
		if got := Squeeze(test.deficit, test.asked, test.one); got != test.want {
			t.Errorf("%v too many of %v leave one that asked for %v with %v, want %v", test.deficit, test.asked, test.one, got, test.want)
		}
	}
}
