package match

import (
	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/gpu"
)

// candidate is a machine on which a unit of some request could be placed.
type candidate struct {
	rank, score float64
	far         int64 // from what the request wishes for
	at          int32 // the machine's number in the snapshot
	version     int32 // how often something was placed on it when this was made
}

// placed notes that something was placed on a machine, and the how-manieth time that was.
type placed struct{ at, version int32 }

// best is the best machine for a unit of w as things stand.
func (p *plan) best(w *want) (at int, ok bool) {
	if len(p.open) == 1 && w.Class.Resources.CPU > 0 && w.Gang <= 1 {
		only := int(p.open[0]) // no other has anything free, as after a small change in a full cell
		_, ok = p.candidate(w, only)
		return only, ok
	}
	if !w.opened {
		p.openHeap(w)
	}
	p.catchUp(w)
	h := &w.heap
	for {
		if len(h.list) == 0 {
			if !h.cut {
				return 0, false
			}
			p.refill(w)
			continue
		}
		top := &h.list[0]
		if top.version != p.versions[top.at] {
			h.pop()
			continue
		}
		if w.domains != nil { // its domain may have become fuller since, never emptier
			if far := p.wishes(w, int(top.at)); far != top.far {
				c := *top
				c.far = far
				h.replace(c)
				continue
			}
		}
		return int(top.at), true
	}
}

// openHeap makes the heap of a want that has none.
func (p *plan) openHeap(w *want) {
	w.opened, w.seen = true, len(p.log)
	w.heap = candidates{list: p.scratch.list()}
	if w.Gang <= 1 && !p.Score.spreads() { // a gang counts the room of all, and who spreads asks all in turn
		w.heap.keep = max(p.fewest, w.left)
	}
	if !p.fillFresh(w) {
		p.fill(w)
	}
	w.heap.make()
}

// refill looks again at all machines that w has asked, when those are used up that it kept.
func (p *plan) refill(w *want) {
	w.seen = len(p.log)
	w.heap.list, w.heap.cut = w.heap.list[:0], false
	if w.Class.Resources.CPU == 0 {
		for at := range p.Machines {
			p.offer(w, at)
		}
	} else {
		for _, at := range p.open {
			p.offer(w, int(at))
		}
	}
	w.heap.make()
}

// offer adds a machine to the candidates of w if there is room.
func (p *plan) offer(w *want, at int) {
	if c, ok := p.candidate(w, at); ok {
		w.heap.offer(c)
	}
}

// release gives back the memory of a want that needs no more machines. If it does after all, its heap is made again.
func (p *plan) release(w *want) {
	if w.heap.list != nil {
		p.scratch.lists = append(p.scratch.lists, w.heap.list[:0])
	}
	if w.ranks != nil {
		p.scratch.rank = append(p.scratch.rank, w.ranks)
	}
	w.opened, w.heap, w.ranks = false, candidates{}, nil
}

// fill asks the machines that come into question, and lists the candidates of w. Who wants any CPU need not look at machines that have none.
func (p *plan) fill(w *want) {
	q := p.query(w.Class)
	anywhere := w.Class.Resources.CPU == 0
	if anywhere {
		w.ranks = p.scratch.ranks(len(p.Machines))
	} else {
		w.ranks = p.scratch.ranks(len(p.open))
	}
	if !anywhere && len(p.open) < len(p.Machines)/fewOpen {
		for _, at := range p.open {
			if rank, ok := q.Match(p.Machines[at].row, &p.env); ok {
				p.found(w, at, rank)
			}
		}
		return
	}
	stream := w.Class.App == gpu.Stream
	p.scratch.hits = q.Select(p.scratch.hits[:0], &p.env)
	for _, hit := range p.scratch.hits {
		if at := p.atRow[hit.Row]; anywhere || p.free[at].CPU > 0 || stream && p.slot[at] >= 0 {
			p.found(w, at, hit.Rank)
		}
	}
}

// fewOpen is what part of the machines has to be open for all to be asked together. Asking one costs about as much as asking this many
// among many.
const fewOpen = 64

// found notes that a machine matches, and adds it to the candidates of w if there is room.
func (p *plan) found(w *want, at int32, rank float64) {
	rank = usable(rank)
	w.ranks[p.rankAt(w, at)] = rank
	if h := &w.heap; !h.cut || rank >= h.edge.rank { // else it does not matter how it would sit there
		p.offer(w, int(at))
	}
}

// rank is what w thinks of a machine; noMatch if it has not asked it, or does not want it.
func (p *plan) rank(w *want, at int32) float64 {
	if w.few != nil {
		if rank, ok := w.few[at]; ok {
			return rank
		}
		return noMatch
	}
	if w.ranks == nil {
		rank, ok := p.query(w.Class).Match(p.Machines[at].row, &p.env)
		if !ok {
			return noMatch
		}
		return usable(rank)
	}
	if i := p.rankAt(w, at); i >= 0 { // else it had no room when the plan began
		return w.ranks[i]
	}
	return noMatch
}

// rankAt is where the rank of a machine is kept.
func (p *plan) rankAt(w *want, at int32) int32 {
	if w.Class.Resources.CPU == 0 {
		return at
	}
	return p.slot[at]
}

// catchUp looks again at the machines on which something was placed since w's heap was last asked.
func (p *plan) catchUp(w *want) {
	for ; w.seen < len(p.log); w.seen++ {
		at := int(p.log[w.seen].at)
		if p.log[w.seen].version != p.versions[at] {
			continue // the log has something newer of it
		}
		if c, ok := p.candidate(w, at); ok {
			if len(w.heap.list) > 0 && w.heap.list[0].at == c.at {
				w.heap.replace(c)
			} else {
				w.heap.push(c)
			}
		}
	}
}

// candidate is a machine for a unit of w; ok is false if it does not match, or has no room, or is not to be tried.
func (p *plan) candidate(w *want, at int) (c candidate, ok bool) {
	if p.drained[at] || p.occupied(w, at) || !w.whole().fence.has(at) {
		return c, false
	}
	rank := p.rank(w, int32(at))
	if rank != rank {
		return c, false
	}
	if len(w.Avoid) > 0 {
		if _, avoid := w.Avoid[p.Machines[at].Name]; avoid {
			w.keptOff = true
			return c, false
		}
	}
	badness, ok := p.fits(w.Class, at)
	if !ok {
		return c, false
	}
	if !p.unheld(w, at) {
		w.keptOff = true
		return c, false
	}
	return candidate{rank: rank, far: p.wishes(w, at), score: badness, at: int32(at), version: p.versions[at]}, true
}

// score says how badly a unit sits on a machine with so much free of so much; less is better. It is a sum of fractions of the machine:
//
//   - how much more would be stranded, which is the difference between the largest and the smallest free fraction of CPU, memory and GPUs: cores
//     without memory beside them serve nobody (Borg §3.2 weighs the same in its hybrid of best and worst fit);
//   - what would be free on the average, so that half-used machines fill up and whole ones stay whole for large requests.
//
// Machines with GPUs are judged by [fragmentScore].
func score(unit, free, total roost.Resources) float64 {
	before, _ := spread(free, total)
	after, mean := spread(free.Sub(unit), total)
	return after - before + mean
}

// spread is the difference between the largest and the smallest free fraction, and their mean.
func spread(free, total roost.Resources) (stranded, mean float64) {
	return spread3([3][2]int64{{int64(free.CPU), int64(total.CPU)}, {int64(free.Memory), int64(total.Memory)}, {int64(free.GPUs), int64(total.GPUs)}})
}

func spread3(of [3][2]int64) (stranded, mean float64) {
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
