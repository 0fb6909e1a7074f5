package accounting

import "github.com/roost-batch/roost"

// MicroUnits is an amount of charge: 1,000,000 are one unit. What a unit is, an hour of a
// core or money, the rates of a pool say.
type MicroUnits int64

// Payer is who is charged: a project if the job has one, or else its group, or else its
// owner. Exactly one of the names is set.
type Payer struct {
	Project, Group, Owner string
}

// PayerOf returns who pays for a job.
func PayerOf(j *JobEntry) Payer {
	switch {
	case j.Project != "":
		return Payer{Project: j.Project}
	case j.Group != "":
		return Payer{Group: j.Group}
	}
	return Payer{Owner: j.Owner}
}

// RateRule is how the weights of a rate become one price.
type RateRule uint8

// The rules. The numbers are on disk.
const (
	RateDominant RateRule = iota + 1 // the greatest share of the rate's machine, in its cores
	RateSum                          // the sum of weight x amount
	RateMax                          // the greatest weight x amount
)

// Rate says what an hour of resources costs from a time on. Of the rates of the pool and
// of a group, the one of the closest group counts, and of these the latest that is valid.
type Rate struct {
	ID    int64  // 0: not stored yet
	Group string // with all groups below it; empty: the pool
	From  Millis // valid from here until the next rate of the same group
	Rule  RateRule

	// The machine that RateDominant takes shares of, and the memory of one of its GPUs: a
	// task that takes less of a GPU has that share of it. 0: whole GPUs count.
	Core   roost.MilliCPU
	Mem    roost.Bytes
	GPUs   int
	GPUMem roost.Bytes

	CoreHour MicroUnits // a core for an hour
	GiBHour  MicroUnits
	GPUHour  MicroUnits

	BandPermille  [4]int64         // factor by band: 1000 is 1
	ClassPermille map[string]int64 // factor by class of the machine; a class without one has 1000
	UsefulOnly    bool             // only time whose result was kept
	MonthlyGrant  MicroUnits       // free for each payer, once a month
	By            string           // who set it
	Set           Millis
}

// Charge is what a version of the charges of an attempt adds to the versions before it.
// Charges are never changed: the sum of all versions counts. Another rate or late news
// make a new version, whose amounts may be negative.
type Charge struct {
	AttemptKey
	Version   int
	Statement Month // on whose statement it is: Month, or a later one if that was closed
	Payer     Payer
	Owner     string
	Queue     string
	Band      roost.PriorityBand
	ChargePart
}

// Adjustment is a change of a payer's statement by an administrator, or by news about
// a closed month.
type Adjustment struct {
	ID     int64
	Payer  Payer
	Month  Month // of the statement
	Amount MicroUnits
	Reason string
	By     string
	Set    Millis
}

// Statement is what a payer is charged for a month. The lines, adjustments and grant sum
// to Total.
type Statement struct {
	Payer       Payer
	Month       Month
	Closed      Millis // 0: it may still change
	Lines       []StatementLine
	Adjustments []Adjustment
	Grant       MicroUnits // what is free, at most the sum of the lines; not negative
	Total       MicroUnits
}

// StatementLine is what one owner's work in one queue and band cost.
type StatementLine struct {
	Owner    string
	Queue    string
	Band     roost.PriorityBand
	CoreTime int64 // core-milliseconds
	Amount   MicroUnits
}

// Budget is how much a payer may spend in some months.
type Budget struct {
	ID     int64
	Payer  Payer
	From   Month // the first
	To     Month // the last
	Amount MicroUnits
	Hard   bool // jobs are refused when it is spent
	By     string
	Set    Millis
}

// BudgetStatus is a budget and what has been spent of it.
type BudgetStatus struct {
	Budget
	Spent MicroUnits
}

// Warns reports whether at least 80 % of the budget is spent.
func (b *BudgetStatus) Warns() bool { return b.Spent >= b.Amount-b.Amount/5 }

// Refuses reports whether the payer's jobs are refused.
func (b *BudgetStatus) Refuses() bool { return b.Hard && b.Spent >= b.Amount }
