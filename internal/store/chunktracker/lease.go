package chunktracker

import (
	"slices"
	"time"
)

// lease is a source of a member, from the plan until its result.
type lease struct {
	from    *machine
	to      *member
	chunks  []int
	expires time.Duration
	ended   bool
}

// startLease counts a source.
func (t *Tracker) startLease(now time.Duration, from *machine, to *member, chunks []int) {
	l := &lease{from: from, to: to, chunks: chunks, expires: now + t.options.LeaseTime}
	if from == &t.seed {
		l.expires = now + t.options.SeedLeaseTime
		t.seedLeases = append(t.seedLeases, l)
	} else {
		t.leases = append(t.leases, l)
	}
	from.uploads++
	to.leases = append(to.leases, l)
	for _, i := range chunks {
		to.coming.Add(i)
		to.blob.all.coming[i]++
		to.rack.counts.coming[i]++
		if from == &t.seed {
			to.blob.seedCopies[i]++
		}
	}
}

// endLease ends the counting of a source. An ended one is left alone.
func (t *Tracker) endLease(l *lease) {
	if l.ended {
		return
	}
	l.ended = true
	l.from.uploads--
	l.to.leases = slices.DeleteFunc(l.to.leases, func(o *lease) bool { return o == l })
	for _, i := range l.chunks {
		l.to.coming.Remove(i)
		l.to.blob.all.coming[i]--
		l.to.rack.counts.coming[i]--
	}
}

// report is what a node says against a source.
type report struct {
	node  string
	until time.Duration
	bars  bool // others may be barred by it
}

// Bounds of reports.
const (
	maxReports = 32 // about one machine
	busyTime   = time.Second
)

// endSource ends a source of a member by its result. A result of a source that it does
// not have is ignored: nobody reports what it did not try.
func (t *Tracker) endSource(now time.Duration, m *member, r Result) {
	at := slices.IndexFunc(m.leases, func(l *lease) bool { return l.from.id == r.Machine })
	if at < 0 {
		return
	}
	l := m.leases[at]
	t.endLease(l)
	if l.from == &t.seed {
		if r.Outcome != Arrived { // what was not sent is no copy
			for _, i := range l.chunks {
				m.blob.seedCopies[i]--
			}
		}
		return
	}
	m.failures++
	switch r.Outcome {
	case Arrived:
		m.failures = 0
	case Damaged:
		t.addReport(now, l.from, report{m.machine.id.Node, now + t.options.DamageTime, true})
	case Slow, Missing:
		t.addReport(now, l.from, report{m.machine.id.Node, now + t.options.SlowTime, true})
	case Busy:
		t.addReport(now, l.from, report{m.machine.id.Node, now + busyTime, false})
	}
}

// addReport notes a report about a source. When enough nodes have reported it, nobody
// fetches from it while their reports count.
func (t *Tracker) addReport(now time.Duration, about *machine, r report) {
	about.reports = slices.DeleteFunc(about.reports, func(o report) bool { return o.until <= now })
	at := slices.IndexFunc(about.reports, func(o report) bool { return o.node == r.node && o.bars == r.bars })
	switch {
	case at >= 0:
		about.reports[at].until = max(about.reports[at].until, r.until)
	case len(about.reports) < maxReports:
		about.reports = append(about.reports, r)
	}
	var untils []time.Duration
	for _, o := range about.reports {
		if o.bars && o.node != about.id.Node {
			untils = append(untils, o.until)
		}
	}
	if len(untils) < t.options.MinReporters {
		return
	}
	slices.Sort(untils)
	about.barredUntil = untils[len(untils)-t.options.MinReporters]
	for b, m := range about.members {
		b.setServes(m, false)
	}
}

// isReportedBy reports whether a node has reported a source, and its report counts.
func (m *machine) isReportedBy(now time.Duration, node string) bool {
	for _, r := range m.reports {
		if r.node == node && r.until > now {
			return true
		}
	}
	return false
}
