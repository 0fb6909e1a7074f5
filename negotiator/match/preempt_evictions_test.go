package match

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/negotiator/fairshare"
)

// fullCell makes a cell of plain machines without free resources, and several production
// requests, some of the same shape.
func fullCell(t *testing.T, rng *rand.Rand) *Snapshot {
	s := &Snapshot{Now: time.Unix(100_000, 0), Shares: map[fairshare.Submitter]SubmitterShare{}}
	for i := range 2 + rng.IntN(4) {
		var claims []string
		var total roost.Resources
		for id := range 1 + rng.IntN(6) {
			cores := 1 + rng.IntN(4)
			total = total.Add(roost.Resources{CPU: roost.MilliCPU(cores) * 1000, Memory: roost.GiB})
			claims = append(claims,
				fmt.Sprintf(
					`[Id = %d; Owner = "u"; Band = "%v"; Cpus = %d; Memory = 1024; Since = %d; Once = %v; Job = "%d[%d].h"]`,
					id+1, roost.PriorityBand(rng.IntN(5)*3/4), cores, 100_000-rng.IntN(20), rng.IntN(3) == 0,
					rng.IntN(3), id,
				))
		}
		m := NewMachine(fmt.Sprintf("m%d", i), 1, 1,
			machineAd(t, fmt.Sprintf("m%d", i), total, roost.Resources{}, "Claims = {"+strings.Join(claims, ",")+"}"))
		if m.ClaimsUnknown != nil {
			t.Fatal(m.ClaimsUnknown)
		}
		s.Machines = append(s.Machines, m)
	}
	if rng.IntN(3) == 0 {
		s.Preemption = PreemptionPolicy{HasBudgets: true, MaxInCycle: rng.IntN(12), PerJob: 1 + rng.IntN(4),
			EvictionsByJob: map[string]int{"1.h": 1}}
	}
	who := fairshare.Submitter{Owner: "boss"}
	for i := range 1 + rng.IntN(4) {
		class, err := NewClass("[]", who, roost.ProductionBand,
			roost.Resources{CPU: roost.MilliCPU(1+rng.IntN(6)) * 1000, Memory: roost.MiB})
		if err != nil {
			t.Fatal(err)
		}
		s.Requests = append(s.Requests, &Request{Key: RequestKey{"s", uint64(i)}, Submitter: who,
			Band: roost.ProductionBand, Oldest: int64(i), Wanted: 1 + rng.IntN(4), Class: class})
	}
	return s
}

// evictionOracle is the naive matcher's view of a cell in which nothing is free. It
// counts the claims that are left, and what evicted claims free that is not granted yet.
type evictionOracle struct {
	*Snapshot
	evicted          map[*MachineClaim]bool
	freedCPU         map[*Machine]roost.MilliCPU
	vacatingMachines []*Machine
	count            int
	byJob            map[string]int
}

func (e *evictionOracle) exceedsBudget(c *MachineClaim) bool {
	b := &e.Preemption
	return b.HasBudgets && e.byJob[c.JobName()]+b.EvictionsByJob[c.JobName()] >= b.PerJob
}

// usesVacatingRoom reports whether a unit can wait for room that is being made, and takes
// that room.
func (e *evictionOracle) usesVacatingRoom(r *Request) bool {
	for _, m := range e.vacatingMachines {
		if e.freedCPU[m] >= r.Class.Resources.CPU {
			e.freedCPU[m] -= r.Class.Resources.CPU
			return true
		}
	}
	return false
}

// cheapestEviction tries all sets of claims on all machines and returns the least cost of
// room for a unit. sure is false if a budget excluded a whole set, because the matcher
// may then give up early.
func (e *evictionOracle) cheapestEviction(r *Request) (least victimCost, found, sure bool) {
	sure = true
	for _, m := range e.Machines {
		for set := 1; set < 1<<len(m.Claims); set++ {
			var price victimCost
			var cpu roost.MilliCPU
			ok, n, jobs := true, 0, map[string]int{}
			for i := range m.Claims {
				if c := &m.Claims[i]; set&(1<<i) != 0 {
					ok = ok && !e.evicted[c] && !c.Band.IsProd() && !e.exceedsBudget(c)
					price, cpu, n = price.plus(c, e.Now.Unix()), cpu+c.Resources.CPU, n+1
					jobs[c.JobName()]++
				}
			}
			if !ok || cpu < r.Class.Resources.CPU {
				continue
			}
			if b := &e.Preemption; b.HasBudgets {
				for job, n := range jobs {
					ok = ok && e.byJob[job]+b.EvictionsByJob[job]+n <= b.PerJob
				}
				if ok = ok && e.count+n <= b.MaxInCycle; !ok {
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

// applyGrant applies a grant and returns its cost.
func (e *evictionOracle) applyGrant(t *testing.T, g *Grant) (price victimCost) {
	cpu := -g.Request.Class.Resources.CPU
	for _, id := range g.Victims {
		for i := range g.Machine.Claims {
			c := &g.Machine.Claims[i]
			if c.ID != id {
				continue
			}
			if e.evicted[c] || e.exceedsBudget(c) {
				t.Fatalf("claim %d of %s goes again, or its job has lost enough", id, g.Machine.Name)
			}
			e.evicted[c], cpu, price = true, cpu+c.Resources.CPU, price.plus(c, e.Now.Unix())
			e.count++
			e.byJob[c.JobName()]++
		}
	}
	if e.Preemption.HasBudgets && e.count > e.Preemption.MaxInCycle {
		t.Fatalf("%d go, and %d may", e.count, e.Preemption.MaxInCycle)
	}
	e.freedCPU[g.Machine] += cpu
	e.vacatingMachines = append(e.vacatingMachines, g.Machine)
	return price
}

// TestEvictionsInTurn compares each eviction of a plan with the best of all choices at
// its turn.
func TestEvictionsInTurn(t *testing.T) {
	evictions, bounded := 0, 0
	for seed := range uint64(1500) {
		s := fullCell(t, rand.New(rand.NewPCG(seed, 9)))
		plan := NewMatcher().Plan(s)
		checkPlan(t, s, plan)
		e := &evictionOracle{Snapshot: s, evicted: map[*MachineClaim]bool{}, freedCPU: map[*Machine]roost.MilliCPU{},
			byJob: map[string]int{}}
		grants := plan.Grants
		for _, r := range s.Requests {
			for range r.Wanted {
				if e.usesVacatingRoom(r) {
					continue
				}
				least, found, sure := e.cheapestEviction(r)
				if len(grants) == 0 || grants[0].Request != r {
					if found && sure {
						t.Fatalf("seed %d: nothing more for %v, and %+v would do\n%s", seed, r.Key, least,
							grantsText(plan.Grants))
					}
					break
				}
				price := e.applyGrant(t, &grants[0])
				if grants = grants[1:]; sure && price != least {
					t.Fatalf("seed %d: %v costs %+v, and the least is %+v\n%s", seed, r.Key, price, least,
						grantsText(plan.Grants))
				}
				if evictions++; s.Preemption.HasBudgets {
					bounded++
				}
			}
		}
		if len(grants) > 0 {
			t.Fatalf("seed %d: too much is granted\n%s", seed, grantsText(plan.Grants))
		}
	}
	if evictions < 2000 || bounded < 200 {
		t.Errorf("%d evictions were looked at, %d of them with budgets", evictions, bounded)
	}
}

// gangCell makes a cell whose machines are full, or nearly full, of claims of one core.
// It adds a production gang whose units want one to three cores each.
func gangCell(t *testing.T, rng *rand.Rand) *Snapshot {
	s := &Snapshot{Now: time.Unix(100_000, 0), Shares: map[fairshare.Submitter]SubmitterShare{}}
	for i := range 1 + rng.IntN(4) {
		var claims []string
		n, free := rng.IntN(8), rng.IntN(3)
		for id := range n {
			claims = append(claims,
				fmt.Sprintf(`[Id = %d; Owner = "u"; Band = "%v"; Cpus = 1; Memory = 1; Since = %d; Job = "%d[%d].h"]`,
					id+1, roost.PriorityBand(rng.IntN(5)*3/4), 100_000-rng.IntN(20), rng.IntN(3), id))
		}
		total := roost.Resources{CPU: roost.MilliCPU(n+free) * 1000, Memory: roost.GiB}
		left := roost.Resources{CPU: roost.MilliCPU(free) * 1000, Memory: roost.GiB - roost.Bytes(n)*roost.MiB}
		m := NewMachine(fmt.Sprintf("m%d", i), 1, 1,
			machineAd(t, fmt.Sprintf("m%d", i), total, left, "Claims = {"+strings.Join(claims, ",")+"}"))
		if m.ClaimsUnknown != nil {
			t.Fatal(m.ClaimsUnknown)
		}
		s.Machines = append(s.Machines, m)
	}
	if rng.IntN(3) == 0 {
		s.Preemption = PreemptionPolicy{HasBudgets: true, MaxInCycle: rng.IntN(9), PerJob: 100}
	}
	who, gang := fairshare.Submitter{Owner: "boss"}, 2+rng.IntN(4)
	class, err := NewClass("[]", who, roost.ProductionBand,
		roost.Resources{CPU: roost.MilliCPU(1+rng.IntN(3)) * 1000, Memory: roost.MiB})
	if err != nil {
		t.Fatal(err)
	}
	s.Requests = []*Request{{Key: RequestKey{"s", 1}, Submitter: who, Band: roost.ProductionBand, Wanted: gang,
		Gang: gang, Class: class}}
	return s
}

// cheapestGangEviction tries all ways to place units on the machines and returns the
// least cost; each claim has one core.
func cheapestGangEviction(s *Snapshot, machines []*Machine, units int) (least victimCost, ok bool) {
	if len(machines) == 0 {
		return victimCost{}, units == 0
	}
	m, cores := machines[0], s.Requests[0].Class.Resources.CPU
	var preemptibleClaims []*MachineClaim
	for i := range m.Claims {
		if !m.Claims[i].Band.IsProd() {
			preemptibleClaims = append(preemptibleClaims, &m.Claims[i])
		}
	}
	slices.SortFunc(preemptibleClaims, func(a, b *MachineClaim) int {
		return cmp.Or(cmp.Compare(a.Band, b.Band), cmp.Compare(a.lostWork(s.Now.Unix()), b.lostWork(s.Now.Unix())))
	})
	for n := range units + 1 {
		missing := max(0, int(roost.MilliCPU(n)*cores-m.Free.CPU+999)/1000)
		if missing > len(preemptibleClaims) {
			break
		}
		rest, fits := cheapestGangEviction(s, machines[1:], units-n)
		for _, c := range preemptibleClaims[:missing] {
			rest = rest.plus(c, s.Now.Unix())
		}
		if fits && (!ok || rest.less(least)) {
			least, ok = rest, true
		}
	}
	return least, ok
}

// TestGangEvictionIsLeast compares the victims of a gang with the best of all choices:
// enough for the whole gang, or none.
func TestGangEvictionIsLeast(t *testing.T) {
	whole, none := 0, 0
	for seed := range uint64(3000) {
		s := gangCell(t, rand.New(rand.NewPCG(seed, 11)))
		plan := NewMatcher().Plan(s)
		checkPlan(t, s, plan)
		least, ok := cheapestGangEviction(s, s.Machines, s.Requests[0].Gang)
		units, victims := 0, 0
		for _, g := range plan.Grants {
			units, victims = units+g.Units, victims+len(g.Victims)
		}
		if b := &s.Preemption; b.HasBudgets && least.batchTasks+least.freeTasks > b.MaxInCycle {
			if units != 0 && units != s.Requests[0].Gang || victims > b.MaxInCycle {
				t.Fatalf("seed %d: %d units for %d victims, and %d may go\n%s", seed, units, victims, b.MaxInCycle,
					grantsText(plan.Grants))
			}
			continue // more expensive sets may have fewer victims
		}
		if !ok {
			if none++; len(plan.Grants) > 0 {
				t.Fatalf("seed %d: %s, and there is no room for the whole gang", seed, grantsText(plan.Grants))
			}
			continue
		}
		var price victimCost
		for i := range plan.Grants {
			g := &plan.Grants[i]
			for _, id := range g.Victims {
				price = price.plus(&g.Machine.Claims[id-1], s.Now.Unix())
			}
		}
		if units != s.Requests[0].Gang || price != least {
			t.Fatalf("seed %d: %d units at %+v, and the least is %+v\n%s", seed, units, price, least,
				grantsText(plan.Grants))
		}
		if price != (victimCost{}) {
			whole++
		}
	}
	if whole < 300 || none < 300 {
		t.Errorf("%d gangs that displaced and %d that could not were looked at", whole, none)
	}
}

// TestFailedGangLeavesNoTrace checks that a gang that cannot preempt enough changes
// nothing for the requests behind it.
func TestFailedGangLeavesNoTrace(t *testing.T) {
	failed := 0
	for seed := range uint64(2000) {
		rng := rand.New(rand.NewPCG(seed, 13))
		s := randomTenants(t, rng)
		if rng.IntN(2) == 0 {
			s = fullCell(t, rng)
		}
		want := grantsText(NewMatcher().Plan(newMatcherCopy(s)).Grants)
		first := *s.Requests[0]
		class := *first.Class
		first.Key.ID, first.Oldest, first.Gang, first.Class = 99, -1, 2+rng.IntN(5), &class
		first.Wanted = first.Gang
		s.Requests = append(s.Requests, &first)
		s = newMatcherCopy(s)
		plan := NewMatcher().Plan(s)
		checkPlan(t, s, plan)
		if slices.ContainsFunc(plan.Grants, func(g Grant) bool { return g.Gang != 0 }) {
			continue
		}
		failed++
		if got := grantsText(plan.Grants); got != want {
			t.Fatalf("seed %d: with a gang that fails:\n%swithout it:\n%s", seed, got, want)
		}
	}
	if failed < 300 {
		t.Errorf("%d gangs failed", failed)
	}
}
