package feed

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/appendlog"
	"github.com/roost-batch/roost/internal/failpoint"
	"github.com/roost-batch/roost/internal/mutant"
)

// logWriter is what the goroutine that writes the log has for itself.
type logWriter struct {
	*Feed
	log      *appendlog.Log // nil: there is no feed
	through  uint64         // all that follows from the batches of the journal before this one is in the log
	next     uint64         // number of the next entry
	needsGap bool           // entries are missing before the next one
	buffer   []byte
	loggedAt time.Time
}

// open opens the log, and reports whether there is a feed. One that cannot be read is
// moved aside, and the feed goes on with a gap.
func (w *logWriter) open() (found bool, err error) {
	first, found, err := appendlog.FirstEntry(w.dir())
	if err == nil && !found {
		// a crash may have come between the two steps that put a log aside
		if _, err := os.Stat(filepath.Join(w.opt.Dir, DamagedName)); err != nil {
			return false, nil
		}
		return true, w.create(laterNumber(1))
	}
	if err == nil {
		err = w.openFrom(first)
	}
	if err == nil {
		if w.next == 0 { // a crash came before its first record
			w.next, w.needsGap = laterNumber(1), true
		}
		return true, nil
	}
	w.opt.Log.Error("the log of the accounting feed cannot be read: it is put aside, and the accountant is sent all "+
		"jobs", "error", err, "aside", filepath.Join(w.opt.Dir, DamagedName))
	if err := w.putAside(); err != nil {
		return true, err
	}
	return true, w.create(laterNumber(w.next))
}

// putAside moves a damaged log out of the way.
func (w *logWriter) putAside() error {
	aside := filepath.Join(w.opt.Dir, DamagedName)
	if err := os.RemoveAll(aside); err != nil {
		return err
	}
	if err := os.Remove(appendlog.MarkPath(w.dir())); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.Rename(w.dir(), aside)
}

// create creates an empty log, which is to begin with a gap of that number.
func (w *logWriter) create(number uint64) error {
	err := appendlog.Prepare(w.dir(), w.logID(), 1)
	if err == nil {
		err = w.openFrom(1)
	}
	w.next, w.needsGap = number, true
	return err
}

// laterNumber returns a number that is above all numbers of a feed that is gone. There
// were fewer entries than milliseconds since 1970.
func laterNumber(known uint64) uint64 { return max(known, uint64(time.Now().UnixMilli())) }

func (w *logWriter) openFrom(first uint64) (err error) {
	w.index = logIndex{}
	w.log, err = appendlog.Open(w.dir(), w.logID(), first, func(number uint64, data []byte) error {
		r, err := decodeRecord(data)
		if err != nil {
			return err
		}
		w.through, w.next = r.through, r.next()
		w.index.add(number, &r, len(data), w.opt.Bounds.Segment)
		return nil
	})
	return err
}

// The writer waits that long between two writes at least, and after an error.
const (
	writeInterval = 200 * time.Millisecond
	errorInterval = 5 * time.Second
)

// Run writes what the loop hands over until ctx ends.
func (f *Feed) Run(ctx context.Context) {
	if f.opt.Wanted || f.writer.log != nil {
		f.signal()
	}
	for {
		wait := writeInterval
		if f.collecting.Load() {
			if err := f.writer.write(); err != nil {
				wait = errorInterval
				if time.Since(f.writer.loggedAt) > time.Minute {
					f.writer.loggedAt = time.Now()
					f.opt.Log.Error("the accounting feed cannot be written; jobs are not affected", "error", err)
				}
			}
		}
		select {
		case <-ctx.Done():
			f.writer.write()
			return
		case <-time.After(wait):
		}
		select {
		case <-ctx.Done():
		case <-f.wake:
		}
	}
}

// point marks an instant at which a crash is interesting.
func (w *logWriter) point(name string) {
	failpoint.Point(name)
	if w.opt.onPoint != nil {
		w.opt.onPoint(name)
	}
}

// errNoRoom says that the disk is too full for the feed.
var errNoRoom = fmt.Errorf("%w: the disk is nearly full", roost.Exhausted)

// write writes what was handed over and is in the journal, and tells who waits for it.
func (w *logWriter) write() (err error) {
	w.mu.Lock()
	waiters := w.waiters
	w.waiters = nil
	w.mu.Unlock()
	defer func() {
		for _, done := range waiters {
			done <- err
		}
	}()
	if w.opt.HasRoom != nil && !w.opt.HasRoom() {
		return errNoRoom
	}
	if w.log == nil {
		if err := w.begin(); err != nil {
			return err
		}
	}
	durable, drafts, err := w.takeWritable()
	if err != nil {
		return err
	}
	for len(drafts) > 0 || durable.batch > w.through && len(waiters) > 0 {
		part := drafts[:min(len(drafts), maxRecordEntries)]
		r := record{through: w.through, first: w.next, at: time.Now()}
		for i := range part {
			r.entries = append(r.entries, w.encoder.encode(&part[i].Draft))
		}
		if drafts = drafts[len(part):]; len(drafts) == 0 {
			r.through = durable.batch
		}
		if err := w.append(&r); err != nil {
			return err
		}
		w.mu.Lock()
		if len(w.incoming) >= len(part) { // otherwise all were dropped meanwhile
			w.incoming = w.incoming[len(part):]
		}
		w.mu.Unlock()
	}
	return w.trim()
}

// begin creates the log of a schedd that had no feed. What follows from earlier batches
// is behind the gap.
func (w *logWriter) begin() error {
	batch := w.durable.Load().batch
	number := uint64(1)
	if batch > 0 { // there may have been a feed that is gone
		number = laterNumber(1)
	}
	err := w.create(number)
	w.through = batch
	return err
}

// takeWritable returns the entries whose events are in the journal, and how far they
// reach. They stay in the list until they are written. It writes a gap first where
// entries are missing.
func (w *logWriter) takeWritable() (durable durablePoint, drafts []queuedDraft, err error) {
	w.mu.Lock()
	if w.overflow {
		w.overflow, w.needsGap = false, true
	}
	if w.raised > w.next {
		w.next, w.needsGap = w.raised, true
	}
	w.raised = 0
	w.mu.Unlock()
	if w.needsGap {
		if err := w.writeGap(); err != nil {
			return durable, nil, err
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	durable, usable := w.usablePoint()
	if !usable {
		return durable, nil, nil
	}
	n := 0
	for n < len(w.incoming) && w.incoming[n].events <= durable.events {
		n++
	}
	return durable, w.incoming[:n:n], nil
}

// writeGap begins the feed anew: its log then has the gap alone.
func (w *logWriter) writeGap() error {
	if err := w.log.BeginSegment(); err != nil {
		return err
	}
	r := record{through: w.through, first: w.next, gap: true, at: time.Now()}
	number := w.log.Next()
	if err := w.append(&r); err != nil {
		return err
	}
	w.needsGap = false
	w.mu.Lock()
	w.index.dropBefore(number)
	w.mu.Unlock()
	w.opt.Log.Info("the accounting feed begins with a gap: the accountant is sent all jobs", "number", r.first)
	return w.log.DropBefore(number)
}

// append writes a record and syncs it.
func (w *logWriter) append(r *record) error {
	w.buffer = r.append(w.buffer[:0])
	w.point(failpoint.FeedBeforeAppend)
	if err := w.log.Write(w.buffer); err != nil {
		return err
	}
	w.point(failpoint.FeedAfterAppend)
	number, err := w.log.Sync()
	if err != nil {
		return err
	}
	w.point(failpoint.FeedAfterFsync)
	w.through, w.next = r.through, r.next()
	size := len(w.buffer)
	if cap(w.buffer) > 1<<20 {
		w.buffer = nil
	}
	w.mu.Lock()
	full := w.index.add(number, r, size, w.opt.Bounds.Segment)
	close(w.changed)
	w.changed = make(chan struct{})
	w.mu.Unlock()
	if full {
		return w.log.BeginSegment()
	}
	return nil
}

// trim removes what the accountant has stored, or begins anew with a gap if the log is
// too long.
func (w *logWriter) trim() error {
	w.mu.Lock()
	if mutant.Active(mutant.FeedCutEarly) {
		w.acked = w.next - 1
	}
	begin := w.index.wantsPart(w.acked)
	w.mu.Unlock()
	if begin {
		// all of the last file is stored; it can go when another one says how far the
		// feed is
		if err := w.log.BeginSegment(); err != nil {
			return err
		}
		if err := w.append(&record{through: w.through, first: w.next, at: time.Now()}); err != nil {
			return err
		}
	}
	w.mu.Lock()
	until := w.index.droppable(w.acked)
	w.index.dropBefore(until)
	tooLong := w.index.exceeds(&w.opt.Bounds, time.Now())
	w.mu.Unlock()
	if until > 0 {
		if err := w.log.DropBefore(until); err != nil {
			return err
		}
		w.point(failpoint.FeedAfterTruncate)
	}
	if tooLong {
		w.opt.Log.Warn("nobody has read the accounting feed for too long: it begins anew")
		return w.writeGap()
	}
	return nil
}

// syncTimeout bounds how long a checkpoint waits for the feed.
const syncTimeout = time.Minute

// SyncThrough implements journal.Observer: what follows from the batches before next is
// in the log on return. A feed that cannot be written does not stop the journal: it then
// goes on with a gap.
func (f *Feed) SyncThrough(next uint64) {
	if !f.collecting.Load() {
		return
	}
	done := make(chan error, 1)
	f.mu.Lock()
	f.waiters = append(f.waiters, done)
	f.mu.Unlock()
	f.signal()
	timer := time.NewTimer(syncTimeout)
	defer timer.Stop()
	var err error
	select {
	case err = <-done:
	case <-timer.C:
		err = roost.Unavailable
	}
	if err != nil {
		f.opt.Log.Error("the job log goes on without the accounting feed, which then has a gap", "batch", next,
			"error", err)
		f.mu.Lock()
		f.overflow = true
		f.mu.Unlock()
	}
}
