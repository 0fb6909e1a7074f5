package consensus

import (
	"encoding/binary"
	"hash/crc32"
	"slices"
	"time"

	"github.com/roost-batch/roost/internal/plant"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// newEntry is an entry with its checksum.
func newEntry(term uint64, text []byte) Entry {
	e := Entry{Term: term, Text: text}
	e.Sum = e.sum()
	return e
}

func (e *Entry) sum() uint32 {
	return crc32.Update(crc32.Checksum(binary.BigEndian.AppendUint64(nil, e.Term), castagnoli), castagnoli, e.Text)
}

// damaged reports whether what was read from a disk is not what was written there.
func (d *Disk) damaged() bool {
	if plant.Is(plant.Unchecked) {
		return false
	}
	return slices.ContainsFunc(d.Log, func(e Entry) bool { return e.Sum != e.sum() })
}

// Flip returns a disk on which one bit of the text of an entry is another one, and says whether there was any to flip; n says which bit. The disk it was
// given stays as it is.
func Flip(d Disk, n int) (Disk, bool) {
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

// learnt takes in that a learner's log is the same as that of the leader up to an entry. It votes again when it has all that the leader had at some time since it
// started: so all that it had acknowledged before, and may have been committed with its help, is among that.
func (r *Replica) learnt(same, last uint64, sent time.Duration) {
	if r.disk.Learns && same >= last && sent > r.started {
		r.disk.Learns, r.dirty = false, true
	}
}
