package accounting

import "github.com/roost-batch/roost"

// Reporter reads the roll-ups and charges of a store. Like a Reader it is bound to a
// context.
type Reporter interface {
	// UsageLines returns a line for each combination of names, greatest HeldCPU first.
	UsageLines(q UsageQuery) ([]UsageLine, error)

	// UsagePoints returns what each band held and used, by day or by hour.
	UsagePoints(r TimeRange, f Filter, byHour bool) ([]UsagePoint, error)

	// EndLines counts the ends of attempts by cause, and by owner if byOwner is set.
	EndLines(r TimeRange, owner string, byOwner bool) ([]EndLine, error)

	// WaitLines counts starts by band, queue and how long they had been eligible.
	WaitLines(r TimeRange) ([]WaitLine, error)

	// SizeLines counts ended attempts by band and cores.
	SizeLines(r TimeRange) ([]SizeLine, error)

	// CapacityLines returns a line for each class of machines, and for each of the hours
	// if byHour is set.
	CapacityLines(r TimeRange, byHour bool) ([]CapacityLine, error)

	// Efficiency compares what ended attempts asked for with what they used, by owner.
	// The greatest waste comes first.
	Efficiency(r TimeRange, f Filter, limit int) ([]EfficiencyLine, error)

	// Statement returns what a payer is charged for a month.
	Statement(payer Payer, m Month) (Statement, error)

	// Payers returns the payers that have charges or adjustments in a month.
	Payers(m Month) ([]Payer, error)

	// Budget returns how much of its budget a payer has spent, or an error that is
	// roost.NotFound if it has none at that time.
	Budget(payer Payer, at Millis) (BudgetStatus, error)

	// Budgets returns the budget of each payer that has one at a time, by payer. Those of
	// NoBudget are left out.
	Budgets(at Millis) ([]BudgetStatus, error)

	// Rates returns all rates in the order of their begin.
	Rates() ([]Rate, error)

	// Adjustments returns those that administrators made on the statements of some
	// months, in their order.
	Adjustments(first, last Month) ([]Adjustment, error)

	// Months returns the months that have charges or are closed, the last one first.
	Months() ([]MonthStatus, error)

	// Reconciliations returns the comparisons with the negotiator's ledger that begin in
	// a range, in the order of time and submitter.
	Reconciliations(r TimeRange) ([]Reconciliation, error)

	// LedgerStatus returns how far there are comparisons.
	LedgerStatus() (LedgerStatus, error)

	// Sources returns how far each schedd's feed has been read.
	Sources() ([]SourceStatus, error)
}

// MonthStatus is whether a month is closed, and what is charged on its statements.
type MonthStatus struct {
	Month   Month
	Closed  Millis     // 0: it is open
	By      string     // who closed it; empty: the accountant
	Charges MicroUnits // before grants and adjustments
}

// EfficiencyLine compares the resources of ended attempts with what they used.
type EfficiencyLine struct {
	Owner     string
	Attempts  int64
	HeldCPU   int64 // core-milliseconds
	UsedCPU   int64 // core-milliseconds
	HeldMem   int64 // MiB-seconds
	PeakMem   int64 // MiB-seconds, if each peak had lasted
	WastedCPU int64 // held and not used
}

// SourceStatus is how far the feed of a source has been read.
type SourceStatus struct {
	Source    SourceID
	Host      string
	Next      uint64 // number of the entry that comes next
	Watermark Millis // the feed is complete up to here
	Skew      int64  // milliseconds: the greatest difference of a node's wall time from end minus start
	Gaps      []FeedGap
}

// FeedGap is a range of entries that never came, and have to be taken from histories.
type FeedGap struct {
	From, To uint64 // numbers; To is the first one that came
	Noted    Millis
}

// GroupBy is a set of the names that a report has a line for.
type GroupBy uint8

// The names. The empty set is one line for all.
const (
	ByOwner GroupBy = 1 << iota
	ByGroup
	ByProject
	ByBand
	ByQueue
)

// UsageQuery asks for the usage of a range of time, which is cut to whole hours.
type UsageQuery struct {
	Range  TimeRange
	By     GroupBy
	Filter Filter // Owner, Group, Project, Queue and Bands

	// WholeAtEnd counts an attempt as a whole in the hour in which it ended, as XDMoD
	// does, and not in each hour in which it ran.
	WholeAtEnd bool
}

// UsageLine is the usage of those who share the names of a report's line. A name that the
// report does not go by is empty.
type UsageLine struct {
	Owner   string
	Group   string
	Project string
	Queue   string
	Band    roost.PriorityBand
	Amounts
}

// UsagePoint is what a band held and used within a day or an hour.
type UsagePoint struct {
	At   Millis // begin of the day or hour
	Band roost.PriorityBand
	Amounts
}

// Amounts is what attempts held and used. The parts of the hours of an attempt sum to the
// whole.
type Amounts struct {
	Started   int64 // attempts that started
	Ended     int64 // attempts that ended
	Failed    int64 // attempts that ended otherwise than by exit 0 or removal
	Wall      int64 // milliseconds, with those suspended
	Suspended int64 // milliseconds
	HeldCPU   int64 // core-milliseconds
	UsedCPU   int64 // core-milliseconds of CPU time, user and system
	HeldGPU   int64 // GPU-milliseconds
	HeldMem   int64 // MiB-seconds
	PeakMem   int64 // MiB-seconds, if the peak of each attempt had lasted
	LostCPU   int64 // core-milliseconds held whose result was not kept

	ChargedCPU int64 // core-milliseconds of HeldCPU that are charged

	Waits   int64 // first attempts that started
	WaitSum int64 // milliseconds that they had been eligible
}

// Add adds b to a.
func (a *Amounts) Add(b *Amounts) {
	a.Started += b.Started
	a.Ended += b.Ended
	a.Failed += b.Failed
	a.Wall += b.Wall
	a.Suspended += b.Suspended
	a.HeldCPU += b.HeldCPU
	a.UsedCPU += b.UsedCPU
	a.HeldGPU += b.HeldGPU
	a.HeldMem += b.HeldMem
	a.PeakMem += b.PeakMem
	a.LostCPU += b.LostCPU
	a.ChargedCPU += b.ChargedCPU
	a.Waits += b.Waits
	a.WaitSum += b.WaitSum
}

// EndLine counts attempts that ended for one cause.
type EndLine struct {
	Owner    string // empty if the report does not go by owners
	Cause    EndCause
	Count    int64
	HeldCPU  int64 // core-milliseconds of these attempts
	LostCPU  int64 // core-milliseconds of them whose result was not kept
	SavedCPU int64 // core-milliseconds that a checkpoint kept, of attempts that the pool ended
}

// WaitLine counts first attempts by how long they had been eligible when they started.
type WaitLine struct {
	Band    roost.PriorityBand
	Queue   string
	Bucket  int // see WaitBucket
	Count   int64
	WaitSum int64 // milliseconds
}

// SizeLine counts attempts that ended by the cores that they held.
type SizeLine struct {
	Bucket  int // log2 of the cores, rounded up; 0: at most one core
	Band    roost.PriorityBand
	Count   int64
	Wall    int64
	HeldCPU int64
	WaitSum int64
	Waits   int64
}

// CapacityLine is what the machines of a class had during a time. Amounts are
// core-milliseconds and GPU-milliseconds, and Total = Owner + Drained + Held + Idle.
type CapacityLine struct {
	Class    string
	Hour     Millis // its begin; 0: the whole range
	Total    int64  // of machines that were in the pool
	Owner    int64  // their owners used them
	Drained  int64
	Held     int64 // by attempts; more than one of what there was does not count
	Idle     int64
	Used     int64 // CPU time of the attempts
	Desktop  int64 // of Held: on machines that have an owner
	TotalGPU int64
	HeldGPU  int64
}
