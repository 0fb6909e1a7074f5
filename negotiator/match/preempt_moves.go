package match

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/gpu"
	"github.com/roost-batch/roost/negotiator/fairshare"
)

// A pool can have room for a large task in all and on no machine. If the site allows it,
// batch tasks that go on from a checkpoint leave a machine for such a task when there is
// room for them elsewhere now. So nothing waits longer for it than a checkpoint and a
// restore take, and the budgets of disruptions bound how often.
//
// The matcher does not know the requirements of a running task. A machine is taken to
// suit it if it has the same Arch and OpSys. A task with GPUs is not moved.

// MovePolicy configures whether running tasks move to make room for larger ones.
type MovePolicy struct {
	// they do not move, but the explanation says which would have to
	OnlyAdvise bool
	MinWait    time.Duration // least time for which the larger task has waited
	MinRuntime time.Duration // least run time of a task before it moves
}

// movableFraction is the part of the larger task that the tasks that move for it may be
// together.
const movableFraction = 0.5

// mayMove reports whether a claim of batch may move to make room for a unit of batch.
func (p preemptionPlanner) mayMove(w *requestState, m *Machine, c *MachineClaim) bool {
	v := p.Preemption.Moves
	if v == nil || v.OnlyAdvise && !p.advisingMoves || !c.Checkpointable || c.Resources.GPUs > 0 || w.Now ||
		c.TaskStarted == 0 {
		return false
	}
	return w.WaitingSince > 0 && p.now-w.WaitingSince >= int64(v.MinWait/time.Second) &&
		p.now-c.TaskStarted >= int64(v.MinRuntime/time.Second) &&
		fairshare.CoresWorth(c.Resources, p.poolTotal) <= movableFraction*w.unitWeight
}

// movesFit reports whether the victims that move all have room elsewhere now. They are
// also small enough together, beside the unit.
func (p preemptionPlanner) movesFit(w *requestState, at int, victims []int32) bool {
	if p.Preemption.Moves == nil {
		return true
	}
	m := p.Machines[at]
	var moves []*MachineClaim
	var worth float64
	for _, i := range victims {
		if c := &m.Claims[i]; p.movesOnly(w, m, c) {
			moves, worth = append(moves, c), worth+fairshare.CoresWorth(c.Resources, p.poolTotal)
		}
	}
	if len(moves) == 0 {
		return true
	}
	if worth > movableFraction*w.unitWeight {
		return false
	}
	slices.SortFunc(moves, func(a, b *MachineClaim) int {
		return cmp.Or(cmp.Compare(b.Resources.CPU, a.Resources.CPU), cmp.Compare(a.ID, b.ID))
	})
	taken := map[int]roost.Resources{}
	for _, c := range moves {
		to := p.roomForMove(at, c, taken)
		if to < 0 {
			return false
		}
		taken[to] = taken[to].Add(c.Resources)
	}
	return true
}

// roomForMove returns the fullest other machine with room for a claim, beside what is
// taken there. It is below 0 if there is none.
func (p preemptionPlanner) roomForMove(from int, c *MachineClaim, taken map[int]roost.Resources) (to int) {
	to = -1
	for _, other := range p.withFreeCPU {
		at := int(other)
		m := p.Machines[at]
		if at == from || p.drained[at] || m.ownerActive || m.paused || p.timelines[at] != nil ||
			!p.sameSystem(from, at) {
			continue
		}
		free := p.free[at]
		if c.AppClass() == gpu.StreamClass {
			free.CPU = p.streamFree[at]
		}
		if c.Resources.FitsIn(free.Sub(taken[at])) && (to < 0 || free.CPU < p.free[to].CPU) {
			to = at
		}
	}
	return to
}

// sameSystem reports whether two machines have the same architecture and system.
func (p preemptionPlanner) sameSystem(a, b int) bool {
	for _, name := range []string{roost.AttrArch, roost.AttrOpSys} {
		x, _ := p.Machines[a].Ad.Str(name)
		if y, _ := p.Machines[b].Ad.Str(name); x != y {
			return false
		}
	}
	return true
}

// movesOnly reports whether a claim may be preempted only because it can move.
func (p preemptionPlanner) movesOnly(w *requestState, m *Machine, c *MachineClaim) bool {
	return c.Band == w.Band && !p.preemptsByPriority(w, c) && !p.overSoftLimit(m, c) &&
		!p.preferredByRank(w, m, c) && !p.preemptsByFairShare(w, m, c)
}

// moveReason says to a user why a task moves.
func (w *requestState) moveReason() string {
	return fmt.Sprintf("it moves to another machine to make room for a task of %s that asks for %v and finds it on "+
		"no machine", w.Submitter.Owner, w.Class.Resources)
}

// maxAdvisedMachines bounds how many machines are looked at for one advice.
const maxAdvisedMachines = 64

// adviseMoves returns which tasks would have to move so that a request could start. It is
// empty if none would help or the site has not asked for advice.
func (p preemptionPlanner) adviseMoves(w *requestState) string {
	v := p.Preemption.Moves
	if v == nil || !v.OnlyAdvise || w.Gang > 1 || w.Band != roost.BatchBand || w.Class.Exclusive || w.waitReason != "" {
		return ""
	}
	p.advisingMoves = true
	defer func() { p.advisingMoves = false }()
	for at, tried := 0, 0; at < len(p.Machines) && tried < maxAdvisedMachines; at++ {
		m := p.Machines[at]
		if !p.hasPreemptible[at] || w.Avoid[m.Name] != "" || !p.unreserved(w, at) {
			continue
		}
		if _, matches := p.compiledQuery(w.Class).Match(m.row, &p.env); !matches {
			continue
		}
		tried++
		if !p.selectVictims(w, at) {
			continue
		}
		victims := p.victimSearch.appendChosen(nil)
		if !p.withinBudget(m, victims) || !p.movesFit(w, at, victims) {
			continue
		}
		return fmt.Sprintf("it would start on %s if %s there moved elsewhere, which an administrator can allow "+
			"(roost cell set defragment on)", m.Name, pluralOf(len(victims), "task", "tasks"))
	}
	return ""
}
