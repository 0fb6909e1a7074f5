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
	bytes := r.Gauge("db_bytes", "Size of the database in bytes.")
	a.Snapshots = newDaemonState(r, func(to *Reading, s *AccountantSnapshot) {
		seconds := make(map[string]float64, len(s.Lag))
		for name, d := range s.Lag {
			seconds[name] = d.Seconds()
		}
		to.SetHighest(lag, seconds)
		to.Set(gaps, float64(s.Gaps))
		to.Set(dirty, float64(s.DirtyHours))
		to.Set(bytes, float64(s.Bytes))
	})
	r.AddDisk(dir)
	r.seal()
	return a
}
