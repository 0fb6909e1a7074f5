package accounting

import (
	"math"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"github.com/roost-batch/roost"
)

// randomAttempt returns an attempt with random times, some of which are wrong, as clocks
// make them.
func randomAttempt(r *rand.Rand) AttemptEntry {
	start := NewMonth(2026, 10).Start() + Millis(r.Int64N(int64(40*DayMillis)))
	wall := r.Int64N(int64(1) << r.IntN(32))
	a := AttemptEntry{
		AttemptKey: AttemptKey{Attempt: 1 + roost.AttemptNumber(r.IntN(2))},
		Started:    start, Wall: wall, Ended: start + Millis(wall) + Millis(r.Int64N(2000)-1000),
		Held: roost.Resources{
			CPU: roost.MilliCPU(r.IntN(64_000)), Memory: roost.Bytes(r.Int64N(1 << 40)), GPUs: r.IntN(8),
		},
		Peak:    roost.Resources{Memory: roost.Bytes(r.Int64N(1 << 38))},
		UserCPU: r.Int64N(wall + 1), SystemCPU: r.Int64N(wall + 1), Suspended: r.Int64N(wall + 1),
		Useful: r.Int64N(wall + 1),
		Cause:  EndCause(1 + r.IntN(15)),
	}
	switch r.IntN(8) {
	case 0:
		a.Ended = start - Millis(r.Int64N(1000_000)) // the clock was set back
	case 1:
		a.Started = 0
	case 2:
		a.Ended = start + Millis(r.Int64N(int64(300*DayMillis)))
	case 3:
		for range 1 + r.IntN(5) {
			a.Segments = append(a.Segments, Segment{
				From: start + Millis(r.Int64N(wall+1)), Wall: r.Int64N(wall + 1), Suspended: r.IntN(2) == 0,
				Held: roost.Resources{CPU: roost.MilliCPU(r.IntN(8000)), Memory: roost.GiB, GPUs: r.IntN(2)},
			})
		}
	case 4:
		a.Ended, a.Cause = 0, NotEnded
	}
	return a
}

func TestHourPartsSumToTheWhole(t *testing.T) {
	for seed := range uint64(3000) {
		a := randomAttempt(rand.New(rand.NewPCG(seed, 1)))
		now := NewMonth(2026, 12).Start()
		eligible := a.Started - 5000
		var sum Amounts
		var wall int64
		last := Millis(0)
		a.HourParts(eligible, now, TimeRange{}, func(hour Millis, part *Amounts) {
			if hour != hour.Hour() || hour <= last {
				t.Fatalf("seed %d: hour %d after %d", seed, hour, last)
			}
			for _, v := range []int64{part.Wall, part.Suspended, part.HeldCPU, part.UsedCPU, part.LostCPU,
				part.ChargedCPU} {
				if v < 0 {
					t.Fatalf("seed %d: a part is negative: %+v", seed, part)
				}
			}
			last = hour
			wall += part.Wall
			sum.Add(part)
		})
		if want := a.Total(eligible, now); sum != want {
			t.Fatalf("seed %d: %+v\n got %+v\nwant %+v", seed, a, sum, want)
		}
		if a.Ended != 0 && wall != a.Wall {
			t.Fatalf("seed %d: the hours have %d ms, want %d", seed, wall, a.Wall)
		}
	}
}

// TestHourPartsOfRanges holds that cutting the time changes no hour: a roll-up computes
// some hours and not others.
func TestHourPartsOfRanges(t *testing.T) {
	for seed := range uint64(500) {
		r := rand.New(rand.NewPCG(seed, 2))
		a := randomAttempt(r)
		now := NewMonth(2026, 12).Start()
		whole, cut := map[Millis]Amounts{}, map[Millis]Amounts{}
		a.HourParts(0, now, TimeRange{}, func(hour Millis, part *Amounts) { whole[hour] = *part })
		middle := (a.Started + Millis(r.Int64N(int64(5*DayMillis)))).Hour()
		for _, part := range []TimeRange{{To: middle}, {From: middle}} {
			a.HourParts(0, now, part, func(hour Millis, part *Amounts) { cut[hour] = *part })
		}
		if !reflect.DeepEqual(whole, cut) {
			t.Fatalf("seed %d: got %d hours, want %d", seed, len(cut), len(whole))
		}
	}
}

func TestMulDiv(t *testing.T) {
	for _, c := range []struct{ a, b, c, want int64 }{
		{7, 3, 2, 10}, {0, 5, 1, 0}, {-4, 5, 1, 0}, {math.MaxInt64, math.MaxInt64, math.MaxInt64, math.MaxInt64},
		{math.MaxInt64, math.MaxInt64, 2, math.MaxInt64}, {1 << 40, 1 << 40, 1 << 30, 1 << 50},
	} {
		if got := mulDiv(c.a, c.b, c.c); got != c.want {
			t.Errorf("mulDiv(%d, %d, %d): got %d, want %d", c.a, c.b, c.c, got, c.want)
		}
	}
}

func TestBuckets(t *testing.T) {
	for wait, want := range map[int64]int{-1: 0, 0: 0, 999: 0, 1000: 1, 1999: 1, 2000: 2, 3999: 2, 4000: 3,
		3600_000: 12} {
		if got := WaitBucket(wait); got != want {
			t.Errorf("wait of %d ms: got %d, want %d", wait, got, want)
		}
	}
	for cpu, want := range map[int64]int{0: 0, 1000: 0, 1001: 1, 2000: 1, 2001: 2, 4000: 2, 5000: 3, 64_000: 6,
		64_001: 7} {
		if got := SizeBucket(cpu); got != want {
			t.Errorf("%d milli-CPUs: got %d, want %d", cpu, got, want)
		}
	}
}

func TestMonths(t *testing.T) {
	for _, text := range []string{"2026-11", "2024-02", "1999-12", "2100-01"} {
		m, err := ParseMonth(text)
		if err != nil || m.String() != text || MonthOf(m.Start()) != m || MonthOf(m.End()-1) != m ||
			MonthOf(m.End()) != m+1 {
			t.Errorf("%s: got %s (%d to %d), %v", text, m, m.Start(), m.End(), err)
		}
	}
	if got := NewMonth(2024, time.February).End() - NewMonth(2024, time.February).Start(); got != 29*DayMillis {
		t.Errorf("February 2024 has %d ms", got)
	}
	for _, text := range []string{"", "2026", "2026-13", "11-2026", "2026-11-01"} {
		if _, err := ParseMonth(text); err == nil {
			t.Errorf("%q is a month", text)
		}
	}
	if got := Millis(-1).Hour(); got != -HourMillis {
		t.Errorf("the hour before 1970: got %d", got)
	}
}

func TestMachineState(t *testing.T) {
	var s MachineState
	var c CapacityLine
	at := Millis(0)
	step := func(until Millis, e MachineEvent) {
		s.AddTo(&c, at, until)
		at = until
		s.Apply(&e)
	}
	four := roost.Resources{CPU: 4000, GPUs: 1}
	step(1000, MachineEvent{What: MachineAdded, Capacity: four, Class: "a"})
	step(3000, MachineEvent{What: MachineReclaimed})
	step(4000, MachineEvent{What: MachineAvailable})
	step(6000, MachineEvent{What: MachineDrained})
	step(7000, MachineEvent{What: MachineUndrained})
	step(8000, MachineEvent{What: MachineUpdated, Capacity: roost.Resources{CPU: 8000}})
	step(9000, MachineEvent{What: MachineRemoved})
	s.AddTo(&c, 9000, 20_000)
	c.Held = 5000
	c.Balance()
	want := CapacityLine{Total: 36_000, Owner: 4000, Drained: 4000, Held: 5000, Idle: 23_000, TotalGPU: 7000}
	if c != want || !s.Desktop || s.Present {
		t.Errorf("got %+v, %+v, want %+v", c, s, want)
	}
}
