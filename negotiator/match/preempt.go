package match

import (
	"fmt"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/gpu"
)

// A unit that finds no room may displace claims (Borg §3.2, DESIGN §6): only of strictly lower bands, of which prod is one and is not displaced; and in
// batch, where the administrator lets it, of submitters that have had more than their share, and where a machine would rather run the other (rank.go). The machine is chosen by the request's Rank, then by whom it
// hurts: fewest that are not run again, then fewest of batch, then fewest of free, then the least work lost. On the machine no claim is evicted that need not be.
//
// Each eviction serves one start: the grant names its victims, and what they hold is nobody else's. A victim is chosen once, and is not placed anew
// in the plan that displaces it, so nothing cascades. Room that is being made already, on machines that claims are leaving, is waited for before more
// is made.

// Preemption is whom a plan may displace. The zero value lets higher bands displace lower ones, without a bound.
type Preemption struct {
	Bounded bool           // Cell and PerJob count
	Cell    int            // so many claims may be evicted in this plan
	PerJob  int            // and so many of one job, less Evicted
	Evicted map[string]int // by job, as in Claim.Job without the task's index: how many of it were evicted lately
	Fair    *FairShare     // nil: batch does not displace batch for it

	Beyond map[ClaimKey]string // claims that are beyond a soft limit, and which one
}

// cost is what an eviction costs; what comes first counts most.
type cost struct {
	ruined      int // tasks that are not run again
	batch, free int
	lost        int64 // seconds of work
}

func (a cost) less(b cost) bool {
	if a.ruined != b.ruined {
		return a.ruined < b.ruined
	}
	if a.batch != b.batch {
		return a.batch < b.batch
	}
	if a.free != b.free {
		return a.free < b.free
	}
	return a.lost < b.lost
}

func (a cost) with(c *Claim, now int64) cost {
	if c.ruined() {
		a.ruined++
	}
	if c.Band == roost.Free {
		a.free++
	} else {
		a.batch++
	}
	a.lost += c.lost(now)
	return a
}

// ruined reports whether the task of a claim would not be run again, nor go on, if it was evicted.
func (c *Claim) ruined() bool { return c.Once && !c.Checkpoint && c.Saved == 0 }

// savedCost is what it costs a task to be saved and to be restored elsewhere, in seconds of work.
const savedCost = 10

// lost is how many seconds of work are lost if the claim is evicted.
func (c *Claim) lost(now int64) int64 {
	if c.Since == 0 {
		return 0
	}
	lost := max(now-max(c.Since, c.Saved), 0)
	if c.Checkpoint {
		return min(lost, savedCost)
	}
	return lost
}

// preempt displaces claims for one unit of a want that found no room, and reports whether it did.
func (p *plan) preempt(w *want) bool {
	h := &w.hunt
	if h.failed || w.Gang > 1 || w.Band == roost.Free || w.Class.Alone {
		return false
	}
	for w.left-w.NoWait-h.awaits > 0 {
		if p.await(w) {
			h.awaits++
			continue
		}
		if p.hunted == 0 {
			h.all = true // there is nobody, whoever looks where
		} else if !p.exhausted() {
			if at, victims := p.quarry(w); victims != nil {
				p.evict(w, at, victims)
				return true
			}
		}
		p.leaveAlone(w)
		return false
	}
	return false
}

// evict grants a unit of a want what its victims hold, and of what is free what that leaves wanting.
func (p *plan) evict(w *want, at int, victims []int32) {
	m, s := p.Machines[at], p.scene(at)
	held := make([]gpu.Placement, 0, len(victims))
	g := Grant{Request: w.Request, Machine: m, Units: 1, Gang: w.gang, Why: p.why(w, m, victims)}
	p.undo.chose(s, m, victims)
	for _, i := range victims {
		c := &m.Claims[i]
		s.used[c.ID] = true
		held = append(held, c.placement(m))
		g.Victims = append(g.Victims, c.ID)
		p.spend(c)
	}
	now, later := gpu.Cover(p.roomWith(w.Class, at, held), held)
	s.gives, s.takes = append(s.gives, held...), append(s.takes, later)
	if s.leftover() {
		p.stages = append(p.stages, at)
	}
	p.spare = p.spare.Sub(p.takeNow(at, now))
	p.use(w, 1)
	w.left--
	if w.domains != nil {
		w.domains.units[p.domain(w, at)]++
	}
	p.changed(at)
	p.out.Grants = append(p.out.Grants, g)
	if w.left == 0 {
		w.hunt.end()
	}
}

// why says to those who have to go why they have to.
func (p *plan) why(w *want, m *Machine, victims []int32) string {
	if c := &m.Claims[victims[len(victims)-1]]; c.Band == w.Band {
		if p.surplus(m, c) {
			return p.Preemption.Beyond[ClaimKey{m.Name, c.ID}]
		}
		if p.dearer(w, m, c) {
			return p.dearerText(w, m, c)
		}
		return fmt.Sprintf("fair share: its priority is %.4g, that of %s %.4g", w.account.effective(), c.Submitter.Owner, p.account(c.Submitter).effective())
	}
	return fmt.Sprintf("%v comes before %v", w.Band, m.Claims[victims[0]].Band)
}
