package journal

import (
	"bytes"
	"encoding/binary"
	"slices"

	"github.com/roost-batch/roost/internal/boltfile"
	"github.com/roost-batch/roost/schedd/queue"
)

// eventMover puts the events of batches into the bucket of events by job.
//
// Until a transaction ends, bbolt has all records that were added to a page in one array.
// To put each event as it is read moves the records of all later jobs in that array: the
// cost of a checkpoint with two long arrays grows with the square of the number of their
// events. So the events are put in the order of their keys, which only appends.
type eventMover struct {
	bucket    *boltfile.Bucket
	snapshots map[uint64][]byte // events of jobs with a nil snapshot are left out
	records   []eventRecord     // that are not in the bucket yet
	size      int               // bytes of the records
}

// eventRecord is an event and its key in the bucket.
type eventRecord struct{ key, raw []byte }

// movedBytes bounds the records that wait, in bytes, more or less.
const movedBytes = 4 << 20

// addBatch adds the events of a batch.
func (m *eventMover) addBatch(batch uint64, events []byte) error {
	place := uint32(0)
	if err := eachPiece(events, eventSumSize, func(_, raw []byte) error {
		place++
		return m.addEvent(batch, place, raw)
	}); err != nil {
		return err
	}
	if m.size < movedBytes {
		return nil
	}
	return m.putEvents()
}

func (m *eventMover) addEvent(batch uint64, place uint32, raw []byte) error {
	if snapshot, changed := m.snapshots[queue.EncodedJob(raw)]; changed && snapshot == nil {
		return nil
	}
	e, err := queue.DecodeEvent(raw)
	if err != nil {
		return err
	}
	if e.Submission == nil {
		raw = cloneBytes(raw)
	} else { // it is in the snapshot
		e.Submission = nil
		raw = queue.AppendEvent(nil, &e)
	}
	m.records = append(m.records, eventRecord{eventKey(e.Job, batch, place), raw})
	m.size += len(raw)
	return nil
}

// putEvents puts the events that wait into the bucket.
func (m *eventMover) putEvents() error {
	slices.SortFunc(m.records, func(a, b eventRecord) int { return bytes.Compare(a.key, b.key) })
	for _, r := range m.records {
		if err := m.bucket.Put(r.key, r.raw); err != nil {
			return err
		}
	}
	m.records, m.size = m.records[:0], 0
	return nil
}

// eventKey returns the key of an event in the bucket of events by job. The places in a
// batch begin at 1.
func eventKey(job, batch uint64, place uint32) []byte {
	key := binary.BigEndian.AppendUint64(make([]byte, 0, 20), job)
	return binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint64(key, batch), place)
}
