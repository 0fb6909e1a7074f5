package accounting

import (
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/roost-batch/roost"
)

// sumRate charges one unit for a core for an hour.
func sumRate() Rate {
	return Rate{
		ID: 1, Rule: RateSum, CoreHour: 1_000_000, GiBHour: 100_000, GPUHour: 20_000_000, BandPermille: [4]int64{500,
			1000, 2000, 2000},
		ClassPermille: map[string]int64{"old": 250},
	}
}

func TestPrice(t *testing.T) {
	hour := int64(HourMillis)
	held := roost.Resources{CPU: 2000, Memory: 16 * roost.GiB, GPUs: 1}
	for name, c := range map[string]struct {
		change func(*Rate)
		held   roost.Resources
		band   roost.PriorityBand
		class  string
		time   int64
		want   MicroUnits
	}{
		"sum": {held: held, band: roost.BatchBand, time: hour,
			want: 2_000_000 + 1_600_000 + 20_000_000},
		"free band": {held: held, time: hour, want: 11_800_000},
		"old class": {held: held, band: roost.BatchBand, class: "old", time: hour, want: 5_900_000},
		"max": {change: func(r *Rate) { r.Rule = RateMax }, held: held,
			band: roost.BatchBand, time: hour, want: 20_000_000},
		"half a millisecond rounds up": {held: roost.Resources{CPU: 1800}, band: roost.BatchBand, time: 1, want: 1},
		"part of a GPU": {change: func(r *Rate) { r.GPUMem = 80 * roost.GiB },
			held: roost.Resources{GPUs: 1, GPUMemory: 20 * roost.GiB}, band: roost.BatchBand, time: hour,
			want: 5_000_000},
		"dominant memory": {change: func(r *Rate) {
			r.Rule, r.Core, r.Mem, r.GPUs = RateDominant, 64_000,
				256*roost.GiB, 4
		},
			held: roost.Resources{CPU: 1000, Memory: 128 * roost.GiB}, band: roost.BatchBand, time: hour,
			want: 32_000_000},
		"dominant GPU": {change: func(r *Rate) {
			r.Rule, r.Core, r.Mem, r.GPUs = RateDominant, 64_000, 256*roost.GiB,
				4
		},
			held: held, band: roost.BatchBand, time: hour, want: 16_000_000},
	} {
		r := sumRate()
		if c.change != nil {
			c.change(&r)
		}
		if got := r.price(c.held, c.band, c.class, c.time); got != c.want {
			t.Errorf("%s: got %d, want %d", name, got, c.want)
		}
	}
}

func TestRateAt(t *testing.T) {
	table := NewRateTable([]Rate{
		{ID: 4, Group: "physics", From: 500}, {ID: 1, From: 0}, {ID: 2, From: 1000}, {ID: 3, Group: "physics",
			From: 100},
		{ID: 5, Group: "physics.atlas", From: 2000},
	})
	for _, c := range []struct {
		group string
		at    Millis
		want  int64
	}{
		{"", 0, 1}, {"", 999, 1}, {"", 1000, 2}, {"physics", 99, 1}, {"physics", 100, 3}, {"physics.cms", 3000, 4},
		{"physics.atlas", 2000, 5}, {"physics.atlas.run3", 2000, 5}, {"physicsx", 3000, 2},
	} {
		if r := table.At(c.group, c.at); r == nil || r.ID != c.want {
			t.Errorf("%q at %d: got %+v, want %d", c.group, c.at, r, c.want)
		}
	}
	if r := table.At("", -1); r != nil {
		t.Errorf("before all rates: got %+v", r)
	}
}

// TestCharges holds that the months and rates share out the charged time exactly. What
// the pool ended costs nothing.
func TestCharges(t *testing.T) {
	first, later := sumRate(), sumRate()
	later.ID, later.From = 2, NewMonth(2026, 10).Start()+20*DayMillis
	table := NewRateTable([]Rate{first, later})
	job := JobEntry{Band: roost.BatchBand}
	for seed := range uint64(3000) {
		a := randomAttempt(rand.New(rand.NewPCG(seed, 3)))
		var time, parts int64
		for _, c := range table.Charges(&a, &job) {
			time += c.Time
			parts++
			if c.Time < 0 || c.Amount < 0 {
				t.Fatalf("seed %d: %+v", seed, c)
			}
		}
		want := int64(0)
		if a.Ended != 0 && a.Cause.IsCharged() {
			for _, p := range a.timeParts(a.Ended) {
				want += p.wall - p.suspended
			}
		}
		if time != want {
			t.Fatalf("seed %d: %+v\ncharged %d ms in %d parts, want %d", seed, a, time, parts, want)
		}
	}
}

func TestChargesOverMonths(t *testing.T) {
	november := NewMonth(2026, 11)
	a := AttemptEntry{
		Started: november.Start() - 3*HourMillis, Ended: november.Start() + HourMillis, Wall: 4 * int64(HourMillis),
		Useful: 2 * int64(HourMillis), Held: roost.Resources{CPU: 1000}, Cause: EndedExit,
	}
	rate := sumRate()
	got := NewRateTable([]Rate{rate}).Charges(&a, &JobEntry{Band: roost.BatchBand})
	if len(got) != 2 || got[0].Month != november-1 || got[0].Amount != 3_000_000 || got[1].Amount != 1_000_000 {
		t.Errorf("got %+v", got)
	}
	rate.UsefulOnly = true
	got = NewRateTable([]Rate{rate}).Charges(&a, &JobEntry{Band: roost.BatchBand})
	if len(got) != 2 || got[0].Amount != 1_500_000 || got[1].Amount != 500_000 {
		t.Errorf("useful only: got %+v", got)
	}
	a.Cause = EndedPreemption
	if got := NewRateTable([]Rate{rate}).Charges(&a, &JobEntry{}); len(got) != 0 {
		t.Errorf("preempted: got %+v", got)
	}
}

func TestRoundedStatements(t *testing.T) {
	for seed := range uint64(2000) {
		r := rand.New(rand.NewPCG(seed, 4))
		var s Statement
		for range r.IntN(20) {
			s.Lines = append(s.Lines, StatementLine{Amount: MicroUnits(r.Int64N(50_000))})
		}
		for range r.IntN(3) {
			s.Adjustments = append(s.Adjustments, Adjustment{Amount: MicroUnits(r.Int64N(100_000) - 50_000)})
		}
		s.Close(MicroUnits(r.Int64N(200_000)))
		var exact MicroUnits
		rounded := s.Rounded(10_000)
		sum := -rounded.Grant
		for i, a := range rounded.Lines {
			sum += a
			exact += s.Lines[i].Amount
			if d := a - s.Lines[i].Amount; a%10_000 != 0 || d <= -10_000 || d >= 10_000 {
				t.Fatalf("seed %d: %d became %d", seed, s.Lines[i].Amount, a)
			}
		}
		for i, a := range rounded.Adjustments {
			sum += a
			exact += s.Adjustments[i].Amount
		}
		if exact-s.Grant != s.Total || sum != rounded.Total || rounded.Total%10_000 != 0 {
			t.Fatalf("seed %d: sums %d and %d, totals %d and %d", seed, exact-s.Grant, sum, s.Total, rounded.Total)
		}
		if d := rounded.Total - s.Total; d > 5000 || d < -5000 {
			t.Fatalf("seed %d: total %d became %d", seed, s.Total, rounded.Total)
		}
	}
}

func TestRateCheck(t *testing.T) {
	for name, change := range map[string]func(*Rate){
		"rule": func(r *Rate) { r.Rule = 0 }, "price": func(r *Rate) { r.CoreHour = -1 },
		"machine": func(r *Rate) { r.Rule = RateDominant }, "factor": func(r *Rate) { r.ClassPermille["old"] = -1 },
		"great": func(r *Rate) { r.MonthlyGrant = maxPrice + 1 },
	} {
		r := sumRate()
		if err := r.Check(); err != nil {
			t.Fatal(err)
		}
		if change(&r); !errors.Is(r.Check(), roost.Invalid) {
			t.Errorf("%s: got %v", name, r.Check())
		}
	}
}

// TestLedgerDifference holds what a difference is: more than 0.5 % and a core-minute.
// What is charged to somebody else is one.
func TestLedgerDifference(t *testing.T) {
	const minute = 60_000
	ann, bob := Submitter{Owner: "ann"}, Submitter{Owner: "bob", Group: "physics"}
	for _, c := range []struct {
		ann, bob [2]int64 // ledger and held, in core-minutes
		warns    bool
	}{
		{[2]int64{1000, 1000}, [2]int64{}, false},
		{[2]int64{1000, 1004}, [2]int64{}, false},
		{[2]int64{1000, 994}, [2]int64{}, true},
		{[2]int64{1000, 990}, [2]int64{1000, 1010}, true},
		{[2]int64{0, 5}, [2]int64{}, true},
		{[2]int64{0, 1}, [2]int64{}, false},
		{[2]int64{}, [2]int64{}, false},
	} {
		d := SumReconciliations([]Reconciliation{
			{Submitter: ann, Ledger: c.ann[0] * minute / 2, Held: c.ann[1] * minute},
			{Submitter: ann, Ledger: c.ann[0] * minute / 2},
			{Submitter: bob, Ledger: c.bob[0] * minute, Held: c.bob[1] * minute},
		})
		if d.Warns() != c.warns || d.Warns() != (d.Ratio() > 0.005) {
			t.Errorf("%+v: got %d permille, ratio %v, %+v", c, d.Permille(), d.Ratio(), d)
		}
	}
}

// TestLedgerIncrease holds that a submitter's use that was reset is seen to fall.
func TestLedgerIncrease(t *testing.T) {
	ann, bob, eve := Submitter{Owner: "ann"}, Submitter{Owner: "bob"}, Submitter{Owner: "eve"}
	from := LedgerSample{Used: []SubmitterUse{{bob, 70}, {ann, 10}}}
	to := LedgerSample{Used: []SubmitterUse{{eve, 5}, {bob, 69}, {ann, 25}}}
	if got, want := LedgerIncrease(&from, &to), map[Submitter]int64{ann: 15, bob: -1, eve: 5}; !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// TestHeldSpans holds that an attempt holds its resources from its assignment on, through
// suspensions, and until now if it runs.
func TestHeldSpans(t *testing.T) {
	one, two := roost.Resources{CPU: 1000}, roost.Resources{CPU: 2000}
	for _, c := range []struct {
		attempt AttemptEntry
		want    []HeldSpan
	}{
		{AttemptEntry{Assigned: 100, Held: one}, []HeldSpan{{100, 900, one}}},
		{AttemptEntry{Assigned: 1000, Held: one}, nil},
		{AttemptEntry{Assigned: 100, Started: 150, Held: one}, []HeldSpan{{100, 900, one}}},
		{AttemptEntry{Assigned: 100, Started: 150, Ended: 500, Wall: 350, Held: one}, []HeldSpan{{100, 500, one}}},
		{AttemptEntry{Assigned: 100, Ended: 500, Held: one, Cause: EndedLaunch}, []HeldSpan{{100, 500, one}}},
		{AttemptEntry{Assigned: 100, Started: 150, Ended: 500, Wall: 350, Held: one, Segments: []Segment{
			{From: 150, Wall: 150, Held: one}, {From: 300, Wall: 200, Held: two, Suspended: true}}},
			[]HeldSpan{{100, 300, one}, {300, 500, two}}},
	} {
		if got := c.attempt.HeldSpans(900); !slices.Equal(got, c.want) {
			t.Errorf("%+v: got %v, want %v", c.attempt, got, c.want)
		}
	}
}
