package match

import (
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/gpu"
)

// TestAfterClaimsEnd lets claims begin and end on random machines. At each moment the
// machine must equal a gpu.FreeResources that is updated beside it, as startds use it.
// When all claims have ended it must be as it was.
func TestAfterClaimsEnd(t *testing.T) {
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 8))
		ad := machineAd(t, "m", roost.Resources{CPU: 8000, Memory: 8 * roost.GiB},
			roost.Resources{CPU: 8000, Memory: 8 * roost.GiB}, "Arch = \"X86_64\"")
		if rng.IntN(4) > 0 {
			randomUnits(rng).EmptyClone().Describe(ad)
		}
		m := NewMachine("m", 1, 1, ad).Emptied()
		first := m
		truth, err := gpu.ReadAd(m.Ad)
		if err != nil {
			t.Fatal(err)
		}
		for id := uint64(1); id < 30; id++ {
			var ended []uint64
			for i := range m.Claims {
				if c := &m.Claims[i]; rng.IntN(3) == 0 {
					ended = append(ended, c.ID)
					truth.ReturnPlacement(c.Placement)
					successorRoom{truth}.countBatchTasks(c.Placement, -1)
				}
			}
			r := gpu.DeviceRequest{Resources: roost.Resources{CPU: roost.MilliCPU(500 * (1 + rng.IntN(6))),
				Memory: roost.Bytes(1+rng.IntN(3)) * roost.GiB}, Class: gpu.AppClass(rng.IntN(2))}
			if rng.IntN(3) == 0 {
				r.GPUs = 1 + rng.IntN(2)
			}
			exclusive := rng.IntN(10) == 0
			var want gpu.Placement
			fits := false
			if exclusive {
				want, fits = truth.WholeMachine()
			} else {
				fits = truth.FindPlacement(r, gpu.AnyUnit, &want)
			}
			p, ok := m.PlaceNext(ended, r, exclusive)
			if ok != fits || ok && !reflect.DeepEqual(p, want) {
				t.Fatalf("seed %d: claim %d gets %+v, %v, want %+v, %v", seed, id, p, ok, want, fits)
			}
			var begun []MachineClaim
			if ok {
				begun = []MachineClaim{{ID: id, Band: roost.BatchBand, Resources: r.Resources, Placement: p,
					WalltimeEnd: int64(id)}}
				truth.TakePlacement(p)
				successorRoom{truth}.countBatchTasks(p, 1)
			}
			if m, err = m.AfterClaimsEnd(ended, begun...); err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			if m.Free != truth.LeftForBatch() || m.units != nil && !m.units.HasSameFree(truth) {
				t.Fatalf("seed %d: after claim %d there is %v free, want %v", seed, id, m.Free, truth.LeftForBatch())
			}
		}
		if m = m.Emptied(); m.Free != first.Free || !m.units.HasSameFree(first.units) || len(m.Claims) > 0 {
			t.Fatalf("seed %d: when all have ended %v is free, and at first %v", seed, m.Free, first.Free)
		}
	}
}

// TestPlaceNextRefuses checks that a claim that does not fit is refused.
func TestPlaceNextRefuses(t *testing.T) {
	m := claimedMachine(t, twoClaims)
	big := gpu.Placement{Parts: []gpu.UnitPart{{Unit: 0, CPU: 3000, Memory: roost.GiB}}}
	if _, err := m.AfterClaimsEnd(nil, MachineClaim{ID: 9, Placement: big}); err == nil {
		t.Error("3 cores begin where 1 is free")
	}
	n, err := m.AfterClaimsEnd([]uint64{4294967297, 4294967298}, MachineClaim{ID: 9, Placement: big})
	if err != nil || n.Free.CPU != 1000 || len(n.Claims) != 1 {
		t.Errorf("when the two that are there have ended: %v, %v", n, err)
	}
}

// TestReplaceClaims checks that an ad without claims, plus its claims, makes the same
// machine as the whole ad.
func TestReplaceClaims(t *testing.T) {
	m := claimedMachine(t, twoClaims)
	n := NewMachine("m", 1, 1, m.Ad.Copy()).ReplaceClaims(m.Claims, m.Preemptors, m.ClaimsUnknown)
	m.Ad, n.Ad = nil, nil
	if !reflect.DeepEqual(m, n) {
		t.Errorf("got %+v, want %+v", n, m)
	}
}
