package query

import (
	"math"
	"strconv"

	"github.com/roost-batch/roost/internal/accounting"
)

// Cent is what amounts of statements are rounded to.
const Cent = accounting.Unit / 100

// StatementRow is a row of a statement for people and sheets.
type StatementRow struct {
	Payer     string   `json:"payer"`
	What      string   `json:"what"` // use, the reason of an adjustment, free grant, or total
	User      string   `json:"user,omitempty"`
	Queue     string   `json:"queue,omitempty"`
	Band      string   `json:"band,omitempty"`
	CoreHours *float64 `json:"core_hours,omitempty"` // of use, rounded to hundredths
	Amount    Units    `json:"amount"`
	IsTotal   bool     `json:"-"`
}

// Hours returns the core hours for people; empty: the row is not about use.
func (r *StatementRow) Hours() string {
	if r.CoreHours == nil {
		return ""
	}
	return strconv.FormatFloat(*r.CoreHours, 'f', 2, 64)
}

// Rows returns the rows of a statement, with amounts that are rounded and sum to the
// total.
func (d *StatementDocument) Rows() (rows []StatementRow) {
	st := accounting.Statement{Grant: accounting.MicroUnits(d.Grant)}
	for _, l := range d.Lines {
		st.Lines = append(st.Lines, accounting.StatementLine{Amount: accounting.MicroUnits(l.Amount)})
	}
	for _, a := range d.Adjustments {
		st.Adjustments = append(st.Adjustments, accounting.Adjustment{Amount: accounting.MicroUnits(a.Amount)})
	}
	rounded := st.Rounded(Cent)
	payer := d.Payer.String()
	for i, l := range d.Lines {
		hours := math.Round(l.CoreHours*100) / 100
		rows = append(rows, StatementRow{Payer: payer, What: "use", User: l.User, Queue: l.Queue, Band: l.Band,
			CoreHours: &hours, Amount: Units(rounded.Lines[i])})
	}
	for i, a := range d.Adjustments {
		rows = append(rows, StatementRow{Payer: payer, What: a.Reason, User: a.By,
			Amount: Units(rounded.Adjustments[i])})
	}
	if d.Grant != 0 {
		rows = append(rows, StatementRow{Payer: payer, What: "free grant", Amount: Units(-rounded.Grant)})
	}
	what := "total, not closed"
	switch {
	case d.Partial:
		what = "your part"
	case d.Closed != 0:
		what = "total, closed " + accounting.Millis(d.Closed).Time().Format("2006-01-02")
	}
	return append(rows, StatementRow{Payer: payer, What: what, Amount: Units(rounded.Total), IsTotal: true})
}
