package metrics

import "time"

// maxSources bounds the sources with a series of their own.
const maxSources = 100

// Kinds of what an accountant stores.
const (
	JobEntry = iota
	AttemptEntry
	ActionEntry
	UsageEntry
	MachineEntry
)

// Accountant is the metrics of an accountant.
type Accountant struct {
	Ingested   *Counter // by kind
	Duplicates *Counter
	RollupTime *Histogram
	Snapshots  *Published[AccountantSnapshot]
}

// AccountantSnapshot is what an accountant has at one instant.
type AccountantSnapshot struct {
	Lag        map[string]time.Duration // by the node of the schedd
	Gaps       int
	DirtyHours int
	Bytes      int64 // of the database

	LedgerDifference *float64 // part of the ledger's increase over a day; nil: nothing is compared
}

// NewAccountant registers the metrics of an accountant with files in dir. With a nil
// registry nothing is counted.
func NewAccountant(r *Registry, dir string) *Accountant {
	a := &Accountant{
		Ingested: r.Counter("ingested_total", "What was stored since the start, by kind.",
			Label{Name: "kind", Values: []string{"job", "attempt", "action", "usage", "machine"}}),
		Duplicates: r.Counter("duplicates_total", "Entries of feeds that came again and changed nothing."),
		RollupTime: r.Histogram("rollup_seconds", "Time to sum up the hours that had changed.", fastBuckets),
	}
	lag := r.Gauge("lag_seconds",
		"Age of the newest entry that is stored, or since the feed had no more, by schedd; the 100 largest.",
		Label{Name: "source", Most: maxSources})
	gaps := r.Gauge("gaps", "Schedds whose feed has a gap that is not filled yet.")
	dirty := r.Gauge("dirty_hours", "Hours that have changed since they were summed up.")
	ledger := r.Gauge("reconcile_ratio",
		"Part of the use in the negotiator's ledger that the accounts of the last day compared differ by.")
	bytes := r.Gauge("db_bytes", "Size of the database in bytes.")
	a.Snapshots = newDaemonState(r, func(to *Reading, s *AccountantSnapshot) {
		seconds := make(map[string]float64, len(s.Lag))
		for name, d := range s.Lag {
			seconds[name] = d.Seconds()
		}
		to.SetHighest(lag, seconds)
		to.Set(gaps, float64(s.Gaps))
		to.Set(dirty, float64(s.DirtyHours))
		if s.LedgerDifference != nil {
			to.Set(ledger, *s.LedgerDifference)
		}
		to.Set(bytes, float64(s.Bytes))
	})
	r.AddDisk(dir)
	r.seal()
	return a
}
