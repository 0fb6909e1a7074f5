package negotiator

import (
	"slices"
	"time"

	"github.com/roost-batch/roost/negotiator/cellstate"
	"github.com/roost-batch/roost/negotiator/ledger"
	"github.com/roost-batch/roost/negotiator/match"
)

// If production comes and goes, it could preempt the same tasks repeatedly, and they
// would make no progress. The settings disruptions_per_job and disruptions_per_cell bound
// the preemptions in an hour. The leader counts the victims of a grant when it is added
// to the pending entry. They are in the log with the grant, where the next leader finds
// them.

// evictionMemory is how long an eviction counts.
const evictionMemory = ledger.EvictionMemory

// recentEvictions are the recently granted evictions, oldest first.
type recentEvictions []cellstate.TaskEviction

func (d *recentEvictions) addEvictions(now time.Time, job string) {
	*d = append(*d, cellstate.TaskEviction{At: now, Job: job})
}

// loadFromLedger continues the count of the log. Its times are by the clock of an earlier
// leader; those in the future of this one's clock count as now.
func (d *recentEvictions) loadFromLedger(now time.Time, all []ledger.TaskEviction) {
	for _, e := range all {
		at := time.Unix(0, e.At)
		if at.After(now) {
			at = now
		}
		d.addEvictions(at, e.Job)
	}
}

// dropOld drops evictions of more than an hour ago.
func (d *recentEvictions) dropOld(now time.Time) {
	n := 0
	for n < len(*d) && now.Sub((*d)[n].At) >= evictionMemory {
		n++
	}
	*d = slices.Delete(*d, 0, n)
}

// countVictims counts the victims of a grant.
func (c *leaderState) countVictims(now time.Time, g *match.Grant) {
	entry := &c.pendingEntry.grantRecords[len(c.pendingEntry.grantRecords)-1]
	for i := range g.Machine.Claims {
		if v := &g.Machine.Claims[i]; slices.Contains(g.Victims, v.ID) {
			c.recentEvictions.addEvictions(now, v.JobName())
			entry.Evicted = append(entry.Evicted, v.JobName())
			c.log.Info("a claim is to be evicted", "machine", g.Machine.Name, "claim", v.ID, "job", v.Job, "of",
				v.Submitter, "for", g.Request.Submitter, "why", g.EvictionReason)
		}
	}
}
