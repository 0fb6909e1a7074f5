package suspect

import (
	"maps"
	"slices"
	"time"
)

// Drain is a machine that is to be drained by itself.
type Drain struct {
	Machine string
	Until   time.Time
	Reason  string
}

// Pool is what the judge has to know of the pool.
type Pool struct {
	Machines    int
	Drained     int // of those, by administrators
	SubmitNodes int // that submit jobs now
}

// Judge says which machines are to be drained from now on, and which are to be avoided by whom.
func (b *Book) Judge(now time.Time, pool Pool) (drains []Drain, avoid []Avoidance) {
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
		if m != nil && m.state != drained && (bySelf >= max(1, pool.Machines/DrainPart) || pool.Machines-pool.Drained-bySelf < 2) {
			continue // it is judged when others are trusted again
		}
		if delete(b.news, name); m == nil || m.state == drained {
			continue
		}
		against := b.evidence(now, m)
		if !against.convicts(m.state == trial, min(2, pool.SubmitNodes)) {
			if m.swallowed() >= MinFailures {
				b.news[name] = true // how the same jobs fare elsewhere may be known later
			}
			avoid = append(avoid, b.avoidedBy(now, name, against, pool)...)
			continue
		}
		m.last = min(max(2*m.last, FirstDrain), LongestDrain)
		m.state, m.until, m.reason = drained, now.Add(m.last), against.text()
		b.watched[name] = true
		b.drop(m, 0, len(m.events))
		bySelf++
		drains = append(drains, Drain{name, m.until, m.reason})
	}
	return drains, avoid
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
	for key := range b.avoided {
		if key.machine == name {
			delete(b.avoided, key)
		}
	}
	if m := b.machines[name]; m != nil {
		b.drop(m, 0, len(m.events))
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
