package negotiator

import (
	"maps"
	"slices"
	"time"

	"github.com/roost-batch/roost/gpu"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/negotiator/fairshare"
	"github.com/roost-batch/roost/negotiator/ledger"
	"github.com/roost-batch/roost/negotiator/match"
)

// usageCommitInterval is how long a change of what a submitter uses may wait for grants
// to be committed with it.
const usageCommitInterval = time.Second

// pendingEntry is what the cell has decided and nobody may act on before it is committed:
// the grants of a cycle, and what submitters use from now on. Sent before that, a grant
// could be one that the next leader knows nothing of.
type pendingEntry struct {
	proposedAt     time.Time // when it was proposed
	grants         []*pendingGrant
	grantRecords   []ledger.RecordedGrant          // the same, as it stands in the log
	usageUpdates   map[fairshare.Submitter]float64 // in cores
	adminCommands  []adminCommand                  // of administrators
	resolvedGrants []uint64                        // grants with licences
	avoidPairs     []ledger.AvoidPair
	ownCommands    []ledger.AdminCommand // of Roost itself; in the entry they stand behind the petitions
}

func newPendingEntry() pendingEntry {
	return pendingEntry{usageUpdates: map[fairshare.Submitter]float64{}}
}

// takePendingEntry returns what is to be committed now, and false if nothing is or it can
// wait for company.
func (c *leaderState) takePendingEntry(now time.Time) (pendingEntry, bool) {
	d := c.pendingEntry
	if len(d.grants)+len(d.adminCommands) == 0 && (c.usageCommitBy.IsZero() || now.Before(c.usageCommitBy)) {
		return pendingEntry{}, false
	}
	c.pendingEntry, c.usageCommitBy = newPendingEntry(), time.Time{}
	return d, true
}

// logEntry is what the log is to say of a draft.
func (c *leaderState) logEntry(d pendingEntry) *ledger.LogEntry {
	e := &ledger.LogEntry{Epoch: c.epoch, Grants: d.grantRecords, Ended: d.resolvedGrants, Pairs: d.avoidPairs}
	for _, who := range slices.SortedFunc(maps.Keys(d.usageUpdates), fairshare.Submitter.Compare) {
		e.Holds = append(e.Holds, ledger.UsageUpdate{Submitter: who, Cores: d.usageUpdates[who]})
	}
	for _, w := range d.adminCommands {
		e.Commands = append(e.Commands, w.command)
	}
	e.Commands = append(e.Commands, d.ownCommands...)
	return e
}

// recordGrant notes for the log what the units of a grant, which get the next numbers,
// will be.
func (c *leaderState) recordGrant(now time.Time, g match.Grant) {
	if g.Units <= 0 {
		return
	}
	r := g.Request
	var limits []ledger.LimitUse
	for _, l := range r.Class.Limits {
		limits = append(limits, ledger.LimitUse{Limit: l.Name, Count: int64(l.Count)})
	}
	c.pendingEntry.grantRecords = append(c.pendingEntry.grantRecords, ledger.RecordedGrant{
		ID: c.lastID + 1, Units: g.Units, Schedd: r.Key.Schedd, Request: r.Key.ID, Submitter: r.Submitter, Band: r.Band,
		Machine: g.Machine.Name,
		Started: g.Machine.Started, Resources: g.Resources(), Stream: r.Class.AppClass == gpu.StreamClass,
		Waiting: g.Waiting, Unit: g.Unit,
		Limits: limits, Victims: g.Victims,
		ClaimBy: int64(claimDeadline(now, c.machines[g.Machine.Name], r.Class.Limits)),
	})
}

// sendCommitted sends the grants of a draft that is in the log now. A schedd that has
// gone in the meantime knows nothing of what it asked for: what it was to get is free
// again.
func (c *leaderState) sendCommitted(now time.Time, d pendingEntry) {
	for _, p := range d.grants {
		s := c.schedds[p.request.Schedd]
		if s == nil || s.sendQueue != p.sendQueue {
			c.forgetGrant(now, p)
			c.changed = true
			continue
		}
		p.stage, p.deadline = granted, now.Add(grantTTL)
		c.setNextSweep(p.deadline)
		s.sendQueue.putGrant(&wire.ToSchedd{Of: &wire.ToSchedd_Grant{Grant: p.message}}, d.proposedAt)
		p.message = nil
	}
}

// recordUsage notes that a submitter uses so many cores from now on. Before it is known
// what machines there are nothing is: what they say of schedds that are away counts as
// well.
func (c *leaderState) recordUsage(now time.Time, who fairshare.Submitter, cores float64) {
	if !c.synced || c.chargedCores[who] == cores {
		return
	}
	c.chargedCores[who], c.pendingEntry.usageUpdates[who] = cores, cores
	if c.usageCommitBy.IsZero() {
		c.usageCommitBy = now.Add(usageCommitInterval)
	}
}
