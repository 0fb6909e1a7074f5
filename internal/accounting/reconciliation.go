package accounting

// Reconciliation compares a day's held core time with the negotiator's ledger. Amounts
// are core-milliseconds.
type Reconciliation struct {
	Day     Millis
	Ledger  int64 // what the ledger says
	Held    int64 // what attempts held
	Charged int64 // of Held: what is charged
	Made    Millis
}

// maxDifferencePermille is the greatest difference between ledger and attempts that is
// normal, in thousandths.
const maxDifferencePermille = 5

// DifferencePermille returns the difference between held and ledger in thousandths of the
// ledger, rounded up.
func (r *Reconciliation) DifferencePermille() int64 {
	d := max(r.Held-r.Ledger, r.Ledger-r.Held)
	if d == 0 {
		return 0
	}
	if r.Ledger <= 0 {
		return 1000
	}
	return mulDiv(d, 1000, r.Ledger) + 1
}

// Warns reports whether the difference is greater than 0.5 %.
func (r *Reconciliation) Warns() bool { return r.DifferencePermille() > maxDifferencePermille }
