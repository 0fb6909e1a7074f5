package query

import (
	"fmt"
	"slices"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/accounting"
)

// ReconcileLine compares a day of the accounts with the negotiator's ledger: that of one
// submitter, or the sum over all. Hours are core-hours that a dominant share is worth.
type ReconcileLine struct {
	Begin       Time    `json:"begin"` // of the first time that was compared on this day
	End         Time    `json:"end"`
	User        string  `json:"user,omitempty"`
	Group       string  `json:"group,omitempty"`
	LedgerHours float64 `json:"ledger_core_hours"`
	HeldHours   float64 `json:"held_core_hours"`      // by the accounts
	Different   float64 `json:"differing_core_hours"` // summed over submitters
	Difference  float64 `json:"difference"`           // part of the ledger's, rounded up to thousandths
	Warns       bool    `json:"warns"`                // it is more than 0.5 %, and more than a core-minute
}

// reconcile emits a line for each day, and each submitter if the question goes by owners.
func (q *Query) reconcile(p accounting.Reporter, emit func(line []byte) error) error {
	list, err := p.Reconciliations(q.timeRange())
	if err != nil {
		return err
	}
	if len(list) == 0 {
		return q.explainNoReconciliation(p)
	}
	filter := accounting.Filter{Owner: q.Owner, Group: q.Group}
	list = slices.DeleteFunc(list, func(r accounting.Reconciliation) bool {
		return !filter.MatchesJob(&accounting.JobEntry{Owner: r.Owner, Group: r.Group})
	})
	type lineKey struct {
		day accounting.Millis
		accounting.Submitter
	}
	var keys []lineKey // in the order of the list
	groups := map[lineKey][]accounting.Reconciliation{}
	for _, r := range list {
		key := lineKey{day: r.Range.From.Day()}
		if len(q.By) > 0 {
			key.Submitter = r.Submitter
		}
		if groups[key] == nil {
			keys = append(keys, key)
		}
		groups[key] = append(groups[key], r)
	}
	slices.SortStableFunc(keys, func(a, b lineKey) int {
		return accounting.Reconciliation{Range: accounting.TimeRange{From: a.day}, Submitter: a.Submitter}.Compare(
			accounting.Reconciliation{Range: accounting.TimeRange{From: b.day}, Submitter: b.Submitter})
	})
	lines := make([]ReconcileLine, 0, len(keys))
	for _, key := range keys {
		line := reconcileLine(groups[key])
		line.User, line.Group = key.Owner, key.Group
		lines = append(lines, line)
	}
	return emitAll(lines, nil, q.limit(), emit)
}

func reconcileLine(list []accounting.Reconciliation) ReconcileLine {
	d := accounting.SumReconciliations(list)
	return ReconcileLine{Begin: Time(d.Range.From), End: Time(d.Range.To), LedgerHours: coreHours(d.Ledger),
		HeldHours: coreHours(d.Held), Different: coreHours(d.Different), Difference: float64(d.Permille()) / 1000,
		Warns: d.Warns()}
}

// explainNoReconciliation returns why nothing is compared in the range.
func (q *Query) explainNoReconciliation(p accounting.Reporter) error {
	s, err := p.LedgerStatus()
	if err != nil {
		return err
	}
	text := func(at accounting.Millis) string { return at.Time().Format(time.RFC3339) }
	var why string
	switch {
	case s.Compared != 0:
		why = fmt.Sprintf("nobody used anything then, or the accountant was not running; the accounts are compared up "+
			"to %s", text(s.Compared))
	case s.Samples == 0:
		why = "the accountant has no sample of the negotiator's ledger yet; its log says why, if this lasts"
	case s.Samples == 1:
		why = fmt.Sprintf("the accountant has one sample of the negotiator's ledger, of %s; two are compared, and the "+
			"next one is taken after reconcile_every, an hour by default", text(s.Last))
	default:
		why = fmt.Sprintf("the samples of the negotiator's ledger since %s are not old enough to be compared, or a "+
			"schedd's feed is not complete up to then; roost report sources says which", text(s.First))
	}
	return fmt.Errorf("reconcile: %w: no comparison of the accounts with the ledger begins between %s and %s: %s",
		roost.NotFound, text(q.From), text(q.To), why)
}
