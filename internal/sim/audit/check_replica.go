package audit

import (
	"math"
	"time"
)

// logEntry is an entry of a replicated log: that of the central managers, which has no
// name, or a queue's.
type logEntry struct {
	log   string
	index uint64
}

// entryDigest is the first digest seen after an entry of the replicated log.
type entryDigest struct {
	node   string
	digest uint64
}

// checkDigest checks P7. A replica may report an entry more than once, because it reads
// its log again when it restarts.
func (a *Auditor) checkDigest(s *Event) {
	entry := logEntry{s.Key, s.Entry}
	first, ok := a.entries[entry]
	if !ok {
		a.entries[entry] = entryDigest{s.Node, s.Digest}
		if s.Key == "" {
			a.applyEntryTime(s)
		}
		return
	}
	if first.digest != s.Digest {
		about := func(o *Event) bool { return o.Type == Digested && o.Entry == s.Entry && o.Key == s.Key }
		a.addViolation(7, about, "after entry %d %s has the state %016x, and %s %016x", s.Entry, first.node,
			first.digest, s.Node, s.Digest)
	}
}

// applyEntryTime applies the ledger time of a new entry. The time goes back when a wrong
// clock is corrected; then usage is charged from the earlier time on.
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

// usageAccount is a submitter's usage as the auditor computes it from the log.
type usageAccount struct {
	cores float64
	since time.Duration
	sum   float64 // core-seconds up to since
}

// usageReport identifies the usage of a submitter in the ledger of a replica.
type usageReport struct{ node, who string }

// How far two sums of a submitter's usage may differ by rounding. It is a part of the sum
// plus a constant in core-seconds.
const (
	usageTolerance    = 1e-6
	minUsageTolerance = 1e-3
)

// checkUsage checks P6. It adds up the use of each submitter from the log once more, in
// the simplest way. A charge that is made twice or not at all shows as a difference.
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
		if s.Entry >= a.lastEntry { // the other replicas apply the entry later
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
		return // the replica is behind: the digest covers the usage at that entry
	}
	want := acc.sum + acc.cores*max(s.Until-acc.since, 0).Seconds()
	if math.Abs(s.Amount-want) > minUsageTolerance+usageTolerance*want {
		a.addViolation(6, about, "%s has used %.3f core-seconds by %s, and by what the log says %.3f", s.Submitter,
			s.Amount, s.Node, want)
	}
}
