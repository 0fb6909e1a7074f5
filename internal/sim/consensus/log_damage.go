package consensus

import (
	"encoding/binary"
	"hash/crc32"
	"slices"
	"time"

	"github.com/roost-batch/roost/internal/mutant"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// newEntry returns an entry with its checksum.
func newEntry(term uint64, text []byte) LogEntry {
	e := LogEntry{Term: term, Text: text}
	e.Sum = e.checksum()
	return e
}

func (e *LogEntry) checksum() uint32 {
	return crc32.Update(crc32.Checksum(binary.BigEndian.AppendUint64(nil, e.Term), castagnoli), castagnoli, e.Text)
}

// isDamaged reports whether the disk read something else than was written.
func (d *ReplicaDisk) isDamaged() bool {
	if mutant.Active(mutant.LogUnchecked) {
		return false
	}
	return slices.ContainsFunc(d.Log, func(e LogEntry) bool { return e.Sum != e.checksum() })
}

// FlipBit returns a copy of the disk with one bit of an entry's text flipped. n selects
// the bit. The result is false if no entry has text. The given disk does not change.
func FlipBit(d ReplicaDisk, n int) (ReplicaDisk, bool) {
	var full []int
	for i := range d.Log {
		if len(d.Log[i].Text) > 0 {
			full = append(full, i)
		}
	}
	if len(full) == 0 {
		return d, false
	}
	d.Log = slices.Clone(d.Log)
	e := &d.Log[full[n%len(full)]]
	bit := n / len(full) % (8 * len(e.Text))
	e.Text = slices.Clone(e.Text)
	e.Text[bit/8] ^= 1 << (bit % 8)
	return d, true
}

// handleLearned handles the fact that a learner's log equals the leader's up to an entry.
// The learner votes again when it has all that the leader had at some time since the
// learner started. That includes everything that the learner had acknowledged before its
// log was damaged, and so everything that was committed with its help.
func (r *Replica) handleLearned(same, last uint64, sent time.Duration) {
	if r.disk.IsLearner && same >= last && sent > r.started {
		r.disk.IsLearner, r.dirty = false, true
	}
}
