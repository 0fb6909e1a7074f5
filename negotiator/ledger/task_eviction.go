package ledger

import (
	"slices"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
)

// Evictions are counted for the settings disruptions_per_job and disruptions_per_cell.
// They are of the grants for which tasks had to go, so the entry that commits those says
// of which jobs, and a new leader counts on from there: with a count of its own each
// change of leader would allow an hour's worth anew.

// EvictionMemory is how long an eviction counts.
const EvictionMemory = time.Hour

// maxEvictions bounds how many are remembered: the oldest give way.
const maxEvictions = 100_000

// TaskEviction is one task that had to go for a grant.
type TaskEviction struct {
	At  int64  // unix nanoseconds, by the clock of the leader
	Job string // "" where nobody knows
}

// Evictions lists those of the last hour, oldest first. The list is the ledger's own and
// holds until the next entry.
func (l *Ledger) Evictions() []TaskEviction { return l.evictions }

func (l *Ledger) recordEviction(jobs []string) {
	for _, job := range jobs {
		l.evictions = append(l.evictions, TaskEviction{l.now, job})
	}
	if extra := len(l.evictions) - maxEvictions; extra > 0 {
		l.evictions = slices.Delete(l.evictions, 0, extra)
	}
}

// rewindEvictions prepares for a clock that is put back: what was in its future has just
// been.
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
