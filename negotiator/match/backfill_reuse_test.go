package match

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/negotiator/fairshare"
	"github.com/roost-batch/roost/negotiator/timeline"
)

// TestBackfillReservations checks the reservations that a plan returns. Beside the
// reserving request, another starts exactly if there is room for it now and the
// reservation leaves it. The machine is described once by its claims and once by its
// releases only; the plans must be the same.
func TestBackfillReservations(t *testing.T) {
	const now = 10_000
	who := fairshare.Submitter{Owner: "ada"}
	request := func(id uint64, cpus, length int) *Request {
		c, err := NewClass("", who, roost.BatchBand, roost.Resources{CPU: roost.MilliCPU(cpus) * 1000})
		if err != nil {
			t.Fatal(err)
		}
		return &Request{Key: RequestKey{"s", id}, Submitter: who, Band: roost.BatchBand, Oldest: int64(id), Wanted: 1,
			Class: c, Walltime: time.Duration(length) * time.Second}
	}
	granted, refused := 0, 0
	for seed := range uint64(120) {
		rng := rand.New(rand.NewPCG(seed, 3))
		var claims []MachineClaim
		var returns []timeline.CapacityRelease
		free := roost.Resources{CPU: 32_000}
		for at := int64(now - 20); rng.IntN(8) > 0; at += rng.Int64N(60) {
			r := roost.Resources{CPU: roost.MilliCPU(1+rng.IntN(9)) * 1000}
			if !r.FitsIn(free) {
				break
			}
			free = free.Sub(r)
			claims = append(claims, MachineClaim{ID: uint64(len(claims) + 1), Submitter: who, Band: roost.BatchBand,
				Resources: r, TaskStarted: 1, WalltimeEnd: at})
			returns = append(returns, timeline.CapacityRelease{At: at, Resources: r})
		}
		empty := NewMachine("m", 1, 1, machineAd(t, "m", roost.Resources{CPU: 32_000}, roost.Resources{CPU: 32_000},
			"Requirements = true"))
		plan := func(m *Machine, requests ...*Request) Plan {
			return NewMatcher().Plan(&Snapshot{Now: time.Unix(now, 0), Machines: []*Machine{m}, Requests: requests,
				Backfill: BackfillSettings{Mode: EASYBackfill}})
		}
		head := request(1, 32, 100)
		if len(claims) == 0 {
			continue
		}
		p := plan(empty.WithClaims(free, claims), head)
		if len(p.BackfillReservations) != 1 || p.BackfillReservations[0].Request != head ||
			p.BackfillReservations[0].From <= now {
			t.Fatalf("seed %d: held: %+v", seed, p.BackfillReservations)
		}
		h := p.BackfillReservations[0]
		if seed%2 == 0 { // leave something beside it
			head = request(1, 32-rng.IntN(20), 100)
			if p = plan(empty.WithClaims(free, claims), head); len(p.BackfillReservations) != 1 {
				continue
			}
			h = p.BackfillReservations[0]
		}
		for range 20 {
			cpus, length := 1+rng.IntN(16), 1+rng.IntN(150)
			other := request(2, cpus, length)
			a, b := plan(empty.WithClaims(free, claims), head, other),
				plan(empty.WithReturning(free, slices.Clone(returns)), head, other)
			want := other.Class.Resources.FitsIn(free) && h.LeavesRoom(now+int64(length), other.Class.Resources)
			for i, p := range []Plan{a, b} {
				if got := len(p.Grants) == 1 && p.Grants[0].Request == other; got != want ||
					len(p.BackfillReservations) != 1 || p.BackfillReservations[0].From != h.From {
					t.Fatalf("seed %d, plan %d: %d cpus for %d s: granted %+v beside %+v, with %v free: want %t", seed,
						i, cpus, length, p.Grants, p.BackfillReservations, free, want)
				}
			}
			if want {
				granted++
			} else {
				refused++
			}
		}
		checkReservationReuse(t, rng, h, free, returns,
			func(free roost.Resources, returns []timeline.CapacityRelease, other *Request) bool {
				p := plan(empty.WithReturning(free, returns), head, other)
				return len(p.Grants) == 1 && p.Grants[0].Request == other
			}, request)
	}
	if granted < 100 || refused < 100 {
		t.Errorf("%d were granted and %d refused: this tests little", granted, refused)
	}
}

// checkReservationReuse checks that LeavesRoom rules out nothing that a plan would start.
// It does so after resources became free too early or will become free too late.
func checkReservationReuse(t *testing.T, rng *rand.Rand, h BackfillReservation, free roost.Resources,
	returns []timeline.CapacityRelease, starts func(roost.Resources, []timeline.CapacityRelease, *Request) bool,
	request func(uint64, int, int) *Request) {
	t.Helper()
	const now = 10_000
	for known := true; known && len(returns) > 0; {
		i := rng.IntN(len(returns))
		one := returns[i]
		returns = slices.Delete(slices.Clone(returns), i, i+1)
		if one.At <= now || rng.IntN(2) == 0 {
			free = free.Add(one.Resources)
			h.AddFreed(one.At, one.Resources)
		} else {
			later := one.At + rng.Int64N(100)
			known = h.AddDelayed(one.At, later)
			at, _ := slices.BinarySearchFunc(returns, later, func(r timeline.CapacityRelease, at int64) int {
				return int(r.At - at)
			})
			returns = slices.Insert(returns, at, timeline.CapacityRelease{At: later, Resources: one.Resources})
		}
		if !h.Request.Class.Resources.FitsIn(free) && known {
			for range 10 {
				cpus, length := 1+rng.IntN(16), 1+rng.IntN(150)
				other := request(2, cpus, length)
				if starts(free, returns, other) && !h.LeavesRoom(now+int64(length), other.Class.Resources) {
					t.Fatalf("%d cpus for %d s start beside %+v, which should not leave them", cpus, length, h)
				}
			}
		}
	}
}
