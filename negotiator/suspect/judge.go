package suspect

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// Drain is a machine that is to be drained by itself.
type Drain struct {
	Machine string
	Until   time.Time
	Reason  string
}

// Judge says which machines are to be drained from now on. Of the pool it has to know how many machines it has, and how many of these are drained by
// administrators.
func (b *Book) Judge(now time.Time, pool, others int) (drains []Drain) {
	b.sweep(now)
	bySelf := 0
	for name := range b.watched {
		b.news[name] = true
		m := b.machines[name]
		if m.state == drained && !now.Before(m.until) {
			m.state, m.onTrial = trial, tally{}
		}
		if m.state == trial && m.onTrial.good >= TrialGood {
			m.state, m.last = trusted, 0
			delete(b.watched, name)
		}
		if m.state == drained {
			bySelf++
		}
	}
	for _, name := range slices.Sorted(maps.Keys(b.news)) {
		m := b.machines[name]
		if m != nil && m.state != drained && (bySelf >= max(1, pool/DrainPart) || pool-others-bySelf < 2) {
			continue // it is judged when others are trusted again
		}
		if delete(b.news, name); m == nil || m.state == drained {
			continue
		}
		reason, guilty := b.guilty(now, m)
		if !guilty {
			if m.swallowed() >= MinFailures {
				b.news[name] = true // how the same jobs fare elsewhere may be known later
			}
			continue
		}
		m.last = min(max(2*m.last, FirstDrain), LongestDrain)
		m.state, m.until, m.reason = drained, now.Add(m.last), reason
		b.watched[name] = true
		b.drop(m, len(m.events))
		bySelf++
		drains = append(drains, Drain{name, m.until, reason})
	}
	return drains
}

// Wonders reports whether what ends on any machine now may decide about another.
func (b *Book) Wonders() bool { return len(b.news) > 0 }

func (m *machine) swallowed() (n int) {
	for i := range m.events {
		if m.events[i].swallowed() {
			n++
		}
	}
	return n
}

// guilty reports whether a machine swallows tasks.
func (b *Book) guilty(now time.Time, m *machine) (reason string, guilty bool) {
	here, counted, jobs, owners, last := tally{}, 0, map[string]bool{}, map[string]bool{}, ""
	mine := map[string]*tally{}
	for i := range m.events {
		o := &m.events[i].Outcome
		here.add(o, 1)
		if mine[o.Job] == nil {
			mine[o.Job] = &tally{}
		}
		mine[o.Job].add(o, 1)
	}
	for i := range m.events {
		o := &m.events[i].Outcome
		elsewhere := b.jobs[o.Job].less(*mine[o.Job])
		if !o.swallowed() || now.Sub(m.events[i].at) >= Window || o.Verdict != Spoiled && elsewhere.good <= elsewhere.bad {
			continue
		}
		counted++
		jobs[o.Job], owners[o.Owner] = true, true
		if o.Reason != "" {
			last = o.Reason
		}
	}
	rest := b.all.less(here)
	switch {
	case m.state == trial:
		guilty = m.onTrial.bad >= TrialBad && counted >= TrialBad && m.onTrial.bad > m.onTrial.good
	default:
		guilty = counted >= MinFailures && len(jobs) >= MinJobs && len(owners) >= min(2, len(b.owners)) &&
			5*counted >= 4*(here.good+here.bad) && 4*rest.spoiled <= rest.good+rest.bad
	}
	if !guilty {
		return "", false
	}
	reason = fmt.Sprintf("%d attempts of %d jobs failed there within %v of their start", counted, len(jobs), Quick)
	if n := rest.good + rest.bad; n > 0 {
		reason += fmt.Sprintf("; elsewhere %d of %d went well", rest.good, n)
	}
	if last != "" {
		reason += "; the last: " + strings.TrimSpace(last)
	}
	return reason, true
}

// Drained lists the machines that are drained by themselves, by name.
func (b *Book) Drained(now time.Time) (list []Drain) {
	for _, name := range slices.Sorted(maps.Keys(b.watched)) {
		if m := b.machines[name]; m.state == drained && now.Before(m.until) {
			list = append(list, Drain{name, m.until, m.reason})
		}
	}
	return list
}

// Trials lists the machines that are on trial, by name.
func (b *Book) Trials(now time.Time) (names []string) {
	for _, name := range slices.Sorted(maps.Keys(b.watched)) {
		if m := b.machines[name]; m.state == trial || m.state == drained && !now.Before(m.until) {
			names = append(names, name)
		}
	}
	return names
}

// Trust forgets what was held against a machine.
func (b *Book) Trust(name string) {
	if m := b.machines[name]; m != nil {
		b.drop(m, len(m.events))
		delete(b.machines, name)
		delete(b.watched, name)
	}
}

// Due is when the next drain is over; zero for never.
func (b *Book) Due() (at time.Time) {
	for name := range b.watched {
		if m := b.machines[name]; m.state == drained && (at.IsZero() || m.until.Before(at)) {
			at = m.until
		}
	}
	return at
}

// Known takes in a drain of an earlier leader's.
func (b *Book) Known(d Drain) {
	b.open()
	if b.machines[d.Machine] == nil {
		b.watched[d.Machine] = true
		b.machines[d.Machine] = &machine{state: drained, until: d.Until, reason: d.Reason, last: FirstDrain}
	}
}
