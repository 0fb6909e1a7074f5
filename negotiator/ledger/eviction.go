package ledger

import (
	"slices"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
)

// Evictions are counted for the settings disruptions_per_job and disruptions_per_cell. They are of the grants for which tasks had to go, so the entry that
// commits those says of which jobs, and a new leader counts on from there: with a count of its own each change of leader would allow an hour's worth anew.

// EvictionLife is how long an eviction counts.
const EvictionLife = time.Hour

// maxEvictions bounds how many are remembered: the oldest give way.
const maxEvictions = 100_000

// Eviction is one task that had to go for a grant.
type Eviction struct {
	At  int64  // unix nanoseconds, by the clock of the leader
	Job string // "" where nobody knows
}

// Evictions lists those of the last hour, oldest first. The list is the ledger's own and holds until the next entry.
func (l *Ledger) Evictions() []Eviction { return l.evicted }

func (l *Ledger) evict(jobs []string) {
	for _, job := range jobs {
		l.evicted = append(l.evicted, Eviction{l.now, job})
	}
	if extra := len(l.evicted) - maxEvictions; extra > 0 {
		l.evicted = slices.Delete(l.evicted, 0, extra)
	}
}

// rewindEvictions prepares for a clock that is put back: what was in its future has just been.
func (l *Ledger) rewindEvictions(at int64) {
	for i := range l.evicted {
		l.evicted[i].At = min(l.evicted[i].At, at)
	}
}

func (l *Ledger) dropEvictions() {
	over := 0
	for over < len(l.evicted) && l.evicted[over].At <= l.now-int64(EvictionLife) {
		over++
	}
	l.evicted = slices.Delete(l.evicted, 0, over)
}

func (e *Eviction) encode(b []byte) []byte { return text(number(b, 1, uint64(e.At)), 2, e.Job) }

func (e *Eviction) decode(buf []byte) error {
	return fields(buf, func(f protowire.Number, v uint64, b []byte) error {
		switch f {
		case 1:
			e.At = int64(v)
		case 2:
			e.Job = string(b)
		}
		return nil
	})
}
