package pool

import (
	"maps"
	"slices"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/sim/audit"
	"github.com/roost-batch/roost/internal/sim/kernel"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/startd/lend"
	"github.com/roost-batch/roost/startd/owner"
	"github.com/roost-batch/roost/startd/slot"
)

// guard sees the owner of a machine, as startd/guard does: a process of the host, beside the startd and independent of it.
type guard struct {
	m        *machineNode
	there    bool          // somebody is
	until    time.Duration // and stays, by the clock of the pool
	input    slot.Instant  // the last; 0: never
	woke     slot.Instant  // the last time that the host did; 0: never
	asleep   bool          // since then it has not had the time to look
	sequence uint64        // of what it has said last
	acted    uint64        // what of that the startd has acted on
	present  bool          // the startd listens
	waits    []uint64      // what cannot wait, and was not acted on
	frozeAt  uint64        // it has stopped tasks itself, and said so first in these signs; 0: or they were taken over since
	dead     bool
	back     time.Duration // then it is started again
	blind    bool          // it is dead, or has not looked since it was started
}

// What package guard has them, and how long the startd and it take to find each other.
const (
	guardPatience = 100 * time.Millisecond
	guardLooks    = 500 * time.Millisecond
	guardAwake    = 10 * time.Second
	guardCalled   = 200 * time.Millisecond
	guardAway     = 3 * time.Second // package startd: after so long without it the machine is its owner's
	guardGrace    = 2 * time.Second // it looks at all there is before it says anything
)

// What is due of a guard; the rest of the number is the signs', or for dueVisit the milliseconds of the visit.
const (
	dueVisit uint64 = iota
	dueLeft
	dueLate
	dueWoken
	dueLooked
	dueBack
	dueLook
	dueGuards
)

// signs are what the startd hears of the guard.
type signs struct {
	owner.Signs
	sequence uint64
	froze    bool
}

// called is the news that the startd and the guard have found each other.
type called struct{}

// OwnerComes has somebody use a machine himself for a while, from now on, or from when it wakes. On a machine that has no policy for that nothing happens.
func (p *Pool) OwnerComes(name string, d time.Duration) {
	if m, ok := p.at(name).part.(*machineNode); ok && m.guard != nil && !m.off {
		m.guard.plan(0, dueVisit, uint64(d/time.Millisecond))
	}
}

func (g *guard) plan(after time.Duration, what, number uint64) {
	m := g.m
	m.p.k.Plan(kernel.Event{At: m.p.k.Now() + after, Place: m.id, Kind: evTask, Life: m.host, Number: number*dueGuards + what, With: g})
}

func (g *guard) due(number uint64) {
	m, now := g.m, g.m.p.k.Now()
	switch what, n := number%dueGuards, number/dueGuards; what {
	case dueVisit:
		g.until = max(g.until, now+time.Duration(n)*time.Millisecond)
		g.noted()
		g.plan(g.until-now, dueLeft, 0)
		if !g.there {
			g.there = true
			m.p.lending.Visits++
			m.p.see(audit.Seen{What: audit.Seated, Node: m.name})
			g.tell(true)
		}
	case dueLeft:
		if g.there && now >= g.until {
			g.noted()
			g.left()
			g.tell(false)
		}
	case dueLate:
		if g.acted < n && slices.Contains(g.waits, n) {
			g.freeze()
		}
	case dueWoken:
		if g.dead {
			return // who is started after the sleep knows nothing of it
		}
		g.woke, g.asleep = m.boot(), true
		g.plan(guardAwake, dueLooked, 0)
		g.tell(true)
	case dueLooked:
		if g.asleep && m.boot()-g.woke >= guardAwake {
			g.asleep = false
			g.tell(false)
		}
	case dueBack:
		g.started()
	case dueLook:
		g.look()
	}
}

// noted takes in that somebody has touched the machine, if it sees that.
func (g *guard) noted() {
	if !g.blind {
		g.input = g.m.boot()
	}
}

func (g *guard) left() {
	if g.there {
		g.there = false
		g.m.p.see(audit.Seen{What: audit.Away, Node: g.m.name})
	}
}

// tell says what it sees. What is urgent the startd acts on in time, or else the guard does.
func (g *guard) tell(urgent bool) {
	if g.blind {
		return
	}
	g.sequence++
	if g.present {
		g.m.plan(g.m.p.k.Now()+time.Millisecond, evNews, g.sequence, g.signs())
	}
	if !urgent {
		return
	}
	g.waits = append(g.waits, g.sequence)
	if !g.present {
		g.freeze()
		return
	}
	g.plan(guardPatience, dueLate, g.sequence)
}

func (g *guard) signs() *signs {
	s := &signs{Signs: owner.Signs{Input: max(g.input, g.woke), Asleep: g.asleep}, sequence: g.sequence, froze: g.frozeAt != 0}
	if s.Console = s.Input; g.there {
		s.Busy = "somebody is at it"
	}
	return s
}

// freeze stops the tasks of a startd that did not act in time, those that are only about to run included.
func (g *guard) freeze() {
	g.waits = nil
	told := false
	for _, id := range sorted(g.m.hands) {
		if s := g.m.hands[id].starter; s.phase == starting || s.phase == running {
			s.hold(true)
			told = true
		}
	}
	if told {
		g.frozeAt = g.sequence + 1
	}
	g.tell(false)
}

// heard takes in what the startd has acted on.
func (g *guard) heard(sequence uint64) {
	g.acted = sequence
	g.waits = slices.DeleteFunc(g.waits, func(n uint64) bool { return n <= sequence })
	if g.frozeAt != 0 && sequence >= g.frozeAt {
		g.frozeAt = 0
	}
}

// parted takes in that the startd is gone: what it has not acted on nobody will.
func (g *guard) parted() {
	if g.present = false; len(g.waits) > 0 {
		g.freeze()
	}
}

// rebooted begins anew, on a machine that nobody has touched.
func (g *guard) rebooted() {
	g.left()
	if g.blind {
		g.m.p.see(audit.Seen{What: audit.Watched, Node: g.m.name})
	}
	if g.m.missed {
		g.m.missed = false
		g.m.p.see(audit.Seen{What: audit.Heard, Node: g.m.name})
	}
	*g = guard{m: g.m, sequence: g.sequence}
}

// lent follows the owner of a machine, as startd does. It is the machine's hands, for that.
type lent struct {
	*machineNode
}

// follow begins to, at a start of the startd.
func (m *machineNode) follow() {
	if m.guard == nil {
		return
	}
	for _, h := range m.hands {
		h.wanted = ""
	}
	m.heard = 0
	m.await()
	m.lender = lend.New(m.name, owner.New(m.asks()), m.core, lent{m})
	m.call()
}

// asks is what the owner's policy is weighed with. In a quiet pool that is done less often: what depends on the time of day may be seen a minute late.
func (m *machineNode) asks() owner.Options {
	o := owner.Options{Policy: *m.of.Owner, Name: m.name, Ad: m.core.Ad()}
	if m.p.cfg.Quiet {
		o.Poll = time.Minute
	}
	return o
}

// signed takes in what the guard sees.
func (m *machineNode) signed(s *signs) {
	m.heard = s.sequence
	if m.guard.present { // and not what one has said that is dead by now
		m.awaited++
		if m.missed {
			m.missed = false
			m.p.see(audit.Seen{What: audit.Heard, Node: m.name})
		}
	}
	m.lender.Signed(m.boot(), m.now(), s.Signs, s.froze)
}

// attend asks what the owner's policy says, and has the guard know that it was acted on.
func (m *machineNode) attend() slot.Instant {
	did, wake := m.lender.Attend(m.boot())
	if did.Told {
		m.guard.heard(m.heard)
	}
	return wake
}

// All implements lend.Hands.
func (m lent) All() []slot.ClaimID { return slices.Sorted(maps.Keys(m.hands)) }

// Present implements lend.Hands.
func (m lent) Present(id slot.ClaimID) bool { return m.hands[id] != nil }

// Hold implements lend.Hands. What is only about to run goes in place of standing still: the books see to that.
func (m lent) Hold(id slot.ClaimID, why string) {
	h := m.hands[id]
	h.wanted = why
	h.starter.hold(why != "")
}

// GoOn implements lend.Hands.
func (m lent) GoOn(id slot.ClaimID) { m.Hold(id, "") }

// Suspended implements lend.Hands.
func (m lent) Suspended(c *slot.Claim, why string) {
	m.tell(c.Schedd, &wire.FromStartd{Of: &wire.FromStartd_Suspended{Suspended: &wire.Suspended{Attempt: reference(c.Attempt), Frozen: why != "", Reason: why}}})
}

// Shrink implements lend.Hands: memory that is given back shows nowhere.
func (m lent) Shrink(slot.ClaimID) {}

// Kill implements lend.Hands. No starter is stuck here.
func (m lent) Kill(slot.ClaimID) {}

// Measured implements lend.Hands.
func (m lent) Measured(c *slot.Claim) (memory roost.Bytes, savable bool) {
	return c.Resources.Memory, false
}

// Note implements lend.Hands: there is no log.
func (m lent) Note(owner.Order) {}

// offer tells the observer whether the machine is lent.
func (m *machineNode) offer() {
	offers := m.lender == nil || m.lender.NotLent() == ""
	if m.offered && offers == m.offers {
		return
	}
	m.offered, m.offers = true, offers
	s := audit.Seen{What: audit.Offered, Node: m.name}
	if offers {
		s.Resources = m.of.Resources
	}
	m.p.see(s)
}
