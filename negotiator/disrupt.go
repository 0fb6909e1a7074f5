package negotiator

import (
	"maps"
	"slices"
	"time"

	"github.com/roost-batch/roost/negotiator/ledger"
	"github.com/roost-batch/roost/negotiator/match"
)

// A pool in which production comes and goes could displace the same tasks again and again, and none would get anywhere. The settings
// disruptions_per_job and disruptions_per_cell say how many may be displaced in an hour. The leader counts what it grants at the expense of others as soon as
// it is drafted; with the grant it stands in the log, where the next leader finds it.

// remembered is for how long a disruption counts.
const remembered = ledger.EvictionLife

// disruptions are the evictions that were granted lately.
type disruptions struct {
	list  []disruption // oldest first
	byJob map[string]int
}

type disruption struct {
	at  time.Time
	job string // "" where the machine's ad named none
}

func (d *disruptions) add(now time.Time, job string) {
	if d.byJob == nil {
		d.byJob = map[string]int{}
	}
	d.list = append(d.list, disruption{now, job})
	d.byJob[job]++
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
	for n < len(d.list) && now.Sub(d.list[n].at) >= remembered {
		job := d.list[n].job
		if d.byJob[job]--; d.byJob[job] == 0 {
			delete(d.byJob, job)
		}
		n++
	}
	d.list = slices.Delete(d.list, 0, n)
}

// preemption is who may be displaced now.
func (c *cell) preemption(now time.Time) match.Preemption {
	c.evicted.lapse(now)
	p := match.Preemption{Bounded: true, Evicted: maps.Clone(c.evicted.byJob)}
	c.record.look(func(l *ledger.Ledger) {
		p.PerJob = int(l.Number(ledger.DisruptionsPerJob))
		p.Cell = max(0, int(l.Number(ledger.DisruptionsPerCell))-len(c.evicted.list))
		if text := l.Text(ledger.PreemptionRequirements); text != "" && text != "false" {
			p.Fair = &match.FairShare{Allows: l.Expression(ledger.PreemptionRequirements), MinRuntime: l.Duration(ledger.PreemptionMinRuntime)}
		}
	})
	return p
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

// rate adds to a snapshot how those stand who want nothing and use something: fair share may displace them.
func (c *cell) rate(now time.Time, s *match.Snapshot) {
	c.record.look(func(l *ledger.Ledger) {
		for who := range c.charged {
			if _, known := s.Standing[who]; !known {
				s.Standing[who] = match.Standing{Effective: l.Book().Effective(now, who), Held: c.used(who)}
			}
		}
	})
}
