package feed

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/accounting"
)

// Batch is entries that follow each other, or a gap.
type Batch struct {
	First   uint64
	Entries [][]byte // in the form of package codec
	Gap     bool     // entries are missing before First, and First is nothing itself
	Last    bool     // the feed had no more entries when the batch was read
}

// Next returns the number after the batch.
func (b *Batch) Next() uint64 {
	if b.Gap {
		return b.First + 1
	}
	return b.First + uint64(len(b.Entries))
}

// Source returns the id of the feed.
func (f *Feed) Source() accounting.SourceID { return f.source }

// Enable begins the feed if there is none, because an accountant has called. It returns
// when the log has its first record, which is a gap.
func (f *Feed) Enable(ctx context.Context) error {
	if f.broken {
		return fmt.Errorf("accounting feed: %w: it could not be opened; the log of the schedd says why",
			roost.Unavailable)
	}
	f.collecting.Store(true)
	for {
		f.mu.Lock()
		_, next := f.index.bounds()
		changed := f.changed
		f.mu.Unlock()
		if next > 0 {
			return nil
		}
		f.signal()
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// maxBatchBytes bounds the entries of a batch. A message of the wire has room for four
// times as much.
const maxBatchBytes = 1 << 20

// Read returns up to most entries from a number on, when there are any. Of entries that
// the log no longer has it returns the gap. A number above all that the feed has had
// makes a gap, too: the feed that had it is gone.
func (f *Feed) Read(ctx context.Context, from uint64, most int) (b Batch, err error) {
	for {
		f.mu.Lock()
		first, next := f.index.bounds()
		part, found := f.index.find(from)
		changed := f.changed
		if from > next {
			f.raised = from
		}
		f.mu.Unlock()
		switch {
		case from < first:
			return Batch{First: first - 1, Gap: true}, nil
		case found:
			b, err = f.readPart(&part, from, most)
			if err == nil {
				b.Last = b.Next() >= next
				return b, nil
			}
			if errors.Is(err, fs.ErrNotExist) { // it was removed meanwhile
				continue
			}
			f.opt.Log.Error("the log of the accounting feed is damaged: it begins anew", "error", err)
			f.mu.Lock()
			f.overflow = true
			f.mu.Unlock()
			f.signal()
		case from > next:
			f.signal()
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return b, ctx.Err()
		}
	}
}

// errEnough ends a read.
var errEnough = errors.New("enough")

// readPart reads from a part that has the entry.
func (f *Feed) readPart(p *logPart, from uint64, most int) (b Batch, err error) {
	bytes := 0
	err = f.writer.log.EachEntry(p.record, f.writer.log.Next(), func(_ uint64, data []byte) error {
		r, err := decodeRecord(data)
		if err != nil {
			return err
		}
		if r.next() <= from || r.first == r.next() {
			return nil
		}
		if r.gap {
			if len(b.Entries) == 0 {
				b = Batch{First: r.first, Gap: true}
			}
			return errEnough
		}
		if len(b.Entries) == 0 {
			b.First = max(r.first, from)
		}
		for i, e := range r.entries {
			if r.first+uint64(i) < from {
				continue
			}
			if len(b.Entries) == most || bytes+len(e) > maxBatchBytes && len(b.Entries) > 0 {
				return errEnough
			}
			b.Entries, bytes = append(b.Entries, append([]byte(nil), e...)), bytes+len(e)
		}
		return nil
	})
	if errors.Is(err, errEnough) {
		err = nil
	}
	if err != nil {
		return b, fmt.Errorf("accounting feed: %w", err)
	}
	return b, nil
}

// Acknowledge says that the accountant has stored all entries before next.
func (f *Feed) Acknowledge(next uint64) {
	f.mu.Lock()
	if _, end := f.index.bounds(); next > 0 && next <= end {
		f.acked = max(f.acked, next-1)
	}
	f.mu.Unlock()
	f.signal()
}

// Backlog returns how many entries the accountant has not stored. It counts what it has
// not acknowledged since the schedd was started.
func (f *Feed) Backlog() uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	first, next := f.index.bounds()
	return next - min(max(first, f.acked+1), next)
}
