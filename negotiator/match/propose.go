package match

import (
	"slices"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/gpu"
	"github.com/roost-batch/roost/negotiator/share"
)

// Batch requests may come with a proposal: their schedd has placed them itself, on its own copy of the cell, and the plan only looks whether what it
// chose is still so (HRM §4.3.2 and algorithms 2 and 3; optimistic, as Omega and Borg §3.4 share a cell). What does not conflict is granted as
// proposed, which costs a look at one machine and not at all of them. What conflicts comes back singly, and waits in the leader's queue: the
// same plan places it as it places what nobody has proposed anything for.
//
// The turns of fair share hold for proposals as for all else. Beside that a job's proposals are granted no further than its portion of what is free
// (HRM §4.5), so that the first schedd to speak does not take all.

// Proposal is so many units of a request on one machine.
type Proposal struct {
	Machine string
	Units   int
	Waiting bool // in the queue of a resource unit: of which is the machine's to say
}

// Conflict is what could not be granted as it was proposed.
type Conflict struct {
	Request *Request
	Proposal
	Why string
}

// openProposals notes what is proposed in a band, and each job's portion, and reports whether anything is. A portion is of what is free of GPUs where
// GPUs are asked for, else of cores.
func (p *plan) openProposals(wants []*want) bool {
	if !slices.ContainsFunc(wants, func(w *want) bool { return len(w.Proposed) > 0 }) {
		return false
	}
	type pool struct {
		free  int64
		of    func(roost.Resources) int64
		wants []*want
	}
	pools := [...]*pool{
		{free: int64(p.spare.GPUs), of: func(r roost.Resources) int64 { return int64(r.GPUs) }},
		{free: int64(p.spare.CPU), of: func(r roost.Resources) int64 { return int64(r.CPU) }},
	}
	for _, w := range wants {
		if w.proposed = w.Proposed; len(w.proposed) == 0 || w.Class.App != gpu.Batch || w.Gang > 1 || w.left == 0 {
			w.proposed = nil
			continue
		}
		for _, k := range pools {
			if k.of(w.Class.Resources) > 0 {
				k.wants = append(k.wants, w)
				p.proposing = true
				break
			}
		}
	}
	if !p.proposing {
		return false
	}
	for _, k := range pools {
		ask := make([]int64, len(k.wants))
		for i, w := range k.wants {
			ask[i] = k.of(w.Class.Resources) * int64(w.left)
		}
		for i, n := range share.Portions(k.free, ask) {
			each := k.of(k.wants[i].Class.Resources)
			k.wants[i].portion = int((n + each - 1) / each) // who begins a unit may have it whole
		}
	}
	return true
}

// proposed is the machine that w proposes next, if what it proposes is still so, and how many of n units may go there.
func (p *plan) proposed(w *want, n int) (at, units int, ok bool) {
	for len(w.proposed) > 0 {
		one := &w.proposed[0]
		if one.Waiting {
			return 0, 0, false // these come when all that can start has been placed
		}
		at, why := p.agrees(w, one.Machine)
		switch {
		case why != "":
		case one.Units < 1:
			why = "it proposes nothing"
		case w.portion < 1:
			why = "beyond the job's portion of what is free"
		default:
			if _, fits := p.fits(w.Class, at); fits && p.unheld(w, at) {
				return at, min(n, one.Units, w.portion), true
			}
			why = "taken meanwhile"
		}
		p.conflict(w, why)
	}
	return 0, 0, false
}

// withinPortion is how many of n units w may have elsewhere than it proposed while there are others whose proposals were not looked at.
func (p *plan) withinPortion(w *want, n int) int {
	if p.proposing && len(w.Proposed) > 0 {
		return min(n, max(w.portion, 0))
	}
	return n
}

// granted notes that n units went where w had proposed.
func (w *want) granted(n int) {
	rest := w.proposed[0]
	rest.Units -= n
	w.portion -= n
	w.proposed = w.proposed[1:]
	if rest.Units > 0 {
		w.proposed = append([]Proposal{rest}, w.proposed...)
	}
}

// conflict drops the next proposal of w.
func (p *plan) conflict(w *want, why string) {
	p.out.Conflicts = append(p.out.Conflicts, Conflict{w.Request, w.proposed[0], why})
	w.proposed = w.proposed[1:]
}

// agrees finds a machine that is proposed, or says why it is out of the question, whatever is free of it.
func (p *plan) agrees(w *want, name string) (at int, why string) {
	m := p.byName[name]
	switch {
	case m == nil || m.in != p.Matcher:
		return 0, "there is no such machine"
	case m.drained:
		return 0, "it is drained"
	case !p.suits(w, int(m.at)):
		return 0, "request and machine do not match"
	}
	return int(m.at), ""
}

// unheld reports whether what is held of a machine for others leaves room for a unit of w.
func (p *plan) unheld(w *want, at int) bool {
	return len(p.futures) == 0 && w.reserved == nil || p.within(w, at) && p.beside(w, at, 1) > 0
}

// queueProposed puts one unit of w into the queue that it proposes next, if there is still room, and reports whether it did.
func (p *plan) queueProposed(w *want) bool {
	for len(w.proposed) > 0 {
		one := &w.proposed[0]
		at, why := p.agrees(w, one.Machine)
		switch {
		case why != "":
		case !one.Waiting || one.Units < 1:
			why = "taken meanwhile"
		case p.queues[at] == nil || !p.mayQueue(w, at):
			why = "nothing more may wait there"
		default:
			if unit, ok := p.queues[at].CanWait(w.Class.request()); ok {
				p.enqueue(w, waiter{at: at, unit: unit, wait: p.queues[at].Queue(unit).Wait})
				w.portion++ // a place in a queue takes nothing of what is free
				w.granted(1)
				return true
			}
			why = "nothing more may wait there"
		}
		p.conflict(w, why)
	}
	return false
}
