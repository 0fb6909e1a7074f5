package kernel

import (
	"slices"
	"testing"
	"time"
)

// TestOrder holds the heap against a sorted list: random plans, some of them made while others happen.
func TestOrder(t *testing.T) {
	for seed := range uint64(200) {
		r := NewRand(seed, 1)
		var k Kernel
		var naive []Event
		var number uint64
		plan := func() {
			number++
			e := Event{At: k.Now() + time.Duration(r.Below(20)-3), Place: int32(r.Below(5)), Number: number}
			k.Plan(e)
			e.At = max(e.At, k.Now())
			naive = append(naive, e)
			slices.SortStableFunc(naive, func(a, b Event) int { return int(a.At - b.At) })
		}
		for range 5 {
			plan()
		}
		for range 300 {
			if r.Chance(0.5) {
				plan()
			}
			e, ok := k.Next()
			if ok != (len(naive) > 0) {
				t.Fatalf("seed %d: there is an event: %v, want %v", seed, ok, !ok)
			}
			if ok && e != naive[0] {
				t.Fatalf("seed %d: %+v happens, want %+v", seed, e, naive[0])
			}
			if ok {
				naive = naive[1:]
			}
		}
	}
}

// TestDigest: the same events have the same digest, and others another.
func TestDigest(t *testing.T) {
	run := func(last uint64) uint64 {
		var k Kernel
		for i := range uint64(10) {
			k.Plan(Event{At: time.Duration(10 - i), Number: i})
		}
		k.Plan(Event{At: 5, Number: last})
		for _, ok := k.Next(); ok; _, ok = k.Next() {
		}
		return k.Digest()
	}
	if a, b, c := run(1), run(1), run(2); a != b || a == c {
		t.Fatalf("digests %x, %x of the same, %x of others", a, b, c)
	}
}

// TestAllocations: once it has room for what is planned, an event costs none.
func TestAllocations(t *testing.T) {
	var k Kernel
	with := new(int)
	for i := range 1000 {
		k.Plan(Event{At: time.Duration(i), With: with})
	}
	if n := testing.AllocsPerRun(1000, func() {
		e, _ := k.Next()
		e.At += 1000
		k.Plan(e)
	}); n != 0 {
		t.Fatalf("%v allocations for an event", n)
	}
}

// BenchmarkEvents is one event of a pool with a hundred thousand that are planned.
func BenchmarkEvents(b *testing.B) {
	var k Kernel
	r := NewRand(1, 1)
	for i := range 100_000 {
		k.Plan(Event{At: r.Exponential(time.Second), Place: int32(i)})
	}
	for b.Loop() {
		e, _ := k.Next()
		e.At += r.Exponential(time.Second)
		k.Plan(e)
	}
}

// TestRand holds the numbers of a seed to be those that SplitMix64 is known to give: they stand for runs that people have seen.
func TestRand(t *testing.T) {
	r := Rand(1234567)
	for i, want := range []uint64{6457827717110365317, 3203168211198807973, 9817491932198370423, 4593380528125082431, 16408922859458223821} {
		if got := r.Uint64(); got != want {
			t.Errorf("number %d: got %d, want %d", i, got, want)
		}
	}
}
