package ledger

import (
	"slices"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
)

// The settings disruptions_per_job and disruptions_per_cell bound the evictions per hour.
// The entry that commits a grant names the jobs whose tasks are evicted for it, and a new
// leader continues the count from there: with a count of its own, each change of leader
// would allow another hour's evictions.

// EvictionMemory is how long an eviction counts.
const EvictionMemory = time.Hour

// maxEvictions bounds the number of recorded evictions: the ledger drops the oldest
// first.
const maxEvictions = 100_000

// TaskEviction is the eviction of one task for a grant.
type TaskEviction struct {
	At  int64  // unix nanoseconds, by the leader's clock
	Job string // the job's ID; "" if unknown
}

// Evictions lists the evictions of the last hour, oldest first. The list belongs to the
// ledger and is valid until the next entry.
func (l *Ledger) Evictions() []TaskEviction { return l.evictions }

func (l *Ledger) recordEviction(jobs []string) {
	for _, job := range jobs {
		l.evictions = append(l.evictions, TaskEviction{l.now, job})
	}
	if extra := len(l.evictions) - maxEvictions; extra > 0 {
		l.evictions = slices.Delete(l.evictions, 0, extra)
	}
}

// rewindEvictions adjusts the evictions to a clock that is set back: none lies in the
// future.
func (l *Ledger) rewindEvictions(at int64) {
	for i := range l.evictions {
		l.evictions[i].At = min(l.evictions[i].At, at)
	}
}

func (l *Ledger) dropEvictions() {
	over := 0
	for over < len(l.evictions) && l.evictions[over].At <= l.now-int64(EvictionMemory) {
		over++
	}
	l.evictions = slices.Delete(l.evictions, 0, over)
}

func (e *TaskEviction) encode(b []byte) []byte {
	return encodeText(encodeNumber(b, 1, uint64(e.At)), 2, e.Job)
}

func (e *TaskEviction) decode(buf []byte) error {
	return eachField(buf, func(f protowire.Number, v uint64, b []byte) error {
		switch f {
		case 1:
			e.At = int64(v)
		case 2:
			e.Job = string(b)
		}
		return nil
	})
}
