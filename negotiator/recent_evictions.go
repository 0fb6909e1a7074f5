package negotiator

import (
	"slices"
	"time"

	"github.com/roost-batch/roost/negotiator/cellstate"
	"github.com/roost-batch/roost/negotiator/ledger"
	"github.com/roost-batch/roost/negotiator/match"
)

// A pool in which production comes and goes could displace the same tasks again and
// again, and none would get anywhere. The settings disruptions_per_job and
// disruptions_per_cell say how many may be displaced in an hour. The leader counts what
// it grants at the expense of others as soon as it is drafted; with the grant it stands
// in the log, where the next leader finds it.

// evictionMemory is for how long a disruption counts.
const evictionMemory = ledger.EvictionMemory

// recentEvictions are the evictions that were granted lately, oldest first.
type recentEvictions []cellstate.TaskEviction

func (d *recentEvictions) addEvictions(now time.Time, job string) {
	*d = append(*d, cellstate.TaskEviction{At: now, Job: job})
}

// loadFromLedger counts on from what the log says. Its times are of the clock of the
// leader before: what lies in the future of this one's was just now.
func (d *recentEvictions) loadFromLedger(now time.Time, all []ledger.TaskEviction) {
	for _, e := range all {
		at := time.Unix(0, e.At)
		if at.After(now) {
			at = now
		}
		d.addEvictions(at, e.Job)
	}
}

// dropOld forgets those of more than an hour ago.
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
			c.log.Info("a claim is to make room", "machine", g.Machine.Name, "claim", v.ID, "job", v.Job, "of",
				v.Submitter, "for", g.Request.Submitter, "why", g.EvictionReason)
		}
	}
}
