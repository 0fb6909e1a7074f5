package match

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/negotiator/forecast"
	"github.com/roost-batch/roost/negotiator/share"
)

// TestHeads holds that what a plan says of the room that it holds is what it goes by: beside the request that room is held for another starts exactly if there is
// room for it now and the hold leaves it. The machine tells once of claims and once only of what falls free; the plans are the same.
func TestHeads(t *testing.T) {
	const now = 10_000
	who := share.Submitter{Owner: "ada"}
	request := func(id uint64, cpus, length int) *Request {
		c, err := NewClass("", who, roost.Batch, roost.Resources{CPU: roost.MilliCPU(cpus) * 1000})
		if err != nil {
			t.Fatal(err)
		}
		return &Request{Key: Key{"s", id}, Submitter: who, Band: roost.Batch, Oldest: int64(id), Wanted: 1, Class: c, Walltime: time.Duration(length) * time.Second}
	}
	granted, refused := 0, 0
	for seed := range uint64(120) {
		rng := rand.New(rand.NewPCG(seed, 3))
		var claims []Claim
		var returns []forecast.Release
		free := roost.Resources{CPU: 32_000}
		for at := int64(now - 20); rng.IntN(8) > 0; at += rng.Int64N(60) {
			r := roost.Resources{CPU: roost.MilliCPU(1+rng.IntN(9)) * 1000}
			if !r.Fits(free) {
				break
			}
			free = free.Sub(r)
			claims = append(claims, Claim{ID: uint64(len(claims) + 1), Submitter: who, Band: roost.Batch, Resources: r, Since: 1, Ends: at})
			returns = append(returns, forecast.Release{At: at, Resources: r})
		}
		empty := NewMachine("m", 1, 1, machineAd(t, "m", roost.Resources{CPU: 32_000}, roost.Resources{CPU: 32_000}, "Requirements = true"))
		plan := func(m *Machine, requests ...*Request) Plan {
			return NewMatcher().Plan(&Snapshot{Now: time.Unix(now, 0), Machines: []*Machine{m}, Requests: requests, Backfill: Backfill{Mode: EASY}})
		}
		head := request(1, 32, 100)
		if len(claims) == 0 {
			continue
		}
		p := plan(empty.With(free, claims), head)
		if len(p.Heads) != 1 || p.Heads[0].Request != head || p.Heads[0].From <= now {
			t.Fatalf("seed %d: held: %+v", seed, p.Heads)
		}
		h := p.Heads[0]
		if seed%2 == 0 { // leave something beside it
			head = request(1, 32-rng.IntN(20), 100)
			if p = plan(empty.With(free, claims), head); len(p.Heads) != 1 {
				continue
			}
			h = p.Heads[0]
		}
		for range 20 {
			cpus, length := 1+rng.IntN(16), 1+rng.IntN(150)
			other := request(2, cpus, length)
			a, b := plan(empty.With(free, claims), head, other), plan(empty.Returning(free, slices.Clone(returns)), head, other)
			want := other.Class.Resources.Fits(free) && h.Leaves(now+int64(length), other.Class.Resources)
			for i, p := range []Plan{a, b} {
				if got := len(p.Grants) == 1 && p.Grants[0].Request == other; got != want || len(p.Heads) != 1 || p.Heads[0].From != h.From {
					t.Fatalf("seed %d, plan %d: %d cpus for %d s: granted %+v beside %+v, with %v free: want %t", seed, i, cpus, length, p.Grants, p.Heads, free, want)
				}
			}
			if want {
				granted++
			} else {
				refused++
			}
		}
		changed(t, rng, h, free, returns, func(free roost.Resources, returns []forecast.Release, other *Request) bool {
			p := plan(empty.Returning(free, returns), head, other)
			return len(p.Grants) == 1 && p.Grants[0].Request == other
		}, request)
	}
	if granted < 100 || refused < 100 {
		t.Errorf("%d were granted and %d refused: this tests little", granted, refused)
	}
}

// changed holds that what is known of a hold rules nothing out that a plan would start, after something has fallen free too early or falls free too late.
func changed(t *testing.T, rng *rand.Rand, h Head, free roost.Resources, returns []forecast.Release, starts func(roost.Resources, []forecast.Release, *Request) bool, request func(uint64, int, int) *Request) {
	t.Helper()
	const now = 10_000
	for known := true; known && len(returns) > 0; {
		i := rng.IntN(len(returns))
		one := returns[i]
		returns = slices.Delete(slices.Clone(returns), i, i+1)
		if one.At <= now || rng.IntN(2) == 0 {
			free = free.Add(one.Resources)
			h.Freed(one.At, one.Resources)
		} else {
			later := one.At + rng.Int64N(100)
			known = h.Delayed(one.At, later)
			at, _ := slices.BinarySearchFunc(returns, later, func(r forecast.Release, at int64) int { return int(r.At - at) })
			returns = slices.Insert(returns, at, forecast.Release{At: later, Resources: one.Resources})
		}
		if !h.Request.Class.Resources.Fits(free) && known {
			for range 10 {
				cpus, length := 1+rng.IntN(16), 1+rng.IntN(150)
				other := request(2, cpus, length)
				if starts(free, returns, other) && !h.Leaves(now+int64(length), other.Class.Resources) {
					t.Fatalf("%d cpus for %d s start beside %+v, which should not leave them", cpus, length, h)
				}
			}
		}
	}
}
