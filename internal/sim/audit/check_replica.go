package audit

import (
	"math"
	"time"
)

// entryDigest is the state that was seen after an entry of the log first.
type entryDigest struct {
	node   string
	digest uint64
}

// checkDigest holds replicas against P7. The same replica may be seen at an entry more
// than once: it reads its log again when it starts.
func (a *Auditor) checkDigest(s *Event) {
	first, ok := a.entries[s.Entry]
	if !ok {
		a.entries[s.Entry] = entryDigest{s.Node, s.Digest}
		a.applyEntryTime(s)
		return
	}
	if first.digest != s.Digest {
		about := func(o *Event) bool { return o.Type == Digested && o.Entry == s.Entry }
		a.addViolation(7, about, "after entry %d %s has the state %016x, and %s %016x", s.Entry, first.node,
			first.digest, s.Node, s.Digest)
	}
}

// applyEntryTime takes in the time of an entry that nobody had before. It falls when a
// clock that was wrong is put right, and then everybody is charged from there on.
func (a *Auditor) applyEntryTime(s *Event) {
	if s.Entry <= a.lastEntry {
		return
	}
	if a.lastEntry = s.Entry; s.Until < a.ledgerTime {
		for _, acc := range a.accounts {
			acc.since = min(acc.since, s.Until)
		}
	}
	a.ledgerTime = s.Until
}

// usageAccount is what somebody has used, as it adds up from what the log says of each
// time.
type usageAccount struct {
	cores float64
	since time.Duration
	sum   float64 // core-seconds up to then
}

// usageReport is what a replica says that somebody has used.
type usageReport struct{ node, who string }

// Rounding may part the two sums of what somebody has used by so much, of one and in
// core-seconds.
const (
	usageTolerance    = 1e-6
	minUsageTolerance = 1e-3
)

// checkUsage holds the accounts against P6. What is charged is the use that the log tells
// of, for as long as it told of it: the sum of that is made here once more, in the
// simplest way, so that what is charged twice, or to nobody, shows.
func (a *Auditor) checkUsage(s *Event) {
	acc := a.accounts[s.Submitter]
	if acc == nil {
		acc = &usageAccount{since: s.Until}
		a.accounts[s.Submitter] = acc
	}
	about := func(o *Event) bool {
		return (o.Type == UsageRateSet || o.Type == UsageReported) && o.Submitter == s.Submitter
	}
	if s.Type == UsageRateSet {
		if s.Entry >= a.lastEntry { // others hear of it later
			acc.sum += acc.cores * max(s.Until-acc.since, 0).Seconds()
			acc.cores, acc.since = s.Amount, s.Until
		}
		return
	}
	last, had := a.usageReports[usageReport{s.Node, s.Submitter}]
	switch {
	case s.Amount < 0 || math.IsNaN(s.Amount) || math.IsInf(s.Amount, 0):
		a.addViolation(6, about, "%s has used %v core-seconds by %s", s.Submitter, s.Amount, s.Node)
	case had && last.Entry <= s.Entry && last.Until <= s.Until && s.Amount < last.Amount-minUsageTolerance:
		a.addViolation(6, about, "%s had used %.3f core-seconds by %s, and has used %.3f now", s.Submitter, last.Amount,
			s.Node, s.Amount)
	}
	a.usageReports[usageReport{s.Node, s.Submitter}] = *s
	if s.Entry < a.lastEntry {
		return // a replica that is behind: what others had then is in the digest
	}
	want := acc.sum + acc.cores*max(s.Until-acc.since, 0).Seconds()
	if math.Abs(s.Amount-want) > minUsageTolerance+usageTolerance*want {
		a.addViolation(6, about, "%s has used %.3f core-seconds by %s, and by what the log says %.3f", s.Submitter,
			s.Amount, s.Node, want)
	}
}
