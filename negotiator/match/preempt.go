package match

import (
	"fmt"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/gpu"
)

// A unit that finds no room may preempt claims (Borg §3.2, DESIGN §6) of strictly lower
// bands; monitoring and production count as one band, prod, and are never preempted. In
// batch, a unit may also preempt claims of submitters that use more than their share, if
// the administrator allows it, and claims that the machine ranks lower (machine_rank.go).
// The machine is chosen by the request's Rank, then by the cost of the victims: the
// fewest that cannot be run again, then the fewest of batch, then the fewest of free,
// then the least work lost. No claim is evicted on the machine unless it is needed.
//
// Each eviction serves one start: the grant names its victims, and no other request gets
// their resources. A victim is chosen once, and its task is not placed again in the same
// plan, so preemption does not cascade. A unit waits for room that is being made already,
// on machines that claims are leaving, before it makes more.

// PreemptionPolicy configures which claims a plan may preempt. The zero value lets higher
// bands preempt lower ones without a bound.
type PreemptionPolicy struct {
	HasBudgets bool // MaxInCycle and PerJob apply
	MaxInCycle int  // claims that may be evicted in this plan
	PerJob     int  // claims of one job that may be evicted, less EvictionsByJob
	// by job, as in MachineClaim.Job without the task's index: its recent evictions
	EvictionsByJob map[string]int
	FairShare      *FairSharePreemption // nil: no fair-share preemption in batch
	Moves          *MovePolicy          // nil: no task moves to make room for a larger one
	InBand         *InBandPreemption    // nil: priority is no reason to preempt

	OverSoftLimit map[ClaimKey]string // claims beyond a soft limit, with the text that names the limit
}

// victimCost is the cost of evicting some claims; earlier fields count more.
type victimCost struct {
	notRerunnable         int // tasks that cannot be run again
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

// losesTask reports whether the claim's task, if evicted, could neither be run again nor
// resume.
func (c *MachineClaim) losesTask() bool {
	return c.NotRerunnable && !c.Checkpointable && c.LastCheckpoint == 0
}

// checkpointedCost is the cost of a checkpoint and a restore elsewhere, in seconds of
// work.
const checkpointedCost = 10

// lostWork returns how many seconds of work are lost if the claim is evicted.
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

// preemptForUnit evicts claims for one unit of a request that found no room, and reports
// whether it did.
func (p preemptionPlanner) preemptForUnit(w *requestState) bool {
	h := &w.preemption
	if h.failed || w.Gang > 1 || w.Class.Exclusive || w.Band == roost.FreeBand && !p.usesPriority(w) {
		return false
	}
	if p.Preemption.InBand != nil {
		p.refreshSearch(w)
	}
	for w.unitsLeft-w.NoQueue-h.awaitingVictims > 0 {
		if p.useVacatingRoom(w) {
			h.awaitingVictims++
			continue
		}
		if p.preemptibleCount == 0 {
			h.sawAllMachines = true // no machine has a claim to preempt
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

// evictFor grants a unit of a request what its victims hold, and the rest from what is
// free.
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
	p.addToDomains(w, at, 1)
	p.backfill().markTimelineChanged(at)
	p.result.Grants = append(p.result.Grants, g)
	if w.unitsLeft == 0 {
		w.preemption.release()
	}
}

// evictionReason says to the victims' users why their claims are evicted.
func (p preemptionPlanner) evictionReason(w *requestState, m *Machine, victims []int32) string {
	if c := &m.Claims[victims[len(victims)-1]]; c.Band == w.Band {
		if p.preemptsByPriority(w, c) {
			return priorityReason(w, c)
		}
		if p.overSoftLimit(m, c) {
			return p.Preemption.OverSoftLimit[ClaimKey{m.Name, c.ID}]
		}
		if p.preferredByRank(w, m, c) {
			return p.rankReason(w, m, c)
		}
		if p.mayMove(w, m, c) && p.movesOnly(w, m, c) {
			return w.moveReason()
		}
		return fmt.Sprintf("fair share: its priority is %.4g, that of %s %.4g", w.submitter.priorityIn(w.Band),
			c.Submitter.Owner, p.fairShares().submitterState(c.Submitter).priorityIn(c.Band))
	}
	return fmt.Sprintf("%v comes before %v", w.Band, m.Claims[victims[0]].Band)
}
