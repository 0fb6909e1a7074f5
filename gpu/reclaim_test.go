package gpu

import (
	"math/rand/v2"
	"testing"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
)

func mayReclaim(r DeviceRequest) DeviceRequest {
	r.MayReclaim = true
	return r
}

// TestReclaimed checks that only requests with MayReclaim get what a task leaves of its
// limit.
func TestReclaimed(t *testing.T) {
	g := roost.GiB
	f := cutMachine(t, testMachine(8, 0), LayoutConfig{})
	f.SetReclaim(true)
	prod, err := f.PlaceOrExplain(deviceRequest(6, 24*g, 0, 0))
	if err != nil {
		t.Fatal(err)
	}
	f.TakePlacement(prod)
	batch := mayReclaim(deviceRequest(4, 12*g, 0, 0))
	if _, err := f.PlaceOrExplain(batch); err == nil {
		t.Fatal("it was given what is still reserved")
	}
	f.SetUsageEstimate(&prod, 2000, 4*g)
	if _, err := f.PlaceOrExplain(deviceRequest(4, 12*g, 0, 0)); err == nil {
		t.Fatal("production was given what is lent")
	}
	reclaimable, err := f.PlaceOrExplain(batch)
	if err != nil || !reclaimable.Reclaimed {
		t.Fatalf("it got %+v (%v), want reclaimed room", reclaimable, err)
	}
	f.TakePlacement(reclaimable)
	if got, want := f.LeftForRequest(true), (roost.Resources{CPU: 2000, Memory: 16 * g, Disk: 100 * g}); got != want {
		t.Fatalf("room for %v, want %v", got, want)
	}
	if got, want := f.LeftForBatch(), (roost.Resources{CPU: 2000, Memory: 8 * g, Disk: 100 * g}); got != want {
		t.Fatalf("%v free, want %v: what is lent is not taken from anybody", got, want)
	}
	small, err := f.PlaceOrExplain(mayReclaim(deviceRequest(2, g, 0, 0)))
	if err != nil || small.Reclaimed {
		t.Fatalf("it got %+v (%v), want something of its own", small, err)
	}
	f.SetUsageEstimate(&prod, 6000, 24*g) // the task uses all of it now
	if got := f.Reclaimable(0, BatchClass); got.CPU != -2000 || got.Memory != -4*g {
		t.Fatalf("the room is %v, and 2 cores and 4 GiB are to be got back", got)
	}
	f.ReturnPlacement(prod)
	if !f.BackWithFree(&reclaimable) || reclaimable.Reclaimed {
		t.Fatalf("%+v did not get what fell free", reclaimable)
	}
}

// TestRandomReclaim takes and returns placements and changes estimates at random. It
// compares both accounts with their definition, and reads the ad back.
func TestRandomReclaim(t *testing.T) {
	for seed := range uint64(100) {
		rnd := rand.New(rand.NewPCG(seed, 7))
		f := cutMachine(t, testMachine(8, 4),
			[]LayoutConfig{{}, {Shape: PinnedLayout}, {Shape: EvenLayout}}[rnd.IntN(3)])
		f.SetReclaim(true)
		var held []Placement
		for range 200 {
			switch n := rnd.IntN(4); {
			case n == 0 && len(held) > 0:
				i := rnd.IntN(len(held))
				f.ReturnPlacement(held[i])
				held[i] = held[len(held)-1]
				held = held[:len(held)-1]
			case n == 1 && len(held) > 0:
				p := &held[rnd.IntN(len(held))]
				f.SetUsageEstimate(p, roost.MilliCPU(rnd.IntN(6000)), roost.Bytes(rnd.Int64N(int64(20*roost.GiB))))
			case n == 2 && len(held) > 0:
				f.BackWithFree(&held[rnd.IntN(len(held))])
			default:
				r := deviceRequest(rnd.IntN(5), roost.Bytes(rnd.IntN(12))*roost.GiB, rnd.IntN(3),
					roost.Bytes(rnd.IntN(2))*roost.GiB)
				if r.GPUs == 0 {
					r.GPUMemory = 0
				}
				r.MayReclaim, r.Class = rnd.IntN(2) == 0, AppClass(rnd.IntN(2))
				p, err := f.PlaceOrExplain(r)
				if err != nil {
					continue
				}
				f.TakePlacement(p)
				held = append(held, p)
			}
			checkReclaimable(t, seed, f, held)
		}
	}
}

func checkReclaimable(t *testing.T, seed uint64, f *FreeResources, held []Placement) {
	t.Helper()
	g := f.EmptyClone()
	for i := range g.units {
		u, v := &g.units[i], &f.units[i]
		for _, p := range held {
			for _, part := range p.Parts {
				if part.Unit != i {
					continue
				}
				u.reclaimable.cpu[p.Class] -= part.CPU - part.ReclaimableCPU
				u.reclaimable.memory -= part.Memory - part.ReclaimableMemory
				if !p.Reclaimed {
					u.cpu[p.Class] -= part.CPU
					u.memory -= part.Memory
				}
				if part.ReclaimableCPU < 0 || part.ReclaimableCPU > part.CPU || part.ReclaimableMemory < 0 ||
					part.ReclaimableMemory > part.Memory {
					t.Fatalf("seed %d: %+v lends more than it has", seed, part)
				}
			}
		}
		if u.cpu != v.cpu || u.memory != v.memory || u.reclaimable != v.reclaimable {
			t.Fatalf("seed %d, %s: free %v %v, room %v; by what is held %v %v, %v", seed, v.Name, v.cpu, v.memory,
				v.reclaimable, u.cpu, u.memory, u.reclaimable)
		}
		if v.memory < 0 || v.cpu[0] < 0 || v.cpu[1] < 0 {
			t.Fatalf("seed %d, %s: %v %v free", seed, v.Name, v.cpu, v.memory)
		}
	}
	ad := classad.New()
	f.Describe(ad)
	back, err := ReadAd(ad)
	if err != nil || !back.IsReclaiming() {
		t.Fatalf("seed %d: it is read as %+v (%v)", seed, back, err)
	}
	for i := range f.units {
		a, b := f.Reclaimable(i, BatchClass), back.Reclaimable(i, BatchClass)
		if max(a.CPU, 0) != b.CPU || max(a.Memory, 0)/roost.KiB != b.Memory/roost.KiB {
			t.Fatalf("seed %d: room for %v is read as %v", seed, a, b)
		}
	}
}
