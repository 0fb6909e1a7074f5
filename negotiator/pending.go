package negotiator

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/negotiator/match"
	"github.com/roost-batch/roost/negotiator/share"
)

// pending is a grant that a machine's ad does not show yet.
//
// A grant is pending from its making until the machine's ad tells the same:
//
//	          in the log             GrantResult claimed            machine ad of that sequence, or later
//	drafted ─────────────▶ granted ─────────────────────▶ claimed ───────────────────────────────────────▶ forgotten
//	   │                      │                              │
//	   └── its schedd left ───┴── refused, or 10 s ──────────┴── 10 s, or a new start of the machine ────▶ forgotten
//
// While it is pending its resources are subtracted from what the machine's ad calls free. One that takes licences is not forgotten after 10 s: it is
// overdue, and keeps its licences alone, until it is certain what has become of it (see licences.go).
type pending struct {
	id        uint64
	epoch     uint64
	request   match.Key
	mail      *mailbox // of the conversation in which request means something
	submitter share.Submitter
	band      roost.Band
	machine   string
	promise   match.Promise
	licences  []roost.Licences
	claimBy   time.Duration // what the machine's clock shows when nobody can claim it any more; 0: nobody knows
	overdue   bool
	stage     stage
	message   *wire.Grant // drafted: what is to be sent
	deadline  time.Time   // granted and claimed: when it is forgotten
	sequence  uint64      // claimed: of the first ad that shows it
	started   int64       // of the machine when the grant was made
}

// stage is how far a grant has come. It only rises.
type stage int

const (
	drafted stage = iota // not in the log yet, and nobody was told
	granted              // the schedd was told
	claimed              // the machine has made a claim of it
)

// settling is a grant that was claimed while the schedd had not yet said that it took it into account.
type settling struct {
	grant *pending
	at    time.Time
}

// shows reports whether a machine's ad already tells of a claim.
func shows(m *machine, p *pending) bool {
	return p.stage == claimed && (m.Started > p.started || m.Started == p.started && m.Sequence >= p.sequence)
}

func (c *cell) forget(now time.Time, p *pending) {
	delete(c.pending, p.id)
	c.landed(now, p)
	list := slices.DeleteFunc(c.promised[p.machine], func(other *pending) bool { return other == p })
	if len(list) == 0 {
		delete(c.promised, p.machine)
	} else {
		c.promised[p.machine] = list
	}
	if s := c.schedds[p.request.Schedd]; s != nil && p.stage != claimed {
		s.unanswered--
	}
}

// landed notes for the next leader that it is certain what has become of a grant with licences.
func (c *cell) landed(now time.Time, p *pending) {
	if p.claimBy == 0 {
		return
	}
	c.draft.ended = append(c.draft.ended, p.id)
	if c.holdsBy.IsZero() {
		c.holdsBy = now.Add(holdsEvery)
	}
}

// answered takes in what became of a grant.
func (c *cell) answered(now time.Time, s *schedd, result *wire.GrantResult) {
	p := c.pending[result.GetGrant()]
	if p == nil || p.request.Schedd != s.name || p.stage != granted || p.epoch != cmp.Or(result.GetEpoch(), c.epoch) {
		return
	}
	c.changed = true
	r := c.requestOf(p)
	m := c.machines[p.machine]
	if r != nil && (!result.GetClaimed() || !r.counts) {
		r.strike(p.id)
	}
	if !result.GetClaimed() {
		c.forget(now, p)
		if r != nil {
			r.refuse(now, p.machine, m, result)
		}
		return
	}
	s.unanswered--
	p.promise.Waiting = result.GetWaiting() // it may have found room after all
	p.stage, p.sequence, p.deadline, p.overdue = claimed, result.GetAdSequence(), now.Add(grantLife), false
	if p.sequence == 0 && len(p.licences) > 0 {
		p.sequence = unknown
	}
	if r != nil {
		delete(r.refused, p.machine)
		c.settling = append(c.settling, settling{p, now.Add(settleAfter)})
		c.sweepBy(now.Add(settleAfter))
	}
	if m != nil && shows(m, p) {
		c.forget(now, p)
	}
}

// requestOf is the request that a grant was for, nil if that is gone.
func (c *cell) requestOf(p *pending) *request {
	if s := c.schedds[p.request.Schedd]; s != nil && s.mail == p.mail {
		return s.requests[p.request.ID]
	}
	return nil
}

// lapse forgets the grants that have been pending for too long, and the schedds that have been away for too long.
func (c *cell) lapse(now time.Time) {
	if c.sweep.IsZero() || now.Before(c.sweep) {
		return
	}
	c.sweep = time.Time{}
	c.settle(now)
	for _, id := range slices.Sorted(maps.Keys(c.pending)) {
		p := c.pending[id]
		if p.stage == drafted {
			continue // what is not in the log soon never will be: then this negotiator leads no more
		}
		if !now.Before(p.deadline) {
			c.expire(now, p)
		} else {
			c.sweepBy(p.deadline)
		}
	}
}

// expire gives up waiting for news of a grant.
func (c *cell) expire(now time.Time, p *pending) {
	c.strike(p)
	c.changed = true
	if p.claimBy == 0 || p.overdue {
		c.forget(now, p)
		return
	}
	p.overdue, p.deadline = true, now.Add(heldFor)
	c.sweepBy(p.deadline)
}

// strike takes a grant that will not be answered off what its request was given.
func (c *cell) strike(p *pending) {
	if r := c.requestOf(p); r != nil && p.stage != claimed {
		r.strike(p.id)
	}
}

// settle strikes claimed grants of which the schedd has not said in a while that it took them into account. It may have had nothing to say: as much
// as the grant took off its wish, new tasks had added.
func (c *cell) settle(now time.Time) {
	for len(c.settling) > 0 {
		first := c.settling[0]
		if now.Before(first.at) {
			c.sweepBy(first.at)
			return
		}
		if r := c.requestOf(first.grant); r != nil && r.strike(first.grant.id) {
			c.changed = true
		}
		c.settling = c.settling[1:]
	}
}

func (c *cell) sweepBy(at time.Time) {
	if c.sweep.IsZero() || at.Before(c.sweep) {
		c.sweep = at
	}
}
