package eventloop

import (
	"slices"
	"testing"
	"time"
)

// TestOrder compares the heap with a sorted list on random plans. Some events are planned
// while others run.
func TestOrder(t *testing.T) {
	for seed := range uint64(200) {
		r := NewRand(seed, 1)
		var k Loop
		var naive []PlannedEvent
		var number uint64
		plan := func() {
			number++
			e := PlannedEvent{At: k.Now() + time.Duration(r.Below(20)-3), Place: int32(r.Below(5)), Number: number}
			k.Schedule(e)
			e.At = max(e.At, k.Now())
			naive = append(naive, e)
			slices.SortStableFunc(naive, func(a, b PlannedEvent) int { return int(a.At - b.At) })
		}
		for range 5 {
			plan()
		}
		for range 300 {
			if r.Chance(0.5) {
				plan()
			}
			e, ok := k.RunNext()
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

// TestDigest checks that the same events give the same digest, and other events another.
func TestDigest(t *testing.T) {
	run := func(last uint64) uint64 {
		var k Loop
		for i := range uint64(10) {
			k.Schedule(PlannedEvent{At: time.Duration(10 - i), Number: i})
		}
		k.Schedule(PlannedEvent{At: 5, Number: last})
		for _, ok := k.RunNext(); ok; _, ok = k.RunNext() {
		}
		return k.Digest()
	}
	if a, b, c := run(1), run(1), run(2); a != b || a == c {
		t.Fatalf("digests %x, %x of the same, %x of others", a, b, c)
	}
}

// TestAllocations checks that an event costs no allocation once the heap has grown.
func TestAllocations(t *testing.T) {
	var k Loop
	with := new(int)
	for i := range 1000 {
		k.Schedule(PlannedEvent{At: time.Duration(i), Payload: with})
	}
	if n := testing.AllocsPerRun(1000, func() {
		e, _ := k.RunNext()
		e.At += 1000
		k.Schedule(e)
	}); n != 0 {
		t.Fatalf("%v allocations for an event", n)
	}
}

// BenchmarkEvents measures one event of a pool with a hundred thousand planned events.
func BenchmarkEvents(b *testing.B) {
	var k Loop
	r := NewRand(1, 1)
	for i := range 100_000 {
		k.Schedule(PlannedEvent{At: r.Exponential(time.Second), Place: int32(i)})
	}
	for b.Loop() {
		e, _ := k.RunNext()
		e.At += r.Exponential(time.Second)
		k.Schedule(e)
	}
}

// TestRand compares the numbers of a seed with published ones of SplitMix64. A change
// would invalidate every seed that is known to fail.
func TestRand(t *testing.T) {
	r := SplitMix(1234567)
	for i, want := range []uint64{6457827717110365317, 3203168211198807973, 9817491932198370423, 4593380528125082431,
		16408922859458223821} {
		if got := r.Uint64(); got != want {
			t.Errorf("number %d: got %d, want %d", i, got, want)
		}
	}
}
