package match

import (
	"fmt"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/gpu"
)

// A unit that finds no room may displace claims (Borg §3.2, DESIGN §6): only of strictly
// lower bands, of which prod is one and is not displaced; and in batch, where the
// administrator lets it, of submitters that have had more than their share, and where a
// machine would rather run the other (rank.go). The machine is chosen by the request's
// Rank, then by whom it hurts: fewest that are not run again, then fewest of batch, then
// fewest of free, then the least work lost. On the machine no claim is evicted that need
// not be.
//
// Each eviction serves one start: the grant names its victims, and what they hold is
// nobody else's. A victim is chosen once, and is not placed anew in the plan that
// displaces it, so nothing cascades. Room that is being made already, on machines that
// claims are leaving, is waited for before more is made.

// PreemptionPolicy is whom a plan may displace. The zero value lets higher bands displace
// lower ones, without a bound.
type PreemptionPolicy struct {
	HasBudgets bool // Cell and PerJob count
	MaxInCycle int  // so many claims may be evicted in this plan
	PerJob     int  // and so many of one job, less EvictionsByJob
	// by job, as in MachineClaim.Job without the task's index: how many of it were
	// evicted lately
	EvictionsByJob map[string]int
	FairShare      *FairSharePreemption // nil: batch does not displace batch for it

	OverSoftLimit map[ClaimKey]string // claims that are beyond a soft limit, and which one
}

// victimCost is what an eviction costs; what comes first counts most.
type victimCost struct {
	notRerunnable         int // tasks that are not run again
	batchTasks, freeTasks int
	lostWork              int64 // seconds of work
}

func (a victimCost) less(b victimCost) bool {
	if a.notRerunnable != b.notRerunnable {
		return a.notRerunnable < b.notRerunnable
	}
	if a.batchTasks != b.batchTasks {
		return a.batchTasks < b.batchTasks
	}
	if a.freeTasks != b.freeTasks {
		return a.freeTasks < b.freeTasks
	}
	return a.lostWork < b.lostWork
}

func (a victimCost) plus(c *MachineClaim, now int64) victimCost {
	if c.losesTask() {
		a.notRerunnable++
	}
	if c.Band == roost.FreeBand {
		a.freeTasks++
	} else {
		a.batchTasks++
	}
	a.lostWork += c.lostWork(now)
	return a
}

// losesTask reports whether the task of a claim would not be run again, nor go on, if it
// was evicted.
func (c *MachineClaim) losesTask() bool {
	return c.NotRerunnable && !c.Checkpointable && c.LastCheckpoint == 0
}

// checkpointedCost is what it costs a task to be saved and to be restored elsewhere, in
// seconds of work.
const checkpointedCost = 10

// lostWork is how many seconds of work are lost if the claim is evicted.
func (c *MachineClaim) lostWork(now int64) int64 {
	if c.TaskStarted == 0 {
		return 0
	}
	lost := max(now-max(c.TaskStarted, c.LastCheckpoint), 0)
	if c.Checkpointable {
		return min(lost, checkpointedCost)
	}
	return lost
}

// preemptForUnit displaces claims for one unit of a want that found no room, and reports
// whether it did.
func (p preemptionPlanner) preemptForUnit(w *requestState) bool {
	h := &w.preemption
	if h.failed || w.Gang > 1 || w.Band == roost.FreeBand || w.Class.Exclusive {
		return false
	}
	for w.unitsLeft-w.NoQueue-h.awaitingVictims > 0 {
		if p.useVacatingRoom(w) {
			h.awaitingVictims++
			continue
		}
		if p.preemptibleCount == 0 {
			h.sawAllMachines = true // there is nobody, whoever looks where
		} else if !p.cycleBudgetUsed() {
			if at, victims := p.selectPreemption(w); victims != nil {
				p.evictFor(w, at, victims)
				return true
			}
		}
		p.storeNoVictims(w)
		return false
	}
	return false
}

// evictFor grants a unit of a want what its victims hold, and of what is free what that
// leaves wanting.
func (p preemptionPlanner) evictFor(w *requestState, at int, victims []int32) {
	m, s := p.Machines[at], p.mutableVacates(at)
	held := make([]gpu.Placement, 0, len(victims))
	g := Grant{Request: w.Request, Machine: m, Units: 1, Gang: w.gang, EvictionReason: p.evictionReason(w, m, victims)}
	p.undo.recordEviction(s, m, victims)
	for _, i := range victims {
		c := &m.Claims[i]
		s.chosen[c.ID] = true
		held = append(held, c.placement(m))
		g.Victims = append(g.Victims, c.ID)
		p.countEviction(c)
	}
	now, later := gpu.CoverPlacement(p.placementAfterVacates(w.Class, at, held), held)
	s.freeing, s.assigned = append(s.freeing, held...), append(s.assigned, later)
	if s.freesMoreThanAssigned() {
		p.vacatingMachines = append(p.vacatingMachines, at)
	}
	p.poolFree = p.poolFree.Sub(p.takeFreeNow(at, now))
	p.countPlaced(w, 1)
	w.unitsLeft--
	if w.domains != nil {
		w.domains.units[p.failureDomain(w, at)]++
	}
	p.backfill().markTimelineChanged(at)
	p.result.Grants = append(p.result.Grants, g)
	if w.unitsLeft == 0 {
		w.preemption.release()
	}
}

// evictionReason says to those who have to go why they have to.
func (p preemptionPlanner) evictionReason(w *requestState, m *Machine, victims []int32) string {
	if c := &m.Claims[victims[len(victims)-1]]; c.Band == w.Band {
		if p.overSoftLimit(m, c) {
			return p.Preemption.OverSoftLimit[ClaimKey{m.Name, c.ID}]
		}
		if p.preferredByRank(w, m, c) {
			return p.rankReason(w, m, c)
		}
		return fmt.Sprintf("fair share: its priority is %.4g, that of %s %.4g", w.submitter.effectivePriority(),
			c.Submitter.Owner, p.fairShares().submitterState(c.Submitter).effectivePriority())
	}
	return fmt.Sprintf("%v comes before %v", w.Band, m.Claims[victims[0]].Band)
}
