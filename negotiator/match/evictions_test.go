package match

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/negotiator/share"
)

// fullCell makes a cell of plain machines on which nothing is free, and several requests of production, some of one shape.
func fullCell(t *testing.T, rng *rand.Rand) *Snapshot {
	s := &Snapshot{Now: time.Unix(100_000, 0), Standing: map[share.Submitter]Standing{}}
	for i := range 2 + rng.IntN(4) {
		var claims []string
		var total roost.Resources
		for id := range 1 + rng.IntN(6) {
			cores := 1 + rng.IntN(4)
			total = total.Add(roost.Resources{CPU: roost.MilliCPU(cores) * 1000, Memory: roost.GiB})
			claims = append(claims, fmt.Sprintf(`[Id = %d; Owner = "u"; Band = "%v"; Cpus = %d; Memory = 1024; Since = %d; Job = "%d[%d].h"]`,
				id+1, roost.Band(rng.IntN(5)*3/4), cores, 100_000-rng.IntN(20), rng.IntN(3), id))
		}
		m := NewMachine(fmt.Sprintf("m%d", i), 1, 1, machineAd(t, fmt.Sprintf("m%d", i), total, roost.Resources{}, "Claims = {"+strings.Join(claims, ",")+"}"))
		if m.Unclear != nil {
			t.Fatal(m.Unclear)
		}
		s.Machines = append(s.Machines, m)
	}
	if rng.IntN(3) == 0 {
		s.Preemption = Preemption{Bounded: true, Cell: rng.IntN(12), PerJob: 1 + rng.IntN(4), Evicted: map[string]int{"1.h": 1}}
	}
	who := share.Submitter{Owner: "boss"}
	for i := range 1 + rng.IntN(4) {
		class, err := NewClass("[]", who, roost.Production, roost.Resources{CPU: roost.MilliCPU(1+rng.IntN(6)) * 1000, Memory: roost.MiB})
		if err != nil {
			t.Fatal(err)
		}
		s.Requests = append(s.Requests, &Request{Key: Key{"s", uint64(i)}, Submitter: who, Band: roost.Production, Oldest: int64(i), Wanted: 1 + rng.IntN(4), Class: class})
	}
	return s
}

// eviction is how a naive matcher sees a cell in which nothing is free: who is left, and what those leave who go that is nobody's yet.
type eviction struct {
	*Snapshot
	gone   map[*Claim]bool
	left   map[*Machine]roost.MilliCPU
	stages []*Machine
	count  int
	byJob  map[string]int
}

func (e *eviction) spares(c *Claim) bool {
	b := &e.Preemption
	return b.Bounded && e.byJob[c.JobName()]+b.Evicted[c.JobName()] >= b.PerJob
}

// awaits reports whether a unit waits for room that is being made, and takes that.
func (e *eviction) awaits(r *Request) bool {
	for _, m := range e.stages {
		if e.left[m] >= r.Class.Resources.CPU {
			e.left[m] -= r.Class.Resources.CPU
			return true
		}
	}
	return false
}

// best is the least that it costs to make room for a unit, all sets of claims of all machines tried; sure is false where what the budgets bear of a set as a
// whole decided, of which the matcher may despair early.
func (e *eviction) best(r *Request) (least cost, found, sure bool) {
	sure = true
	for _, m := range e.Machines {
		for set := 1; set < 1<<len(m.Claims); set++ {
			var price cost
			var cpu roost.MilliCPU
			ok, n, jobs := true, 0, map[string]int{}
			for i := range m.Claims {
				if c := &m.Claims[i]; set&(1<<i) != 0 {
					ok = ok && !e.gone[c] && !c.Band.Prod() && !e.spares(c)
					price, cpu, n = price.with(c, e.Now.Unix()), cpu+c.Resources.CPU, n+1
					jobs[c.JobName()]++
				}
			}
			if !ok || cpu < r.Class.Resources.CPU {
				continue
			}
			if b := &e.Preemption; b.Bounded {
				for job, n := range jobs {
					ok = ok && e.byJob[job]+b.Evicted[job]+n <= b.PerJob
				}
				if ok = ok && e.count+n <= b.Cell; !ok {
					sure = false
				}
			}
			if ok && (!found || price.less(least)) {
				least, found = price, true
			}
		}
	}
	return least, found, sure
}

// follow does what a grant says, and returns what that costs.
func (e *eviction) follow(t *testing.T, g *Grant) (price cost) {
	cpu := -g.Request.Class.Resources.CPU
	for _, id := range g.Victims {
		for i := range g.Machine.Claims {
			c := &g.Machine.Claims[i]
			if c.ID != id {
				continue
			}
			if e.gone[c] || e.spares(c) {
				t.Fatalf("claim %d of %s goes again, or its job has lost enough", id, g.Machine.Name)
			}
			e.gone[c], cpu, price = true, cpu+c.Resources.CPU, price.with(c, e.Now.Unix())
			e.count++
			e.byJob[c.JobName()]++
		}
	}
	if e.Preemption.Bounded && e.count > e.Preemption.Cell {
		t.Fatalf("%d go, and %d may", e.count, e.Preemption.Cell)
	}
	e.left[g.Machine] += cpu
	e.stages = append(e.stages, g.Machine)
	return price
}

// TestEvictionsInTurn holds each eviction of a plan against the best of all choices that there are when its turn has come.
func TestEvictionsInTurn(t *testing.T) {
	evictions, bounded := 0, 0
	for seed := range uint64(1500) {
		s := fullCell(t, rand.New(rand.NewPCG(seed, 9)))
		plan := NewMatcher().Plan(s)
		checkPlan(t, s, plan)
		e := &eviction{Snapshot: s, gone: map[*Claim]bool{}, left: map[*Machine]roost.MilliCPU{}, byJob: map[string]int{}}
		grants := plan.Grants
		for _, r := range s.Requests {
			for range r.Wanted {
				if e.awaits(r) {
					continue
				}
				least, found, sure := e.best(r)
				if len(grants) == 0 || grants[0].Request != r {
					if found && sure {
						t.Fatalf("seed %d: nothing more for %v, and %+v would do\n%s", seed, r.Key, least, show(plan.Grants))
					}
					break
				}
				price := e.follow(t, &grants[0])
				if grants = grants[1:]; sure && price != least {
					t.Fatalf("seed %d: %v costs %+v, and the least is %+v\n%s", seed, r.Key, price, least, show(plan.Grants))
				}
				if evictions++; s.Preemption.Bounded {
					bounded++
				}
			}
		}
		if len(grants) > 0 {
			t.Fatalf("seed %d: too much is granted\n%s", seed, show(plan.Grants))
		}
	}
	if evictions < 2000 || bounded < 200 {
		t.Errorf("%d evictions were looked at, %d of them with budgets", evictions, bounded)
	}
}
