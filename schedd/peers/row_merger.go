package peers

import (
	"context"
	"fmt"
	"time"

	"github.com/roost-batch/roost/internal/wire"
)

// peerTimeout is for how long a list waits for the other schedds, all at the same time.
// Naively there would be a deadline; but the list of a schedd with very many jobs takes
// longer than that although it never pauses. So only silence counts, and each row earns a
// little of what it has cost back.
const (
	peerTimeout = 2 * time.Second
	rowCredit   = time.Millisecond
)

// rowBuffer bounds the rows of one schedd that wait to be merged.
const rowBuffer = 64

// rowSource is the rows of one schedd.
type rowSource struct {
	peerQuery
	rows chan ListRow
	err  error // to be read when rows is closed

	next          *ListRow // the first row that was not merged yet; nil: it has to be waited for
	ended         bool
	remainingWait time.Duration // what is left of it
}

func (src *rowSource) addRow(ctx context.Context, row ListRow) error {
	select {
	case src.rows <- row:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// rowMerger makes one list of several that are sorted.
type rowMerger struct {
	local     string
	sources   []*rowSource
	limit     int      // rows that may still be sent; 0 from the beginning: any number
	asTable   bool     // the oldest comes first, and rows are sent several at a time
	batch     [][]byte // rows that wait for company
	size      int      // of the batch, in bytes
	send      func(*wire.PoolRow) error
	onTimeout func(node string) // takes note of one that did not answer in time
}

func (m *rowMerger) mergeRows(ctx context.Context) error {
	bounded := m.limit > 0
	for {
		var newest *rowSource
		for _, src := range m.sources {
			if err := m.fillSource(ctx, src); err != nil {
				return err
			}
			if src.next != nil && (newest == nil || m.comesBefore(src.next.SubmittedAt, newest.next.SubmittedAt)) {
				newest = src
			}
		}
		if newest == nil || bounded && m.limit == 0 {
			return m.flush()
		}
		m.limit--
		if err := m.sendRow(*newest.next); err != nil {
			return err
		}
		newest.next = nil
	}
}

// comesBefore reports whether what was submitted at a comes before what was submitted at
// b.
func (m *rowMerger) comesBefore(a, b int64) bool {
	if m.asTable {
		return a < b
	}
	return a > b
}

// batchBytes is how many bytes of rows go in one message, more or less.
const batchBytes = 32 << 10

// sendRow sends a row, or puts it to others that are sent with it.
func (m *rowMerger) sendRow(row ListRow) error {
	if !m.asTable {
		status, err := row.StatusMessage()
		if err != nil {
			return err
		}
		return m.send(&wire.PoolRow{Of: &wire.PoolRow_Status{Status: status}})
	}
	text, err := row.encodedText()
	if err != nil {
		return err
	}
	m.batch = append(m.batch, text)
	if m.size += len(text); m.size < batchBytes {
		return nil
	}
	return m.flush()
}

// flush sends what was put together.
func (m *rowMerger) flush() error {
	if len(m.batch) == 0 {
		return nil
	}
	err := m.send(&wire.PoolRow{Of: &wire.PoolRow_Batch{Batch: &wire.JobBatch{Jobs: m.batch}}})
	m.batch, m.size = nil, 0
	return err
}

// fillSource sees to it that a source has a head or is over.
func (m *rowMerger) fillSource(ctx context.Context, src *rowSource) error {
	if src.next != nil || src.ended {
		return nil
	}
	row, more, inTime := m.receiveRow(ctx, src)
	if more {
		src.next = &row
		return nil
	}
	src.ended = true
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case !inTime:
		m.onTimeout(src.node)
		return m.markSilent(src, fmt.Sprintf("%v within %v", errPeerSilent, peerTimeout))
	case src.err == nil:
		return nil
	case src.node == m.local, src.isNamed && !isUnreachable(src.err):
		return src.err
	}
	return m.markSilent(src, src.err.Error())
}

func (m *rowMerger) markSilent(src *rowSource, why string) error {
	return m.send(&wire.PoolRow{Of: &wire.PoolRow_Silent{Silent: &wire.Silent{Node: src.node, Why: why}}})
}

// receiveRow waits for the next row of a schedd: of this one as long as it takes. While
// one is waited for the others have time, too, and those that have nothing to show for it
// are charged as it is.
func (m *rowMerger) receiveRow(ctx context.Context, src *rowSource) (row ListRow, ok, inTime bool) {
	select {
	case row, ok = <-src.rows:
		return row, ok, true
	default:
	}
	began := time.Now()
	var late <-chan time.Time
	if src.node != m.local {
		timer := time.NewTimer(src.remainingWait)
		defer timer.Stop()
		late = timer.C
	}
	select {
	case row, ok = <-src.rows:
		inTime = true
	case <-late:
	case <-ctx.Done():
	}
	waited := time.Since(began)
	for _, other := range m.sources {
		if other == src || other.next == nil && len(other.rows) == 0 {
			other.remainingWait = max(other.remainingWait-waited, 0)
		}
	}
	if ok {
		src.remainingWait = min(src.remainingWait+rowCredit, peerTimeout)
	}
	return row, ok, inTime
}
