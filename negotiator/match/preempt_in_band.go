package match

import (
	"fmt"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/mutant"
	"github.com/roost-batch/roost/negotiator/fairshare"
)

// Priority orders the jobs of one submitter inside a band. If the site allows it, it is
// also a reason to preempt: a unit displaces running tasks of its own submitter and band
// with a lower priority (Borg §2.5: a MapReduce master above its workers, but nothing of
// prod). Nobody gains by a priority against others, so schedds are believed.
//
// Cascades and thrashing are bounded. The difference has a minimum, so a chain of
// displaced tasks that displace others is short. A task runs for a minimum time first.
// Each displacement begins a new attempt, and a task in a late attempt is left alone. The
// budgets of disruptions apply as well.

// InBandPreemption configures preemption by priority inside batch and free.
type InBandPreemption struct {
	Step        int           // least difference of the priorities, at least 1
	MinRuntime  time.Duration // least run time of a task before it is displaced
	MaxAttempts int           // a task in a later attempt is not displaced
}

// submitterInBand is a submitter in one band.
type submitterInBand struct {
	submitter fairshare.Submitter
	band      roost.PriorityBand
}

// preemptsByPriority reports whether a request may preempt a claim of its own submitter
// and band that has a lower priority.
func (p preemptionPlanner) preemptsByPriority(w *requestState, c *MachineClaim) bool {
	return p.isLowerOwn(w, c) && p.priorityUnitsLeft(w) > 0 && p.whyNotDisplaced(c) == displaceable
}

// isLowerOwn reports whether a claim is of a request's own submitter and band, with a
// priority that is low enough.
func (p preemptionPlanner) isLowerOwn(w *requestState, c *MachineClaim) bool {
	f := p.Preemption.InBand
	return f != nil && c.Band == w.Band && !c.Band.IsProd() && c.Submitter == w.Submitter && c.TaskStarted != 0 &&
		int(w.Priority)-int(c.Priority) >= f.step()
}

// step is the least difference of priorities that counts.
func (f *InBandPreemption) step() int {
	if mutant.Active(mutant.PriorityStepIgnored) {
		return 0
	}
	return max(f.Step, 1)
}

// displaceRefusal is why a claim with a low enough priority is left alone.
type displaceRefusal int

const (
	displaceable   displaceRefusal = iota
	justBegun                      // it has run for less than MinRuntime
	oftenDisplaced                 // it is in a later attempt than MaxAttempts
	wouldBeLost                    // it could neither be run again nor resume
	jobSpent                       // its job has lost as many tasks as it may
	displaceRefusals
)

func (p preemptionPlanner) whyNotDisplaced(c *MachineClaim) displaceRefusal {
	f := p.Preemption.InBand
	switch {
	case c.losesTask():
		return wouldBeLost
	case c.Attempt > int64(f.MaxAttempts):
		return oftenDisplaced
	case p.now-c.TaskStarted < int64(f.MinRuntime/time.Second):
		return justBegun
	}
	return displaceable
}

// priorityUnitsLeft returns how many more units of a request have its priority: the
// others are of lower ones. What was placed, or waits for room that is being made, counts
// as those with the priority, because its schedd runs them first.
func (p preemptionPlanner) priorityUnitsLeft(w *requestState) int {
	if mutant.Active(mutant.PriorityUnitsIgnored) {
		return w.Wanted
	}
	return w.PriorityUnits - (w.Wanted - w.unitsLeft) - w.preemption.awaitingVictims
}

// usesPriority reports whether priority may let a request preempt something.
func (p preemptionPlanner) usesPriority(w *requestState) bool {
	f := p.Preemption.InBand
	if f == nil || w.Band.IsProd() || w.Gang > 1 || w.partOf != nil || p.priorityUnitsLeft(w) <= 0 {
		return false
	}
	lowest, found := p.lowestPriorities()[submitterInBand{w.Submitter, w.Band}]
	return found && int(w.Priority)-int(lowest) >= f.step()
}

// lowestPriorities returns the lowest priority of what runs of each submitter in each
// band below prod. It is computed once in a cycle.
func (p preemptionPlanner) lowestPriorities() map[submitterInBand]int32 {
	if p.lowestPriority != nil {
		return p.lowestPriority
	}
	p.lowestPriority = map[submitterInBand]int32{}
	for _, m := range p.Machines {
		for i := range m.Claims {
			c := &m.Claims[i]
			if c.Band.IsProd() || c.TaskStarted == 0 || c.Vacating {
				continue
			}
			who := submitterInBand{c.Submitter, c.Band}
			if lowest, found := p.lowestPriority[who]; !found || c.Priority < lowest {
				p.lowestPriority[who] = c.Priority
			}
		}
	}
	return p.lowestPriority
}

// refreshSearch begins a search anew when the units with the higher priority have their
// places. What it found may be displaced for those alone.
func (p preemptionPlanner) refreshSearch(w *requestState) {
	h, uses := &w.preemption, p.usesPriority(w)
	if h.started && h.byPriority && !uses {
		h.release()
	}
	h.byPriority = uses
}

// priorityReason says to a user why a task is displaced by one of the same submitter.
func priorityReason(w *requestState, c *MachineClaim) string {
	return fmt.Sprintf("its priority is %d, and that of this task %d", w.Priority, c.Priority)
}

// noPriorityReason says why tasks with a lower priority are not displaced. It is empty if
// there are none, or the site does not displace by priority.
func (p preemptionPlanner) noPriorityReason(w *requestState) string {
	if !p.usesPriority(w) {
		return ""
	}
	var refused [displaceRefusals]int
	for at, m := range p.Machines {
		vacates := p.vacatesByMachine[at]
		for i := range m.Claims {
			c := &m.Claims[i]
			if !p.isLowerOwn(w, c) || c.Vacating || vacates != nil && vacates.chosen[c.ID] {
				continue
			}
			why := p.whyNotDisplaced(c)
			if why == displaceable && !p.jobMayLoseTask(c) {
				why = jobSpent
			}
			refused[why]++
		}
	}
	f := p.Preemption.InBand
	text := "; of its submitter's tasks with a lower priority, "
	switch {
	case refused[displaceable] > 0:
		return text + fmt.Sprintf("%d may be displaced, and none where that makes room", refused[displaceable])
	case refused[justBegun] > 0:
		return text + fmt.Sprintf("%d may be displaced once they have run for %v", refused[justBegun], f.MinRuntime)
	case refused[oftenDisplaced] > 0:
		return text + fmt.Sprintf("%d are left alone, because they have been started more than %d times",
			refused[oftenDisplaced], f.MaxAttempts)
	case refused[jobSpent] > 0:
		return text + fmt.Sprintf("%d are of jobs of which no more may be displaced in this hour", refused[jobSpent])
	case refused[wouldBeLost] > 0:
		return text + fmt.Sprintf("%d could not be run again", refused[wouldBeLost])
	}
	return ""
}
