package query

import (
	"fmt"
	"slices"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/accounting"
)

// StatementDocument is what a payer is charged for a month. Lines and adjustments less
// the grant sum to Total.
type StatementDocument struct {
	Payer       Payer            `json:"payer"`
	Month       Month            `json:"month"`
	Closed      Time             `json:"closed_at,omitempty"` // empty: it may still change
	Lines       []StatementLine  `json:"lines"`
	Adjustments []AdjustmentLine `json:"adjustments,omitempty"`
	Grant       Units            `json:"grant"`
	Total       Units            `json:"total"`
	// Partial: only the lines of who asks are there, since others pay with the same name
	Partial bool `json:"partial,omitempty"`
}

// StatementLine is what one user's work in one queue and band cost.
type StatementLine struct {
	User      string  `json:"user"`
	Queue     string  `json:"queue,omitempty"`
	Band      string  `json:"band"`
	CoreHours float64 `json:"core_hours"`
	Amount    Units   `json:"amount"`
}

// AdjustmentLine is a change of a statement by an administrator. One by late news about a
// closed month has no ID.
type AdjustmentLine struct {
	ID     int64  `json:"id,omitempty"`
	Payer  Payer  `json:"payer,omitzero"` // left out on a statement
	Month  Month  `json:"month"`
	Amount Units  `json:"amount"`
	Reason string `json:"reason"`
	By     string `json:"by,omitempty"`
	Set    Time   `json:"at,omitempty"`
}

// BudgetLine is a budget, and what is spent of it.
type BudgetLine struct {
	ID      int64  `json:"id,omitempty"`
	Payer   Payer  `json:"payer"`
	From    Month  `json:"from"` // the first month
	To      Month  `json:"to"`   // the last
	Amount  Units  `json:"amount"`
	Spent   Units  `json:"spent"`
	Hard    bool   `json:"hard"`    // jobs are refused when it is spent
	Warns   bool   `json:"warns"`   // at least 80 % of it is spent
	Refuses bool   `json:"refuses"` // jobs are refused now
	By      string `json:"set_by,omitempty"`
	Set     Time   `json:"set_at,omitempty"`
}

// MonthLine is a month that has charges or is closed.
type MonthLine struct {
	Month   Month  `json:"month"`
	Closed  Time   `json:"closed_at,omitempty"`
	By      string `json:"closed_by,omitempty"` // empty: the accountant did so
	Charges Units  `json:"charges"`             // before grants and adjustments
}

const millisAnHour = 3_600_000

func coreHours(milliseconds int64) float64 { return float64(milliseconds) / millisAnHour }

// statementDocument writes a statement. With an owner it has that user's part, unless the
// user pays it alone.
func statementDocument(st *accounting.Statement, owner string) (d StatementDocument, visible bool) {
	d = StatementDocument{Payer: payerOf(st.Payer), Month: Month(st.Month), Closed: Time(st.Closed),
		Lines: []StatementLine{}, Partial: owner != "" && st.Payer.Owner != owner}
	var sum accounting.MicroUnits
	for i := range st.Lines {
		l := &st.Lines[i]
		if d.Partial && l.Owner != owner {
			continue
		}
		sum += l.Amount
		d.Lines = append(d.Lines, StatementLine{User: l.Owner, Queue: l.Queue, Band: l.Band.String(),
			CoreHours: coreHours(l.CoreTime), Amount: Units(l.Amount)})
	}
	if d.Partial {
		d.Total = Units(sum)
		return d, len(d.Lines) > 0
	}
	for i := range st.Adjustments {
		l := adjustmentLine(&st.Adjustments[i])
		l.Payer = Payer{}
		d.Adjustments = append(d.Adjustments, l)
	}
	d.Grant, d.Total = Units(st.Grant), Units(st.Total)
	return d, true
}

func adjustmentLine(a *accounting.Adjustment) AdjustmentLine {
	return AdjustmentLine{ID: a.ID, Payer: payerOf(a.Payer), Month: Month(a.Month), Amount: Units(a.Amount),
		Reason: a.Reason, By: a.By, Set: Time(a.Set)}
}

func budgetLine(b *accounting.BudgetStatus) BudgetLine {
	return BudgetLine{ID: b.ID, Payer: payerOf(b.Payer), From: Month(b.From), To: Month(b.To), Amount: Units(b.Amount),
		Spent: Units(b.Spent), Hard: b.Hard, Warns: b.Warns(), Refuses: b.Refuses(), By: b.By, Set: Time(b.Set)}
}

// statements emits the statements of the months of a range: that of one payer, or all.
func (q *Query) statements(p accounting.Reporter, emit func(line []byte) error) error {
	n := 0
	for m, last := q.months(); m <= last; m++ {
		payers, err := p.Payers(m)
		if err != nil {
			return err
		}
		for _, payer := range payers {
			if q.Payer != nil && payer != q.Payer.payer() || q.Owner != "" && payer.Owner != "" &&
				payer.Owner != q.Owner {
				continue
			}
			st, err := p.Statement(payer, m)
			if err != nil {
				return err
			}
			d, visible := statementDocument(&st, q.Owner)
			if !visible {
				continue
			}
			if n++; n > q.limit() {
				return nil
			}
			if err := emitLine(&d, emit); err != nil {
				return err
			}
		}
	}
	return nil
}

// months returns the first and the last month of the range.
func (q *Query) months() (first, last accounting.Month) {
	return accounting.MonthOf(q.From), accounting.MonthOf(max(q.To-1, q.From))
}

// maxMonths bounds the months of a question about statements.
const maxMonths = 1200

// checkMonths refuses a range that has too many months.
func (q *Query) checkMonths() error {
	if first, last := q.months(); last-first >= maxMonths {
		return fmt.Errorf("report: %w: the range has more than %d months", roost.Invalid, maxMonths)
	}
	return nil
}

// sumsOf answers a question about rates, adjustments, budgets or months.
func (q *Query) sumsOf(p accounting.Reporter, emit func(line []byte) error) error {
	switch q.Report {
	case Rates:
		list, err := p.Rates()
		return emitEach(list, err, rateLine, q.limit(), emit)
	case Adjustments:
		first, last := q.months()
		list, err := p.Adjustments(first, last)
		list = slices.DeleteFunc(list, func(a accounting.Adjustment) bool { return !q.concerns(a.Payer) })
		return emitEach(list, err, adjustmentLine, q.limit(), emit)
	case Budgets:
		list, err := p.Budgets(max(q.To-1, q.From))
		list = slices.DeleteFunc(list, func(b accounting.BudgetStatus) bool { return !q.concerns(b.Payer) })
		return emitEach(list, err, budgetLine, q.limit(), emit)
	}
	list, err := p.Months()
	return emitEach(list, err, func(m *accounting.MonthStatus) MonthLine {
		return MonthLine{Month: Month(m.Month), Closed: Time(m.Closed), By: m.By, Charges: Units(m.Charges)}
	}, q.limit(), emit)
}

// concerns reports whether a payer is the one that is asked for, and may be told of.
func (q *Query) concerns(p accounting.Payer) bool {
	return (q.Payer == nil || q.Payer.payer() == p) && (q.Owner == "" || q.Owner == p.Owner)
}

// emitEach emits a line for each of the values.
func emitEach[T, L any](list []T, err error, line func(*T) L, limit int, emit func(line []byte) error) error {
	lines := make([]L, 0, len(list))
	for i := range list {
		lines = append(lines, line(&list[i]))
	}
	return emitAll(lines, err, limit, emit)
}
