package schedd

import (
	"context"
	"fmt"
	"time"

	"github.com/roost-batch/roost/internal/wire"
)

// neighbourPatience is for how long a list waits for the other schedds, all at the same time. Naively there would be a deadline; but the list of a schedd
// with very many jobs takes longer than that although it never pauses. So only silence counts, and each row earns a little of what it has cost back.
const (
	neighbourPatience = 2 * time.Second
	rowEarns          = time.Millisecond
)

// rowsAhead bounds the rows of one schedd that wait to be merged.
const rowsAhead = 64

// source is the rows of one schedd.
type source struct {
	part
	rows chan line
	err  error // to be read when rows is closed

	head     *line // the first row that was not merged yet; nil: it has to be waited for
	over     bool
	patience time.Duration // what is left of it
}

func (src *source) put(ctx context.Context, row line) error {
	select {
	case src.rows <- row:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// merging makes one list of several that are sorted.
type merging struct {
	own     string
	sources []*source
	left    int      // rows that may still be sent; 0 from the beginning: any number
	table   bool     // the oldest comes first, and rows are sent several at a time
	batch   [][]byte // rows that wait for company
	size    int      // of the batch, in bytes
	send    func(*wire.PoolRow) error
	mute    func(node string) // takes note of one that did not answer in time
}

func (m *merging) run(ctx context.Context) error {
	bounded := m.left > 0
	for {
		var newest *source
		for _, src := range m.sources {
			if err := m.fill(ctx, src); err != nil {
				return err
			}
			if src.head != nil && (newest == nil || m.before(src.head.at, newest.head.at)) {
				newest = src
			}
		}
		if newest == nil || bounded && m.left == 0 {
			return m.flush()
		}
		m.left--
		if err := m.pass(*newest.head); err != nil {
			return err
		}
		newest.head = nil
	}
}

// before reports whether what was submitted at a comes before what was submitted at b.
func (m *merging) before(a, b int64) bool {
	if m.table {
		return a < b
	}
	return a > b
}

// batchBytes is how many bytes of rows go in one message, more or less.
const batchBytes = 32 << 10

// pass sends a row, or puts it to others that are sent with it.
func (m *merging) pass(row line) error {
	if !m.table {
		status, err := row.message()
		if err != nil {
			return err
		}
		return m.send(&wire.PoolRow{Of: &wire.PoolRow_Status{Status: status}})
	}
	text, err := row.encoded()
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
func (m *merging) flush() error {
	if len(m.batch) == 0 {
		return nil
	}
	err := m.send(&wire.PoolRow{Of: &wire.PoolRow_Batch{Batch: &wire.JobBatch{Jobs: m.batch}}})
	m.batch, m.size = nil, 0
	return err
}

// fill sees to it that a source has a head or is over.
func (m *merging) fill(ctx context.Context, src *source) error {
	if src.head != nil || src.over {
		return nil
	}
	row, more, inTime := m.receive(ctx, src)
	if more {
		src.head = &row
		return nil
	}
	src.over = true
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case !inTime:
		m.mute(src.node)
		return m.silent(src, fmt.Sprintf("%v within %v", errSilent, neighbourPatience))
	case src.err == nil:
		return nil
	case src.node == m.own, src.named && !isSilence(src.err):
		return src.err
	}
	return m.silent(src, src.err.Error())
}

func (m *merging) silent(src *source, why string) error {
	return m.send(&wire.PoolRow{Of: &wire.PoolRow_Silent{Silent: &wire.Silent{Node: src.node, Why: why}}})
}

// receive waits for the next row of a schedd: of this one as long as it takes. While one is waited for the others have time, too, and those that have
// nothing to show for it are charged as it is.
func (m *merging) receive(ctx context.Context, src *source) (row line, ok, inTime bool) {
	select {
	case row, ok = <-src.rows:
		return row, ok, true
	default:
	}
	began := time.Now()
	var late <-chan time.Time
	if src.node != m.own {
		timer := time.NewTimer(src.patience)
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
		if other == src || other.head == nil && len(other.rows) == 0 {
			other.patience = max(other.patience-waited, 0)
		}
	}
	if ok {
		src.patience = min(src.patience+rowEarns, neighbourPatience)
	}
	return row, ok, inTime
}
