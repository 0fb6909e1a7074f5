package update

import (
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"
)

// randomFact is a task of which nothing is certain.
func randomFact(r *rand.Rand, now time.Time) TaskFact {
	at := func() int64 { return now.Add(time.Duration(r.IntN(1200)-1000) * time.Second).UnixNano() }
	f := TaskFact{Revision: uint32(1 + r.IntN(3)), Condition: Condition(r.IntN(int(Lost) + 1)), Since: at(),
		Planned: r.IntN(4) == 0, WasReady: r.IntN(2) == 0, Absent: r.IntN(9) == 0,
		Untouched: r.IntN(5) == 0}
	if f.Condition != Down {
		f.Began = at()
	}
	if r.IntN(9) == 0 {
		f.Exits = 1
	}
	if f.Resizable = f.hasAttempt() && r.IntN(4) == 0; f.Resizable && r.IntN(2) == 0 {
		f.ResizeAt = at()
	} else if r.IntN(9) == 0 {
		f.ResizeAsked = at()
	}
	return f
}

// TestTally checks that a tally comes to what a look at each task does. Tasks change in
// any way, time passes and is sometimes set back, and updates go through all their
// states.
func TestTally(t *testing.T) {
	for seed := range uint64(100) {
		r := rand.New(rand.NewPCG(seed, 3))
		m := &model{t: t, now: time.Unix(1_800_000_000, 0), count: 1 + r.IntN(4*tallyBlock)}
		p := randomPolicy(r, m)
		facts := make([]TaskFact, m.count+r.IntN(1+p.surge(m.count)))
		tally := NewTally(func(i int) TaskFact { return facts[i] })
		change := func(i int) { facts[i] = randomFact(r, m.now); tally.Mark(i) }
		for i := range facts {
			change(i)
		}
		var u Update
		for range 150 {
			for range r.IntN(4) {
				change(r.IntN(len(facts)))
			}
			m.now = m.now.Add(time.Duration(r.IntN(60)) * time.Second)
			switch r.IntN(30) {
			case 0:
				m.now = m.now.Add(-time.Hour)
			case 1:
				u = Begin(u, max(u.Target(), 1), uint32(2+r.IntN(2)), &p, m.now.UnixNano())
				u.Alike = []uint32{1}[:r.IntN(2)]
			case 2:
				p = randomPolicy(r, m)
				tally.MarkAll()
			case 3:
				if next, err := u.After(Command(1+r.IntN(int(Pulse))), false, m.now.UnixNano()); err == nil {
					u = next
				}
			}
			want := naiveDecide(u, &p, m.count, slices.Clone(facts), m.now)
			got := tally.Decide(u, &p, m.count, len(facts), m.now)
			again := want.Again
			if want.Again = got.Again; !reflect.DeepEqual(got, want) ||
				u.State.IsActive() && again != 0 && (got.Again == 0 || got.Again > again) {
				t.Fatalf("seed %d: of %d tasks, policy %+v\n got %+v\nwant %+v, at %d", seed, m.count, p, got,
					want, again)
			}
			if u = got.Update; r.IntN(2) == 0 {
				for _, change := range got.Replace {
					facts[change.Index].Revision, facts[change.Index].Condition = u.Target(), Leaving
					tally.Mark(change.Index)
				}
			}
		}
	}
}

// TestTallyLooks checks that a change of one task makes few others be looked at, however
// many there are.
func TestTallyLooks(t *testing.T) {
	looks := map[int]int{}
	for _, count := range []int{1000, 100_000} {
		p := DefaultPolicy()
		now := time.Unix(1_800_000_000, 0)
		facts := slices.Repeat([]TaskFact{{Revision: 1, Condition: Ready, Since: 1, Began: 1, WasReady: true}}, count)
		tally := NewTally(func(i int) TaskFact { return facts[i] })
		u := Begin(Update{}, 1, 2, &p, now.UnixNano())
		tally.Decide(u, &p, count, count, now)
		before := tally.looks
		for i := range 100 {
			now = now.Add(time.Minute)
			facts[i].Revision, facts[i].Since = 2, now.UnixNano()
			tally.Mark(i)
			plan := tally.Decide(u, &p, count, count, now)
			u = plan.Update
			if now = now.Add(p.Settling); i > 0 {
				continue
			}
			if got := tally.Decide(u, &p, count, count, now); len(got.Replace) != 1 || got.Replace[0].Index != 1 {
				t.Fatalf("%d tasks: %+v", count, got)
			}
		}
		looks[count] = tally.looks - before
	}
	if looks[100_000] > 2*looks[1000] {
		t.Errorf("changes of 100 tasks made so many be looked at, by the number that is there: %v", looks)
	}
}
