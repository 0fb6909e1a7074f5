package negotiator

import (
	"slices"
	"time"

	"github.com/roost-batch/roost/negotiator/ledger"
	"github.com/roost-batch/roost/negotiator/match"
	"github.com/roost-batch/roost/negotiator/picture"
)

// A pool in which production comes and goes could displace the same tasks again and again, and none would get anywhere. The settings
// disruptions_per_job and disruptions_per_cell say how many may be displaced in an hour. The leader counts what it grants at the expense of others as soon as
// it is drafted; with the grant it stands in the log, where the next leader finds it.

// remembered is for how long a disruption counts.
const remembered = ledger.EvictionLife

// disruptions are the evictions that were granted lately, oldest first.
type disruptions []picture.Eviction

func (d *disruptions) add(now time.Time, job string) {
	*d = append(*d, picture.Eviction{At: now, Job: job})
}

// inherit counts on from what the log says. Its times are of the clock of the leader before: what lies in the future of this one's was just now.
func (d *disruptions) inherit(now time.Time, all []ledger.Eviction) {
	for _, e := range all {
		at := time.Unix(0, e.At)
		if at.After(now) {
			at = now
		}
		d.add(at, e.Job)
	}
}

// lapse forgets those of more than an hour ago.
func (d *disruptions) lapse(now time.Time) {
	n := 0
	for n < len(*d) && now.Sub((*d)[n].At) >= remembered {
		n++
	}
	*d = slices.Delete(*d, 0, n)
}

// disrupt counts the victims of a grant.
func (c *cell) disrupt(now time.Time, g *match.Grant) {
	entry := &c.draft.writes[len(c.draft.writes)-1]
	for i := range g.Machine.Claims {
		if v := &g.Machine.Claims[i]; slices.Contains(g.Victims, v.ID) {
			c.evicted.add(now, v.JobName())
			entry.Evicted = append(entry.Evicted, v.JobName())
			c.log.Info("a claim is to make room", "machine", g.Machine.Name, "claim", v.ID, "job", v.Job, "of", v.Submitter, "for", g.Request.Submitter, "why", g.Why)
		}
	}
}
