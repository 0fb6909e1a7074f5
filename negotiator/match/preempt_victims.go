package match

import (
	"cmp"
	"slices"

	"github.com/roost-batch/roost"
)

// canPreempt reports whether a request may preempt a claim of a machine. s is what is
// already vacating there, or nil.
func (p preemptionPlanner) canPreempt(w *requestState, m *Machine, c *MachineClaim, s *pendingVacates) bool {
	switch {
	case c.Vacating || c.PromisedToNext || c.Band.IsProd() || s.consumeFreed(c.ID) || !p.jobMayLoseTask(c):
		return false
	case c.Band < w.Band:
		return true
	case p.preemptsByPriority(w, c):
		return true
	}
	return c.Band == w.Band && w.Band == roost.BatchBand &&
		(p.overSoftLimit(m, c) || p.preferredByRank(w, m, c) || p.preemptsByFairShare(w, m, c) || p.mayMove(w, m, c))
}

// maxSearchNodes bounds the search for the best victims on one machine. The search begins
// with sets that are sufficient, so the bound can only miss a better set where there are
// many claims of many sizes.
const maxSearchNodes = 400

// victimSearch looks for the victims of one unit on one machine. Its memory is reused by
// the next search.
type victimSearch struct {
	*negotiationCycle
	request   *requestState
	machine   *Machine
	dryRun    dryRunMachine
	list      []victimCandidate // claims that may be evicted, the cheapest first
	sumSuffix []roost.Resources // what list[i:] hold together
	maxSuffix []roost.Resources // the largest amounts of one claim in list[i:]
	set       []int             // chosen indexes of list
	trial     []int             // indexes of list that trimSet goes through
	best      []int
	found     bool       // best is valid
	bestCost  victimCost // cost of best
	nodesLeft int
	needed    roost.Resources
	available roost.Resources // free CPU and memory, with what the set holds
}

// victimCandidate is a claim that may be evicted.
type victimCandidate struct {
	*MachineClaim
	claimIndex int32 // its index in the machine's list
	taskLost   int   // 1: its task cannot be run again; else 0
	cost       int64
	size       roost.Resources // what the machine's sums gain: memory, and CPU if it is of the request's class
}

// selectVictims finds the best victims on a machine; false if there are none.
func (p preemptionPlanner) selectVictims(w *requestState, at int) bool {
	s, m, vacates := &p.victimSearch, p.Machines[at], p.vacatesByMachine[at]
	s.negotiationCycle, s.request, s.machine, s.nodesLeft = p.negotiationCycle, w, m, maxSearchNodes
	s.needed, s.found, s.bestCost = w.Class.Resources, false, victimCost{}
	s.list, s.set, s.best = s.list[:0], s.set[:0], s.best[:0]
	for i := range m.Claims {
		if c := &m.Claims[i]; p.canPreempt(w, m, c, vacates) {
			s.list = append(s.list, s.addVictim(c, i))
		}
	}
	slices.SortFunc(s.list, func(a, b victimCandidate) int {
		return cmp.Or(cmp.Compare(a.taskLost, b.taskLost), cmp.Compare(a.Band, b.Band), cmp.Compare(a.cost, b.cost),
			cmp.Compare(b.ID, a.ID))
	})
	s.sumClaims(at)
	if len(s.list) == 0 || s.missing(s.available.Add(s.sumSuffix[0])) {
		return false
	}
	s.dryRun = p.newDryRunMachine(w.Class, at)
	if !s.greedy() {
		return false
	}
	s.searchFrom(0, victimCost{})
	return true
}

func (s *victimSearch) addVictim(c *MachineClaim, at int) victimCandidate {
	v := victimCandidate{MachineClaim: c, claimIndex: int32(at), cost: c.lostWork(s.now)}
	if c.losesTask() {
		v.taskLost = 1
	}
	if !c.Placement.Reclaimed {
		v.size.Memory = c.Resources.Memory
		if c.AppClass() == s.request.Class.AppClass {
			v.size.CPU = c.Resources.CPU
		}
	}
	return v
}

// sumClaims computes the sums of what the claims hold.
func (s *victimSearch) sumClaims(at int) {
	n := len(s.list)
	s.sumSuffix, s.maxSuffix = zeroedSlice(s.sumSuffix, n+1), zeroedSlice(s.maxSuffix, n+1)
	for k := n - 1; k >= 0; k-- {
		s.sumSuffix[k], s.maxSuffix[k] = s.sumSuffix[k+1].Add(s.list[k].size),
			maxResources(s.maxSuffix[k+1], s.list[k].size)
	}
	s.available = roost.Resources{}
	s.available.CPU, s.available.Memory = s.totalFree(s.request.Class.AppClass, at)
}

// appendChosen appends the best victims to a list, the lowest band first, then in the
// machine's order.
func (s *victimSearch) appendChosen(list []int32) []int32 {
	slices.SortFunc(s.best, func(i, j int) int {
		return cmp.Or(cmp.Compare(s.list[i].Band, s.list[j].Band),
			cmp.Compare(s.list[i].claimIndex, s.list[j].claimIndex))
	})
	for _, k := range s.best {
		list = append(list, s.list[k].claimIndex)
	}
	return list
}

func (s *victimSearch) choose(k int) {
	v := &s.list[k]
	s.set = append(s.set, k)
	s.available = s.available.Add(v.size)
	s.moveClaim(v, 1)
}

func (s *victimSearch) unchoose(k int) {
	v := &s.list[k]
	i := len(s.set) - 1
	for s.set[i] != k {
		i--
	}
	s.set = slices.Delete(s.set, i, i+1)
	s.available = s.available.Sub(v.size)
	s.moveClaim(v, -1)
}

// moveClaim adds what a claim holds to the dry run, or takes it back.
func (s *victimSearch) moveClaim(v *victimCandidate, by int) {
	if s.dryRun.unitsFree == nil && s.machine.units == nil {
		s.dryRun.free.Memory += roost.Bytes(by) * v.Resources.Memory
		s.dryRun.free.Disk += roost.Bytes(by) * v.Resources.Disk
		s.dryRun.free.IO = s.dryRun.free.IO.Add(v.Resources.IO.Times(by))
		if v.AppClass() == s.request.Class.AppClass {
			s.dryRun.free.CPU += roost.MilliCPU(by) * v.Resources.CPU
		}
		return
	}
	s.dryRun.moveClaim(v.placement(s.machine), by)
}

// costWith returns a cost plus that of one more claim.
func (s *victimSearch) costWith(price victimCost, v *victimCandidate) victimCost {
	return price.plus(v.MachineClaim, s.now)
}

// noteIfBetter stores the current set if it is better than the best.
func (s *victimSearch) noteIfBetter() {
	var price victimCost
	for _, k := range s.set {
		price = s.costWith(price, &s.list[k])
	}
	if !s.found || price.less(s.bestCost) {
		s.storeBest(price)
	}
}

func (s *victimSearch) storeBest(price victimCost) {
	s.best, s.bestCost, s.found = append(s.best[:0], s.set...), price, true
}

// greedy finds sets that are sufficient, and returns false if all claims together are
// not. One set takes the cheapest claims until there is room, less those that are not
// needed, the most expensive first. The other is the cheapest claim that makes room
// alone.
func (s *victimSearch) greedy() bool {
	for k := 0; k < len(s.list) && !s.dryRun.fitsNow(); k++ {
		s.choose(k)
	}
	if len(s.set) == 0 || !s.dryRun.fitsNow() {
		return false
	}
	s.trimSet()
	for len(s.set) > 0 {
		s.unchoose(s.set[len(s.set)-1])
	}
	for k := range s.list {
		s.choose(k)
		if s.dryRun.fitsNow() {
			s.noteIfBetter()
			s.unchoose(k)
			break
		}
		s.unchoose(k)
	}
	return true
}

// trimSet removes claims from the set that are not needed, the most expensive first, and
// stores the rest.
func (s *victimSearch) trimSet() {
	s.trial = append(s.trial[:0], s.set...)
	for _, k := range slices.Backward(s.trial) {
		if s.unchoose(k); !s.dryRun.fitsNow() {
			s.choose(k)
		}
	}
	s.noteIfBetter()
}

// searchFrom tries all extensions of the current set with claims from k on that may be
// better than the best.
func (s *victimSearch) searchFrom(k int, price victimCost) {
	if s.nodesLeft--; s.nodesLeft < 0 || !price.less(s.bestCost) {
		return
	}
	if s.dryRun.fitsNow() {
		if len(s.set) > 0 {
			s.storeBest(price)
		}
		return
	}
	if k == len(s.list) || s.missing(s.available.Add(s.sumSuffix[k])) || !s.canImprove(k, price) {
		return
	}
	s.choose(k)
	s.searchFrom(k+1, s.costWith(price, &s.list[k]))
	s.unchoose(k)
	s.searchFrom(k+1, price)
}

func (s *victimSearch) missing(have roost.Resources) bool {
	return s.needed.CPU > have.CPU || s.needed.Memory > have.Memory
}

// canImprove reports whether the current set, with the least that must be added, may be
// better than the best.
func (s *victimSearch) canImprove(k int, price victimCost) bool {
	n := max(1, stepsNeeded(s.needed.CPU-s.available.CPU, s.maxSuffix[k].CPU),
		stepsNeeded(s.needed.Memory-s.available.Memory, s.maxSuffix[k].Memory))
	v := &s.list[k]
	if v.Band == roost.FreeBand {
		price.freeTasks += n
	} else {
		price.batchTasks += n
	}
	price.notRerunnable += n * v.taskLost
	price.lostWork += int64(n) * v.cost
	return price.less(s.bestCost)
}
