package suspect

import (
	"fmt"
	"strings"
	"time"
)

// evidence is what the remembered outcomes of one machine say against it, of all submitters or of some.
type evidence struct {
	here    tally // all outcomes there
	rest    tally // those of all other machines
	onTrial tally // since its trial began
	counted int   // failures that count against it
	jobs    map[job]bool
	owners  map[string]bool
	nodes   map[string]bool // that submitted those
	common  bool            // most submitters are told the same of other machines: the pool is at fault, or what it shares
	last    string          // reason that was given

	of map[Submitter]*evidence // the same by submitter, and by submit node; nil in these, and where there is too little of it
}

func newEvidence() *evidence {
	return &evidence{jobs: map[job]bool{}, owners: map[string]bool{}, nodes: map[string]bool{}}
}

// evidence collects what counts against a machine: failures within [Quick] that it reports as its own fault, unless other machines say so to the same
// submitter, or those of jobs that go well elsewhere.
func (b *Book) evidence(now time.Time, m *machine) *evidence {
	e := newEvidence()
	e.onTrial = m.onTrial
	jobs, users := map[job]*tally{}, map[Submitter]*tally{}
	for i := range m.events {
		o := &m.events[i].Outcome
		addTo(jobs, o.job(), o, 1)
		addTo(users, o.Submitter, o, 1)
	}
	counts := make([]bool, len(m.events))
	for i := range m.events {
		o := &m.events[i].Outcome
		elsewhere := b.jobs[o.job()].less(*jobs[o.job()])
		counts[i] = o.swallowed() && now.Sub(m.events[i].at) < Window &&
			(o.Verdict == Spoiled && !b.users[o.Submitter].less(*users[o.Submitter]).spoilt() || elsewhere.good > elsewhere.bad)
		e.add(o, counts[i])
	}
	e.rest = b.all.less(e.here)
	if e.counted < TrialBad {
		return e
	}
	e.common, e.of = b.common(users), map[Submitter]*evidence{}
	for i := range m.events {
		o := &m.events[i].Outcome
		for _, who := range [...]Submitter{o.Submitter, {Node: o.Node}} {
			if e.of[who] == nil {
				e.of[who] = newEvidence()
				e.of[who].rest, e.of[who].common = e.rest, e.common
			}
			e.of[who].add(o, counts[i])
		}
	}
	return e
}

// common reports whether most submitters with outcomes on other machines, and more than one, have many spoiled ones there.
func (b *Book) common(here map[Submitter]*tally) bool {
	n, spoilt := 0, 0
	for who, t := range b.users {
		rest := *t
		if own := here[who]; own != nil {
			rest = rest.less(*own)
		}
		if rest.good+rest.bad > 0 {
			n++
		}
		if rest.spoilt() {
			spoilt++
		}
	}
	return spoilt >= 2 && 2*spoilt > n
}

func (e *evidence) add(o *Outcome, counts bool) {
	e.here.add(o, 1)
	if !counts {
		return
	}
	e.counted++
	e.jobs[o.job()], e.owners[o.Owner], e.nodes[o.Node] = true, true, true
	if o.Reason != "" {
		e.last = o.Reason
	}
}

// suffices reports whether there is enough of it, whoever it is from. Of two jobs, all that is remembered has to count: while two long arrays run, nothing else
// may come to that machine for as long as they last.
func (e *evidence) suffices() bool {
	enough := e.counted >= MinFailures && len(e.jobs) >= MinJobs || len(e.jobs) == 2 && e.counted >= 2*perJob
	return enough && e.counted >= 4*e.here.good && !e.common
}

// convicts reports whether a machine is to be drained for all: neither one owner nor, where there are several, one submit node brings that about alone.
func (e *evidence) convicts(onTrial bool, nodes int) bool {
	enough := e.suffices()
	if onTrial {
		enough = e.onTrial.bad >= TrialBad && e.counted >= TrialBad && e.onTrial.bad > e.onTrial.good
	}
	return enough && len(e.owners) >= 2 && len(e.nodes) >= nodes
}

func (e *evidence) text() string {
	text := fmt.Sprintf("%d attempts of %d jobs failed there within %v of their start", e.counted, len(e.jobs), Quick)
	if n := e.rest.good + e.rest.bad; n > 0 {
		text += fmt.Sprintf("; elsewhere %d of %d went well", e.rest.good, n)
	}
	if e.last != "" {
		text += "; the last: " + strings.TrimSpace(e.last)
	}
	return text
}
