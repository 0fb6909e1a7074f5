package match

import (
	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/gpu"
)

// placementCandidate is a machine on which a unit of some request could be placed.
type placementCandidate struct {
	rank, score float64
	softScore   int64 // from the soft constraints of the request; lower is better
	machine     int32 // the machine's number in the snapshot
	version     int32 // the machine's version when the candidate was computed
}

// machineVersion records that something was placed on a machine, and the machine's
// version after that.
type machineVersion struct{ machine, version int32 }

// bestMachine returns the best machine for a unit of w at this point of the cycle.
func (p *negotiationCycle) bestMachine(w *requestState) (at int, ok bool) {
	if len(p.withFreeCPU) == 1 && w.Class.Resources.CPU > 0 && w.Gang <= 1 {
		// no other machine has anything free, as after a small change in a full cell
		only := int(p.withFreeCPU[0])
		_, ok = p.newCandidate(w, only)
		return only, ok
	}
	if !w.heapMade {
		p.makeHeap(w)
	}
	p.rescoreChanged(w)
	h := &w.heap
	for {
		if len(h.list) == 0 {
			if !h.truncated {
				return 0, false
			}
			p.refillCandidates(w)
			continue
		}
		top := &h.list[0]
		if top.version != p.versions[top.machine] {
			h.pop()
			continue
		}
		if w.domains != nil { // its domain may hold more units since, never fewer
			if far := p.softConstraintScore(w, int(top.machine)); far != top.softScore {
				c := *top
				c.softScore = far
				h.replaceBest(c)
				continue
			}
		}
		return int(top.machine), true
	}
}

// makeHeap fills the heap of a request that has none.
func (p *negotiationCycle) makeHeap(w *requestState) {
	w.heapMade, w.seenPlaced = true, len(p.placedLog)
	w.heap = candidateHeap{list: p.scratch.newCandidateList()}
	// a gang sums the room of all candidates, and worst fit needs all of them
	if w.Gang <= 1 && !p.Score.spreadsUnits() {
		w.heap.minLength = max(p.minCandidates, w.unitsLeft)
	}
	if !p.fillChanged(w) {
		p.fillCandidates(w)
	}
	w.heap.heapify()
}

// refillCandidates looks again at all machines that w has asked, when its retained
// candidates are used up.
func (p *negotiationCycle) refillCandidates(w *requestState) {
	w.seenPlaced = len(p.placedLog)
	w.heap.list, w.heap.truncated = w.heap.list[:0], false
	if w.Class.Resources.CPU == 0 {
		for at := range p.Machines {
			p.addCandidate(w, at)
		}
	} else {
		for _, at := range p.withFreeCPU {
			p.addCandidate(w, int(at))
		}
	}
	w.heap.heapify()
}

// addCandidate adds a machine to the candidates of w if it has room.
func (p *negotiationCycle) addCandidate(w *requestState, at int) {
	if c, ok := p.newCandidate(w, at); ok {
		w.heap.addUnordered(c)
	}
}

// releaseMemory gives back the memory of a request that needs no more machines. If it
// does need one later, its heap is filled again.
func (p *negotiationCycle) releaseMemory(w *requestState) {
	if w.heap.list != nil {
		p.scratch.candidateLists = append(p.scratch.candidateLists, w.heap.list[:0])
	}
	if w.ranks != nil {
		p.scratch.rankLists = append(p.scratch.rankLists, w.ranks)
	}
	w.heapMade, w.heap, w.ranks = false, candidateHeap{}, nil
}

// fillCandidates matches machines with w and collects its candidates. A request that
// wants CPU skips machines without any.
func (p *negotiationCycle) fillCandidates(w *requestState) {
	q := p.compiledQuery(w.Class)
	anywhere := w.Class.Resources.CPU == 0
	if anywhere {
		w.ranks = p.scratch.newRanks(len(p.Machines))
	} else {
		w.ranks = p.scratch.newRanks(len(p.withFreeCPU))
	}
	if !anywhere && len(p.withFreeCPU) < len(p.Machines)/sparseFreeLimit {
		for _, at := range p.withFreeCPU {
			if rank, ok := q.Match(p.Machines[at].row, &p.env); ok {
				p.addMatch(w, at, rank)
			}
		}
		return
	}
	stream := w.Class.AppClass == gpu.StreamClass
	p.scratch.preferHits = q.Select(p.scratch.preferHits[:0], &p.env)
	for _, hit := range p.scratch.preferHits {
		if at := p.numberByRow[hit.Row]; anywhere || p.free[at].CPU > 0 || stream && p.openIndex[at] >= 0 {
			p.addMatch(w, at, hit.Rank)
		}
	}
}

// sparseFreeLimit decides between two ways to match. If fewer than one in this many
// machines have free CPU, they are asked one by one, else all at once. Asking one machine
// alone costs about as much as asking this many together.
const sparseFreeLimit = 64

// addMatch records that a machine matches, and adds it to the candidates of w if it has
// room.
func (p *negotiationCycle) addMatch(w *requestState, at int32, rank float64) {
	rank = rankOrZero(rank)
	w.ranks[p.rankSlot(w, at)] = rank
	// else it cannot be retained, whatever its score
	if h := &w.heap; !h.truncated || rank >= h.dropThreshold.rank {
		p.addCandidate(w, int(at))
	}
}

// rankOfMachine returns the Rank of a machine for w. It is noMatch if w has not asked the
// machine or does not match it.
func (p *negotiationCycle) rankOfMachine(w *requestState, at int32) float64 {
	if w.ranksSparse != nil {
		if rank, ok := w.ranksSparse[at]; ok {
			return rank
		}
		return noMatch
	}
	if w.ranks == nil {
		rank, ok := p.compiledQuery(w.Class).Match(p.Machines[at].row, &p.env)
		if !ok {
			return noMatch
		}
		return rankOrZero(rank)
	}
	if i := p.rankSlot(w, at); i >= 0 { // else the machine had no room when the cycle began
		return w.ranks[i]
	}
	return noMatch
}

// rankSlot returns the index of a machine's rank in w.ranks.
func (p *negotiationCycle) rankSlot(w *requestState, at int32) int32 {
	if w.Class.Resources.CPU == 0 {
		return at
	}
	return p.openIndex[at]
}

// rescoreChanged looks again at the machines on which something was placed since w's heap
// was last used.
func (p *negotiationCycle) rescoreChanged(w *requestState) {
	for ; w.seenPlaced < len(p.placedLog); w.seenPlaced++ {
		at := int(p.placedLog[w.seenPlaced].machine)
		if p.placedLog[w.seenPlaced].version != p.versions[at] {
			continue // the log has a newer entry for it
		}
		if c, ok := p.newCandidate(w, at); ok {
			if len(w.heap.list) > 0 && w.heap.list[0].machine == c.machine {
				w.heap.replaceBest(c)
			} else {
				w.heap.push(c)
			}
		}
	}
}

// newCandidate returns a machine as candidate for a unit of w. ok is false if it does not
// match, has no room or must not be tried.
func (p *negotiationCycle) newCandidate(w *requestState, at int) (c placementCandidate, ok bool) {
	if p.drained[at] || p.gangs().hasGangUnit(w, at) || !w.gangRequest().placementSet.hasMachine(at) {
		return c, false
	}
	rank := p.rankOfMachine(w, int32(at))
	if rank != rank {
		return c, false
	}
	if len(w.Avoid) > 0 {
		if _, avoid := w.Avoid[p.Machines[at].Name]; avoid {
			w.excludedOtherwise = true
			return c, false
		}
	}
	badness, ok := p.fitAndScore(w.Class, at)
	if !ok {
		return c, false
	}
	if !p.selfPlacements().notReserved(w, at) {
		w.excludedOtherwise = true
		return c, false
	}
	return placementCandidate{rank: rank, softScore: p.softConstraintScore(w, at),
		score: badness + p.siteScores().mixScore(w, at), machine: int32(at), version: p.versions[at]}, true
}

// balanceScore scores a unit on a machine without GPUs; lower is better. It is a sum of
// fractions of the machine:
//
//   - how much more would be stranded, which is the difference between the largest and
//     the smallest free fraction of CPU, memory and GPUs. Cores without free memory are
//     of no use (Borg §3.2 weighs the same in its hybrid of best and worst fit);
//   - what would be free on the average, so that half-used machines fill up and empty
//     machines stay empty for large requests.
//
// Machines with GPUs are scored by [fragmentScore].
func balanceScore(unit, free, total roost.Resources) float64 {
	before, _ := freeSpread(free, total)
	after, mean := freeSpread(free.Sub(unit), total)
	return after - before + mean
}

// freeSpread returns the difference between the largest and the smallest free fraction,
// and the mean of the fractions.
func freeSpread(free, total roost.Resources) (stranded, mean float64) {
	return freeSpread3([3][2]int64{{int64(free.CPU), int64(total.CPU)}, {int64(free.Memory), int64(total.Memory)},
		{int64(free.GPUs), int64(total.GPUs)}})
}

func freeSpread3(of [3][2]int64) (stranded, mean float64) {
	least, most, sum, n := 1.0, 0.0, 0.0, 0.0
	for _, d := range of {
		if d[1] > 0 {
			f := float64(d[0]) / float64(d[1])
			least, most, sum, n = min(least, f), max(most, f), sum+f, n+1
		}
	}
	if n == 0 {
		return 0, 0
	}
	return most - least, sum / n
}
