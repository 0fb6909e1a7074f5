package negotiator

import (
	"maps"
	"slices"
	"time"

	"github.com/roost-batch/roost/gpu"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/negotiator/ledger"
	"github.com/roost-batch/roost/negotiator/match"
	"github.com/roost-batch/roost/negotiator/share"
)

// holdsEvery is how long a change of what a submitter uses may wait for grants to be committed with it.
const holdsEvery = time.Second

// draft is what the cell has decided and nobody may act on before it is committed: the grants of a cycle, and what submitters use from now on.
// Sent before that, a grant could be one that the next leader knows nothing of.
type draft struct {
	at        time.Time // when it was proposed
	grants    []*pending
	writes    []ledger.Grant              // the same, as it stands in the log
	holds     map[share.Submitter]float64 // in cores
	petitions []petition                  // of administrators
	ended     []uint64                    // grants with licences
	pairs     []ledger.Pair
	commands  []ledger.Command // of Roost itself; in the entry they stand behind the petitions
}

func newDraft() draft { return draft{holds: map[share.Submitter]float64{}} }

// take returns what is to be committed now, and false if nothing is or it can wait for company.
func (c *cell) take(now time.Time) (draft, bool) {
	d := c.draft
	if len(d.grants)+len(d.petitions) == 0 && (c.holdsBy.IsZero() || now.Before(c.holdsBy)) {
		return draft{}, false
	}
	c.draft, c.holdsBy = newDraft(), time.Time{}
	return d, true
}

// entry is what the log is to say of a draft.
func (c *cell) entry(d draft) *ledger.Entry {
	e := &ledger.Entry{Epoch: c.epoch, Grants: d.writes, Ended: d.ended, Pairs: d.pairs}
	for _, who := range slices.SortedFunc(maps.Keys(d.holds), share.Submitter.Compare) {
		e.Holds = append(e.Holds, ledger.Hold{Submitter: who, Cores: d.holds[who]})
	}
	for _, w := range d.petitions {
		e.Commands = append(e.Commands, w.command)
	}
	e.Commands = append(e.Commands, d.commands...)
	return e
}

// write notes for the log what the units of a grant, which get the next numbers, will be.
func (c *cell) write(now time.Time, g match.Grant) {
	if g.Units <= 0 {
		return
	}
	r := g.Request
	var limits []ledger.Use
	for _, l := range r.Class.Limits {
		limits = append(limits, ledger.Use{Limit: l.Name, Count: int64(l.Count)})
	}
	c.draft.writes = append(c.draft.writes, ledger.Grant{
		ID: c.lastID + 1, Units: g.Units, Schedd: r.Key.Schedd, Request: r.Key.ID, Submitter: r.Submitter, Band: r.Band, Machine: g.Machine.Name,
		Started: g.Machine.Started, Resources: g.Resources(), Stream: r.Class.App == gpu.Stream, Waiting: g.Waiting, Unit: g.Unit,
		Limits: limits, Victims: g.Victims, ClaimBy: int64(claimBy(now, c.machines[g.Machine.Name], r.Class.Limits)),
	})
}

// committed sends the grants of a draft that is in the log now. A schedd that has gone in the meantime knows nothing of what it asked for: what
// it was to get is free again.
func (c *cell) committed(now time.Time, d draft) {
	for _, p := range d.grants {
		s := c.schedds[p.request.Schedd]
		if s == nil || s.mail != p.mail {
			c.forget(now, p)
			c.changed = true
			continue
		}
		p.stage, p.deadline = granted, now.Add(grantLife)
		c.sweepBy(p.deadline)
		s.mail.grant(&wire.ToSchedd{Of: &wire.ToSchedd_Grant{Grant: p.message}}, d.at)
		p.message = nil
	}
}

// hold notes that a submitter uses so many cores from now on. Before it is known what machines there are nothing is: what they say of schedds
// that are away counts as well.
func (c *cell) hold(now time.Time, who share.Submitter, cores float64) {
	if !c.synced || c.charged[who] == cores {
		return
	}
	c.charged[who], c.draft.holds[who] = cores, cores
	if c.holdsBy.IsZero() {
		c.holdsBy = now.Add(holdsEvery)
	}
}
