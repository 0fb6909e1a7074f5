package match

import (
	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/gpu"
)

// placementCandidate is a machine on which a unit of some request could be placed.
type placementCandidate struct {
	rank, score float64
	softScore   int64 // from what the request wishes for
	machine     int32 // the machine's number in the snapshot
	version     int32 // how often something was placed on it when this was made
}

// machineVersion notes that something was placed on a machine, and the how-manieth time
// that was.
type machineVersion struct{ machine, version int32 }

// bestMachine is the best machine for a unit of w as things stand.
func (p *negotiationCycle) bestMachine(w *requestState) (at int, ok bool) {
	if len(p.withFreeCPU) == 1 && w.Class.Resources.CPU > 0 && w.Gang <= 1 {
		only := int(p.withFreeCPU[0]) // no other has anything free, as after a small change in a full cell
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
		if w.domains != nil { // its domain may have become fuller since, never emptier
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

// makeHeap makes the heap of a want that has none.
func (p *negotiationCycle) makeHeap(w *requestState) {
	w.heapMade, w.seenPlaced = true, len(p.placedLog)
	w.heap = candidateHeap{list: p.scratch.newCandidateList()}
	if w.Gang <= 1 && !p.Score.spreadsUnits() { // a gang counts the room of all, and who spreads asks all in turn
		w.heap.minLength = max(p.minCandidates, w.unitsLeft)
	}
	if !p.fillChanged(w) {
		p.fillCandidates(w)
	}
	w.heap.heapify()
}

// refillCandidates looks again at all machines that w has asked, when those are used up
// that it kept.
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

// addCandidate adds a machine to the candidates of w if there is room.
func (p *negotiationCycle) addCandidate(w *requestState, at int) {
	if c, ok := p.newCandidate(w, at); ok {
		w.heap.addUnordered(c)
	}
}

// releaseMemory gives back the memory of a want that needs no more machines. If it does
// after all, its heap is made again.
func (p *negotiationCycle) releaseMemory(w *requestState) {
	if w.heap.list != nil {
		p.scratch.candidateLists = append(p.scratch.candidateLists, w.heap.list[:0])
	}
	if w.ranks != nil {
		p.scratch.rankLists = append(p.scratch.rankLists, w.ranks)
	}
	w.heapMade, w.heap, w.ranks = false, candidateHeap{}, nil
}

// fillCandidates asks the machines that come into question, and lists the candidates of
// w. Who wants any CPU need not look at machines that have none.
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

// sparseFreeLimit is what part of the machines has to be open for all to be asked
// together. Asking one costs about as much as asking this many among many.
const sparseFreeLimit = 64

// addMatch notes that a machine matches, and adds it to the candidates of w if there is
// room.
func (p *negotiationCycle) addMatch(w *requestState, at int32, rank float64) {
	rank = rankOrZero(rank)
	w.ranks[p.rankSlot(w, at)] = rank
	if h := &w.heap; !h.truncated || rank >= h.dropThreshold.rank { // else it does not matter how it would sit there
		p.addCandidate(w, int(at))
	}
}

// rankOfMachine is what w thinks of a machine; noMatch if it has not asked it, or does
// not want it.
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
	if i := p.rankSlot(w, at); i >= 0 { // else it had no room when the plan began
		return w.ranks[i]
	}
	return noMatch
}

// rankSlot is where the rank of a machine is kept.
func (p *negotiationCycle) rankSlot(w *requestState, at int32) int32 {
	if w.Class.Resources.CPU == 0 {
		return at
	}
	return p.openIndex[at]
}

// rescoreChanged looks again at the machines on which something was placed since w's heap
// was last asked.
func (p *negotiationCycle) rescoreChanged(w *requestState) {
	for ; w.seenPlaced < len(p.placedLog); w.seenPlaced++ {
		at := int(p.placedLog[w.seenPlaced].machine)
		if p.placedLog[w.seenPlaced].version != p.versions[at] {
			continue // the log has something newer of it
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

// newCandidate is a machine for a unit of w; ok is false if it does not match, or has no
// room, or is not to be tried.
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
	return placementCandidate{rank: rank, softScore: p.softConstraintScore(w, at), score: badness, machine: int32(at),
		version: p.versions[at]}, true
}

// balanceScore says how badly a unit sits on a machine with so much free of so much; less
// is better. It is a sum of fractions of the machine:
//
//   - how much more would be stranded, which is the difference between the largest and
//     the smallest free fraction of CPU, memory and GPUs: cores
//     without memory beside them serve nobody (Borg §3.2 weighs the same in its hybrid of best and worst fit);
//   - what would be free on the average, so that half-used machines fill up and whole
//     ones stay whole for large requests.
//
// Machines with GPUs are judged by [fragmentScore].
func balanceScore(unit, free, total roost.Resources) float64 {
	before, _ := freeSpread(free, total)
	after, mean := freeSpread(free.Sub(unit), total)
	return after - before + mean
}

// freeSpread is the difference between the largest and the smallest free fraction, and
// their mean.
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
