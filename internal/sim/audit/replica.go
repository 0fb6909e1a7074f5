package audit

import (
	"math"
	"time"
)

// digested is the state that was seen after an entry of the log first.
type digested struct {
	node   string
	digest uint64
}

// seeDigest holds replicas against P7. The same replica may be seen at an entry more than once: it reads its log again when it starts.
func (a *Auditor) seeDigest(s *Seen) {
	first, ok := a.entries[s.Entry]
	if !ok {
		a.entries[s.Entry] = digested{s.Node, s.Digest}
		a.next(s)
		return
	}
	if first.digest != s.Digest {
		about := func(o *Seen) bool { return o.What == Digested && o.Entry == s.Entry }
		a.breach(7, about, "after entry %d %s has the state %016x, and %s %016x", s.Entry, first.node, first.digest, s.Node, s.Digest)
	}
}

// next takes in the time of an entry that nobody had before. It falls when a clock that was wrong is put right, and then everybody is charged from there on.
func (a *Auditor) next(s *Seen) {
	if s.Entry <= a.entry {
		return
	}
	if a.entry = s.Entry; s.Until < a.clock {
		for _, acc := range a.accounts {
			acc.since = min(acc.since, s.Until)
		}
	}
	a.clock = s.Until
}

// account is what somebody has used, as it adds up from what the log says of each time.
type account struct {
	cores float64
	since time.Duration
	sum   float64 // core-seconds up to then
}

// usage is what a replica says that somebody has used.
type usage struct{ node, who string }

// Rounding may part the two sums of what somebody has used by so much, of one and in core-seconds.
const (
	near  = 1e-6
	least = 1e-3
)

// seeUse holds the accounts against P6. What is charged is the use that the log tells of, for as long as it told of it: the sum of that is made here once
// more, in the simplest way, so that what is charged twice, or to nobody, shows.
func (a *Auditor) seeUse(s *Seen) {
	acc := a.accounts[s.Who]
	if acc == nil {
		acc = &account{since: s.Until}
		a.accounts[s.Who] = acc
	}
	about := func(o *Seen) bool { return (o.What == Rated || o.What == Used) && o.Who == s.Who }
	if s.What == Rated {
		if s.Entry >= a.entry { // others hear of it later
			acc.sum += acc.cores * max(s.Until-acc.since, 0).Seconds()
			acc.cores, acc.since = s.Amount, s.Until
		}
		return
	}
	last, had := a.used[usage{s.Node, s.Who}]
	switch {
	case s.Amount < 0 || math.IsNaN(s.Amount) || math.IsInf(s.Amount, 0):
		a.breach(6, about, "%s has used %v core-seconds by %s", s.Who, s.Amount, s.Node)
	case had && last.Entry <= s.Entry && last.Until <= s.Until && s.Amount < last.Amount-least:
		a.breach(6, about, "%s had used %.3f core-seconds by %s, and has used %.3f now", s.Who, last.Amount, s.Node, s.Amount)
	}
	a.used[usage{s.Node, s.Who}] = *s
	if s.Entry < a.entry {
		return // a replica that is behind: what others had then is in the digest
	}
	want := acc.sum + acc.cores*max(s.Until-acc.since, 0).Seconds()
	if math.Abs(s.Amount-want) > least+near*want {
		a.breach(6, about, "%s has used %.3f core-seconds by %s, and by what the log says %.3f", s.Who, s.Amount, s.Node, want)
	}
}
