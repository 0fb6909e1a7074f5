package timeline

import (
	"math/rand/v2"
	"testing"

	"github.com/roost-batch/roost"
)

// TestOracle compares random futures with a table of what is free in each second.
func TestOracle(t *testing.T) {
	const horizon = 60
	for seed := range uint64(3000) {
		rng := rand.New(rand.NewPCG(seed, 1))
		now := UnixSeconds(rng.IntN(5))
		machines := make([]*MachineCapacity, 1+rng.IntN(3))
		for i := range machines {
			machines[i] = randomMachine(rng)
		}
		r := roost.Resources{CPU: 1 + roost.MilliCPU(rng.IntN(3)), Memory: roost.Bytes(rng.IntN(3))}
		length := UnixSeconds(1 + rng.IntN(20))
		if rng.IntN(5) == 0 {
			length = Never
		}
		n := 1 + rng.IntN(6)
		naive := func(m *MachineCapacity, at UnixSeconds) int {
			least := 1 << 30
			for s := at; s < min(EndTime(at, length), 3*horizon); s++ {
				least = min(least, r.TimesIn(m.FreeAt(s)))
			}
			return least
		}
		wantAt, found := UnixSeconds(0), false
		for at := now; at < 2*horizon && !found; at++ {
			sum := 0
			for _, m := range machines {
				if got, want := m.UnitsFrom(at, length, r, 1<<30), naive(m, at); got != want {
					t.Fatalf("seed %d: %d units of %v fit from %d for %d, want %d: %+v", seed, got, r, at,
						length, want, m)
				}
				sum += naive(m, at)
			}
			wantAt, found = at, sum >= n
		}
		at, on, ok := EarliestFit(machines, now, length, r, n)
		if ok != found || ok && at != wantAt {
			t.Fatalf("seed %d: %d units of %v for %d start at %d (%v), want %d (%v)", seed, n, r, length, at,
				ok, wantAt, found)
		}
		one, _, oneOK := EarliestFit(machines[:1], now, length, r, 1)
		if first, ok := machines[0].EarliestUnit(now, length, r); ok != oneOK || ok && first != one {
			t.Fatalf("seed %d: one unit of %v for %d starts first at %d (%v), want %d (%v)", seed, r, length, first, ok,
				one, oneOK)
		}
		sum := 0
		for i, units := range on {
			if sum += units; units > machines[i].UnitsFrom(at, length, r, n) {
				t.Fatalf("seed %d: %d units on machine %d at %d", seed, units, i, at)
			}
		}
		if ok && sum != n {
			t.Fatalf("seed %d: places for %d of %d units", seed, sum, n)
		}
	}
}

func randomMachine(rng *rand.Rand) *MachineCapacity {
	part := func() roost.Resources {
		return roost.Resources{CPU: roost.MilliCPU(rng.IntN(5)), Memory: roost.Bytes(rng.IntN(5))}
	}
	m := &MachineCapacity{Free: part()}
	for range rng.IntN(5) {
		m.AddRelease(UnixSeconds(rng.IntN(40)), part())
	}
	for range rng.IntN(3) {
		from := UnixSeconds(rng.IntN(40))
		until := from + 1 + UnixSeconds(rng.IntN(20))
		if rng.IntN(4) == 0 {
			until = Never
		}
		m.Reservations = append(m.Reservations, Reservation{from, until, part()})
	}
	return m
}

// TestUnaffectedFit checks that a shortage of a resource does not stop tasks that do not
// need it.
func TestUnaffectedFit(t *testing.T) {
	m := &MachineCapacity{Free: roost.Resources{CPU: 8000, GPUs: 2}}
	m.Reservations = []Reservation{{0, Never, roost.Resources{CPU: 1000, GPUs: 4}}}
	if !m.Fits(0, Never, roost.Resources{CPU: 7000}) {
		t.Error("a task without GPUs does not fit beside a hold for more of them than are free")
	}
	if m.Fits(0, Never, roost.Resources{CPU: 1000, GPUs: 1}) {
		t.Error("a GPU is given away that a hold waits for")
	}
}
