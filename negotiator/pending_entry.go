package negotiator

import (
	"maps"
	"slices"
	"time"

	"github.com/roost-batch/roost/gpu"
	"github.com/roost-batch/roost/internal/metrics"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/negotiator/fairshare"
	"github.com/roost-batch/roost/negotiator/ledger"
	"github.com/roost-batch/roost/negotiator/match"
)

// usageCommitInterval is how long a change of usage may wait to be committed together
// with grants.
const usageCommitInterval = time.Second

// pendingEntry holds the decisions that may not take effect before they are committed.
// They are the grants of a cycle, and changes of usage. A grant that is sent earlier
// could be unknown to the next leader.
type pendingEntry struct {
	proposedAt     time.Time // time of the proposal
	grants         []*pendingGrant
	grantRecords   []ledger.RecordedGrant // the grants as written to the log
	usageUpdates   map[fairshare.Submitter]coresInUse
	adminCommands  []adminCommand // of administrators
	resolvedGrants []uint64       // grants with limits whose outcome is certain
	avoidPairs     []ledger.AvoidPair
	ownCommands    []ledger.AdminCommand // commands of Roost itself, after those of administrators
}

func newPendingEntry() pendingEntry {
	return pendingEntry{usageUpdates: map[fairshare.Submitter]coresInUse{}}
}

// coresInUse is how many cores a submitter uses in this pool and in other pools.
type coresInUse struct{ here, elsewhere float64 }

// takePendingEntry returns the entry to commit now. It returns false if there is none, or
// if it can wait for further decisions.
func (c *leaderState) takePendingEntry(now time.Time) (pendingEntry, bool) {
	d := c.pendingEntry
	if len(d.grants)+len(d.adminCommands) == 0 && (c.usageCommitBy.IsZero() || now.Before(c.usageCommitBy)) {
		return pendingEntry{}, false
	}
	c.pendingEntry, c.usageCommitBy = newPendingEntry(), time.Time{}
	return d, true
}

// logEntry returns the log entry of a pending entry.
func (c *leaderState) logEntry(d pendingEntry) *ledger.LogEntry {
	e := &ledger.LogEntry{Epoch: c.epoch, Grants: d.grantRecords, Ended: d.resolvedGrants, Pairs: d.avoidPairs}
	for _, who := range slices.SortedFunc(maps.Keys(d.usageUpdates), fairshare.Submitter.Compare) {
		e.Holds = append(e.Holds, ledger.UsageUpdate{Submitter: who, Cores: d.usageUpdates[who].here,
			Elsewhere: d.usageUpdates[who].elsewhere})
	}
	for _, w := range d.adminCommands {
		e.Commands = append(e.Commands, w.command)
	}
	e.Commands = append(e.Commands, d.ownCommands...)
	return e
}

// recordGrant writes the tasks of a grant, which get the next numbers, into the pending
// entry.
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

// sendCommitted sends the grants of a committed entry. If the session of a grant's schedd
// has ended in the meantime, the grant is dropped.
func (c *leaderState) sendCommitted(now time.Time, d pendingEntry) {
	for _, p := range d.grants {
		s := c.schedds[p.request.Schedd]
		if s == nil || s.sendQueue != p.sendQueue {
			c.grants().forgetGrant(now, p)
			c.changed = true
			continue
		}
		c.metrics.Grants.Inc(int(p.band), metrics.GrantMade)
		c.metrics.Preemptions.Add(float64(len(p.resources.Victims)), int(p.band))
		p.stage, p.deadline = granted, now.Add(grantTTL)
		c.grants().setNextSweep(p.deadline)
		s.sendQueue.putGrant(&wire.ToSchedd{Of: &wire.ToSchedd_Grant{Grant: p.message}}, d.proposedAt)
		p.message = nil
	}
}

// recordUsage records how many cores a submitter uses from now on. It does nothing before
// the machines are known, because usage of schedds that are away comes from their ads.
func (c *leaderState) recordUsage(now time.Time, who fairshare.Submitter, cores coresInUse) {
	if !c.synced || c.chargedCores[who] == cores.here && c.elsewhere.charged[who] == cores.elsewhere {
		return
	}
	c.chargedCores[who], c.pendingEntry.usageUpdates[who] = cores.here, cores
	if c.elsewhere.charged[who] = cores.elsewhere; cores.elsewhere == 0 {
		delete(c.elsewhere.charged, who)
	}
	if c.usageCommitBy.IsZero() {
		c.usageCommitBy = now.Add(usageCommitInterval)
	}
}
