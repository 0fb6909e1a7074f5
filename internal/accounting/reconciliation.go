package accounting

import (
	"cmp"
	"strings"
)

// LedgerSample is what the negotiator's ledger says at one instant.
type LedgerSample struct {
	At   Millis
	Used []SubmitterUse
}

// SubmitterUse is what a submitter has used so far by the ledger.
type SubmitterUse struct {
	Submitter
	Used int64 // core-milliseconds that its dominant share of the pool was worth
}

// Submitter is an account of the ledger: an owner on behalf of a group, or of none.
type Submitter struct{ Owner, Group string }

// Compare orders submitters by owner, then by group.
func (s Submitter) Compare(t Submitter) int {
	return cmp.Or(strings.Compare(s.Owner, t.Owner), strings.Compare(s.Group, t.Group))
}

// RunningAttempt is a live attempt, which no feed has yet, and whose it is.
type RunningAttempt struct {
	Submitter
	Attempt AttemptEntry
}

// Reconciliation compares what a submitter's attempts held with the negotiator's ledger,
// between two samples of the ledger. Both amounts are core-milliseconds that the dominant
// share of the pool was worth, which is what the ledger counts.
type Reconciliation struct {
	Submitter
	Range  TimeRange
	Ledger int64 // by how much the ledger has risen
	Held   int64 // what attempts held
	Made   Millis
}

// Compare orders comparisons by time, then by submitter.
func (r Reconciliation) Compare(o Reconciliation) int {
	return cmp.Or(cmp.Compare(r.Range.From, o.Range.From), r.Submitter.Compare(o.Submitter))
}

// The greatest difference that is normal. A claim begins a little before its attempt and
// ends a little after it, so that a pool with little work differs by seconds.
const (
	maxDifferencePermille = 5
	minDifference         = 60_000 // core-milliseconds
)

// LedgerDifference is by how much the accounts differ from the ledger.
type LedgerDifference struct {
	Range     TimeRange // from the begin of the first comparison to the end of the last
	Ledger    int64     // core-milliseconds, as are the others
	Held      int64
	Different int64 // what differs, summed over submitters
}

// SumReconciliations sums comparisons. Differences of one submitter cancel each other out
// over time; those of different submitters do not: an attempt that is charged to somebody
// else differs twice.
func SumReconciliations(list []Reconciliation) (d LedgerDifference) {
	bySubmitter := map[Submitter]int64{}
	for i := range list {
		r := &list[i]
		if i == 0 {
			d.Range = r.Range
		}
		d.Range = TimeRange{From: min(d.Range.From, r.Range.From), To: max(d.Range.To, r.Range.To)}
		d.Ledger += r.Ledger
		d.Held += r.Held
		bySubmitter[r.Submitter] += r.Held - r.Ledger
	}
	for _, n := range bySubmitter {
		d.Different += max(n, -n)
	}
	return d
}

// Permille returns what differs in thousandths of the ledger, rounded up.
func (d *LedgerDifference) Permille() int64 {
	if d.Different == 0 {
		return 0
	}
	if d.Ledger <= 0 {
		return 1000
	}
	return mulDiv(d.Different, 1000, d.Ledger) + 1
}

// Warns reports whether more than 0.5 % differs, and more than a core-minute.
func (d *LedgerDifference) Warns() bool {
	return d.Permille() > maxDifferencePermille && d.Different > minDifference
}

// Ratio returns the part of the ledger that differs. Up to a core-minute counts as 0.
func (d *LedgerDifference) Ratio() float64 {
	switch {
	case d.Different <= minDifference:
		return 0
	case d.Ledger <= 0:
		return 1
	}
	return float64(d.Different) / float64(d.Ledger)
}

// LedgerIncrease returns by how much each submitter's use has risen between two samples.
// That of one whose use was reset is negative.
func LedgerIncrease(from, to *LedgerSample) map[Submitter]int64 {
	rises := map[Submitter]int64{}
	for _, u := range to.Used {
		rises[u.Submitter] += u.Used
	}
	for _, u := range from.Used {
		rises[u.Submitter] -= u.Used
	}
	return rises
}

// LedgerStatus is how far the accounts have been compared with the ledger.
type LedgerStatus struct {
	Samples  int    // that wait for their comparison
	First    Millis // of these
	Last     Millis
	Next     Millis // the second of them: the end of the time that is compared next; 0: there is one at most
	Compared Millis // everything before it has been compared; 0: nothing has
}
