package match

import (
	"fmt"
	"time"

	"github.com/roost-batch/roost/negotiator/forecast"
)

// What a request could do without, where less of one resource is not enough: less of two, less time, or a smaller gang. Each is asked of the machines as
// the plan has left them.

// pair is a machine that lacks two things, of which it has this much.
type pair struct {
	first, second dimension
	have          [2]int64
	part          float64 // how much of what was asked for would be left
}

// lacks notes a machine that lacks two things, if less of them is a smaller change than on those before. What GPUs are short of no sum tells.
func (q *pair) lacks(p *plan, c *Class, at int, s *shortage) {
	if s.n != 2 || p.splitAt(at) != nil {
		return
	}
	one := pair{first: s.first, part: 1}
	for d := range dimensions {
		if s.short[d] && d != s.first {
			one.second = d
		}
	}
	for i, d := range [...]dimension{one.first, one.second} {
		one.have[i] = s.have[d]
		one.part *= float64(max(s.have[d], 0)) / float64(d.of(c.Resources))
	}
	if one.part > q.part {
		*q = one
	}
}

// change is the advice to ask for less of both.
func (q *pair) change(c *Class, effect string) change {
	return change{
		text: fmt.Sprintf("with %s and %s instead of %s and %s %s", q.first.show(q.have[0], true), q.second.show(q.have[1], true),
			q.first.show(q.first.of(c.Resources), false), q.second.show(q.second.of(c.Resources), false), effect),
		part: q.part,
	}
}

// leastWalltime is the shortest that is recommended.
const leastWalltime = time.Minute

// brieflyBeside is how long a unit of a want may take at most to start now on a machine that has room, and holds it for others from later on.
func (p *plan) brieflyBeside(w *want, at int) (longest forecast.Seconds) {
	if w.Gang > 1 {
		return 0
	}
	r, view, whole := weight(w.Class.Resources, w.Class.App, 1), p.view(w, at), w.length()
	if f := p.futures[at]; f != nil {
		whole = f.lengthBeside(w)
	}
	for _, h := range view.Holds {
		if length := h.From - p.now; length > longest && length < whole && view.Units(p.now, length, r, 1) > 0 {
			longest = length
		}
	}
	return longest
}

// lessElse is the advice about time and gangs.
func (t *tally) lessElse() (all []change) {
	w := t.want
	if d := time.Duration(t.briefly) * time.Second; d >= leastWalltime {
		all = append(all, change{fmt.Sprintf("with a walltime of at most %s it would start now", span(d)), 0.9})
	}
	if w.heldBy == Whole && w.of == nil && t.units > 0 && t.units < w.Gang {
		all = append(all, change{
			fmt.Sprintf("with %s instead of %d that start together it would start now", plural(t.units, "task", "tasks"), w.Gang), float64(t.units) / float64(w.Gang),
		})
	}
	return all
}

// unitsNow is how many units of a want a machine has room for as the plan has left it, at least.
func (p *plan) unitsNow(w *want, at int) int {
	if p.splitAt(at) != nil {
		return p.beside(w, at, 1)
	}
	return p.beside(w, at, w.here(min(w.Gang, w.Class.Resources.Times(p.room(w.Class, at)))))
}
