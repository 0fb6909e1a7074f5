package selfplace

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/negotiator/fairshare"
	"github.com/roost-batch/roost/negotiator/match"
)

const (
	scheddCount     = 16
	machineCount    = 10_000
	coresPerMachine = 16
)

// conflictSimulation simulates a cell with a leader and proposing schedds in steps of 1
// ms. Machines report their changes to the leader at once, and to the schedds after a
// delay.
type conflictSimulation struct {
	tb         testing.TB
	rng        *rand.Rand
	now        time.Time
	delay      time.Duration
	free       []int
	sequence   []uint64
	leader     *match.Matcher
	snapshot   match.Snapshot
	copies     []*CellCopy
	delayedAds []delayedAd // by arrival time
	ids        uint64

	proposed, conflicts, placed int
}

// delayedAd is a machine's ad on its way to the schedds.
type delayedAd struct {
	machine  int
	due      time.Time
	sequence uint64
	free     int
}

func newConflictSimulation(tb testing.TB, stale time.Duration, parts bool, busy float64) *conflictSimulation {
	r := &conflictSimulation{
		tb: tb, rng: rand.New(rand.NewPCG(1, 2)), now: time.Unix(1000, 0), delay: stale,
		free: make([]int, machineCount), sequence: make([]uint64, machineCount),
		leader: match.NewMatcher(),
	}
	r.snapshot.Machines = make([]*match.Machine, machineCount)
	for i := range scheddCount {
		c := New(fmt.Sprintf("schedd%02d", i))
		if c.SetSynced(); parts {
			c.SetPolicy(i, scheddCount)
		}
		r.copies = append(r.copies, c)
	}
	for i := range machineCount {
		for range coresPerMachine {
			if r.rng.Float64() >= busy {
				r.free[i]++
			}
		}
		r.machineChanged(i)
		r.deliverAds(r.delayedAds[len(r.delayedAds)-1])
	}
	r.delayedAds = nil
	return r
}

func (r *conflictSimulation) machineAd(i, free int) *classad.Ad {
	ad, err := classad.Parse(fmt.Sprintf(
		`[Name = "node%05d"; Arch = "X86_64"; TotalCpus = %d; Cpus = %d; TotalMemory = 65536; Memory = 65536]`,
		i, coresPerMachine, free,
	))
	if err != nil {
		r.tb.Fatal(err)
	}
	return ad
}

func (r *conflictSimulation) machineChanged(i int) {
	r.sequence[i]++
	r.snapshot.Machines[i] = match.NewMachine(fmt.Sprintf("node%05d", i), 1, r.sequence[i], r.machineAd(i, r.free[i]))
	r.delayedAds = append(r.delayedAds, delayedAd{i, r.now.Add(r.delay), r.sequence[i], r.free[i]})
}

func (r *conflictSimulation) deliverAds(l delayedAd) {
	for _, c := range r.copies {
		c.SetMachine(fmt.Sprintf("node%05d", l.machine), 1, l.sequence, r.machineAd(l.machine, l.free))
	}
}

// step simulates one millisecond. A number of tasks end, and each schedd submits a number
// of tasks with a given chance.
func (r *conflictSimulation) step(ends, tasks int, chance float64) {
	r.now = r.now.Add(time.Millisecond)
	for len(r.delayedAds) > 0 && !r.delayedAds[0].due.After(r.now) {
		r.deliverAds(r.delayedAds[0])
		r.delayedAds = r.delayedAds[1:]
	}
	for range ends {
		if i := r.rng.IntN(machineCount); r.free[i] < coresPerMachine {
			r.free[i]++
			r.machineChanged(i)
		}
	}
	for i := range scheddCount {
		if r.rng.Float64() < chance {
			r.snapshot.Requests = append(r.snapshot.Requests, r.submit(i, tasks))
		}
	}
	r.runCycle()
}

func (r *conflictSimulation) submit(schedd, tasks int) *match.Request {
	r.ids++
	u := RequestUpdate{
		ID: r.ids, Owner: fmt.Sprint("user", schedd), Band: roost.BatchBand, Wanted: tasks, Oldest: int64(r.ids),
		Ad:        `[Requirements = TARGET.Arch == "X86_64"]`,
		Resources: roost.Resources{CPU: 1000, Memory: roost.GiB},
	}
	who := fairshare.Submitter{Owner: u.Owner}
	class, err := match.NewClass(u.Ad, who, u.Band, u.Resources)
	if err != nil {
		r.tb.Fatal(err)
	}
	q := &match.Request{Key: match.RequestKey{Schedd: r.copies[schedd].schedd, ID: u.ID}, Submitter: who, Band: u.Band,
		Oldest: u.Oldest, Wanted: tasks, Class: class}
	q.SelfPlacements = r.copies[schedd].Propose(r.now, []RequestUpdate{u})[0]
	return q
}

// runCycle runs one cycle of the leader. All grants become claims at once, and each
// schedd gets its own.
func (r *conflictSimulation) runCycle() {
	for _, q := range r.snapshot.Requests {
		for _, one := range q.SelfPlacements {
			r.proposed += one.Units
		}
	}
	r.snapshot.Now = r.now
	plan := r.leader.Plan(&r.snapshot)
	for _, one := range plan.Conflicts {
		r.conflicts += one.Units
	}
	for _, g := range plan.Grants {
		var i, schedd int
		fmt.Sscanf(g.Machine.Name, "node%d", &i)
		fmt.Sscanf(g.Request.Key.Schedd, "schedd%d", &schedd)
		if r.free[i] -= g.Units; r.free[i] < 0 {
			r.tb.Fatalf("%s gives what it does not have", g.Machine.Name)
		}
		r.machineChanged(i)
		g.Request.Wanted -= g.Units
		r.placed += g.Units
		for range g.Units {
			r.ids++
			r.copies[schedd].Granted(r.now, LeaderGrant{ID: r.ids, Request: g.Request.Key.ID, Machine: g.Machine.Name,
				Resources: g.Request.Class.Resources})
			r.copies[schedd].Answered(r.now, r.ids, true, false, r.sequence[i])
		}
	}
	var left []*match.Request
	for _, q := range r.snapshot.Requests {
		if q.SelfPlacements = nil; q.Wanted > 0 {
			left = append(left, q)
		}
	}
	r.snapshot.Requests = left
}

// TestConflictsAreRare checks that schedds with outdated copies seldom conflict while
// resources are free. All tasks must be placed nevertheless.
func TestConflictsAreRare(t *testing.T) {
	if testing.Short() {
		t.Skip("ten thousand machines")
	}
	r := newConflictSimulation(t, 10*time.Millisecond, true, 0.8)
	for range 50 {
		r.step(2, 50, 0.05)
	}
	if len(r.snapshot.Requests) > 0 || r.proposed == 0 || r.conflicts*100 > r.proposed {
		t.Errorf("%d units proposed, %d in conflict, %d placed, %d requests wait", r.proposed, r.conflicts, r.placed,
			len(r.snapshot.Requests))
	}
}

// BenchmarkConflicts counts how many of a thousand proposals conflict. Sixteen schedds
// place on ten thousand machines, with different loads, and the ads reach the schedds
// with different delays. Each schedd submits fifty tasks 2.6 times a second, and about as
// many end.
func BenchmarkConflicts(b *testing.B) {
	for _, busy := range []float64{0.8, 0.99} {
		for _, parts := range []bool{true, false} {
			for _, stale := range []time.Duration{time.Millisecond, 10 * time.Millisecond, 100 * time.Millisecond,
				time.Second} {
				b.Run(fmt.Sprintf("busy=%v/parts=%v/stale=%v", busy, parts, stale), func(b *testing.B) {
					for b.Loop() {
						r := newConflictSimulation(b, stale, parts, busy)
						for range 1000 {
							r.step(2, 50, 0.0026)
						}
						b.ReportMetric(float64(r.conflicts)*1000/float64(r.proposed), "conflicts/1000")
						b.ReportMetric(float64(r.proposed), "proposed")
					}
				})
			}
		}
	}
}

// BenchmarkLeader measures the leader's plan for a new request of each of sixteen
// schedds. It varies the number of tasks, with proposals and without.
func BenchmarkLeader(b *testing.B) {
	for _, tasks := range []int{50, 1000} {
		for _, proposing := range []bool{true, false} {
			b.Run(fmt.Sprintf("tasks=%d/proposals=%v", tasks, proposing), func(b *testing.B) {
				r := newConflictSimulation(b, 0, true, 0.8)
				r.leader.Plan(&r.snapshot)
				for b.Loop() {
					b.StopTimer()
					r.snapshot.Requests = nil
					for i := range scheddCount {
						q := r.submit(i, tasks)
						if !proposing {
							q.SelfPlacements = nil
						}
						r.snapshot.Requests = append(r.snapshot.Requests, q)
						delete(r.copies[i].proposed, q.Key.ID)
					}
					b.StartTimer()
					plan := r.leader.Plan(&r.snapshot)
					b.StopTimer()
					units := 0
					for _, g := range plan.Grants {
						units += g.Units
					}
					b.ReportMetric(float64(units), "placed/op")
					b.ReportMetric(float64(len(plan.Conflicts)), "conflicts/op")
					b.StartTimer()
				}
			})
		}
	}
}
