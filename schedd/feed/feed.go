package feed

import (
	"log/slog"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/accounting"
	"github.com/roost-batch/roost/internal/appendlog"
	"github.com/roost-batch/roost/internal/mutant"
	"github.com/roost-batch/roost/schedd/queue"
)

// LogName is the directory of the feed's log, and DamagedName the one to which a log is
// moved that cannot be read.
const (
	LogName     = "feed.log"
	DamagedName = "feed.damaged"
)

// Options says how a feed is kept.
type Options struct {
	Dir       string // of the schedd
	Host      string
	Wanted    bool                    // the pool has an accountant; otherwise one that calls begins the feed
	GroupName func(gid uint32) string // of the host
	HasRoom   func() bool             // the disk has room for more than what must not be lost; nil: always
	Log       *slog.Logger
	Bounds    Bounds
	onPoint   func(string) // for tests: called at each failpoint
}

// Bounds are how long the log may grow while nobody reads it, before it begins anew with
// a gap. Zero fields have defaults.
type Bounds struct {
	Bytes   int64
	Entries uint64
	Age     time.Duration
	Backlog int   // entries in memory
	Segment int64 // bytes after which the log begins a new file
}

func (b *Bounds) fillDefaults() {
	setDefault(&b.Bytes, 1<<30)
	setDefault(&b.Entries, 5_000_000)
	setDefault(&b.Age, 30*24*time.Hour)
	setDefault(&b.Backlog, 200_000)
	setDefault(&b.Segment, 4<<20)
}

func setDefault[T int | int64 | uint64 | time.Duration](to *T, value T) {
	if *to == 0 {
		*to = value
	}
}

// Feed is the accounting feed of one schedd. [New], then journal.OpenObserved with the
// feed, then Start; Run writes until its context ends. The loop of the schedd calls
// Before, After and Flush. Any goroutine may call the other methods.
type Feed struct {
	opt     Options
	source  accounting.SourceID
	encoder entryEncoder

	// of the loop, and of the replay before there is one
	deriver *Deriver
	batch   uint64 // that is replayed
	events  uint64 // applied since the start
	chunk   []queuedDraft

	broken     bool                         // it could not be opened; it is not written to
	collecting atomic.Bool                  // entries are derived
	durable    atomic.Pointer[durablePoint] // of the committer

	writer logWriter // of the goroutine that writes, and of Start before it
	wake   chan struct{}

	mu       sync.Mutex
	incoming []queuedDraft
	flushed  uint64         // all that follows from the first so many events was handed over
	points   []durablePoint // that the writer may use, oldest first
	overflow bool           // entries were dropped for want of room
	acked    uint64
	raised   uint64         // number that the next gap must have at least; 0: none is wanted
	waiters  []chan<- error // who waits until what was handed over is on disk
	index    logIndex       // what is on disk
	changed  chan struct{}  // closed when the index changes
}

// queuedDraft is an entry on its way to the log.
type queuedDraft struct {
	Draft
	events uint64 // it is derived from the first so many events since the start
}

// durablePoint is how far the journal is on disk.
type durablePoint struct {
	events uint64 // since the start
	batch  uint64 // the next one
}

// New returns the feed of a schedd, before its journal is read.
func New(opt Options) *Feed {
	opt.Bounds.fillDefaults()
	f := &Feed{opt: opt, wake: make(chan struct{}, 1), changed: make(chan struct{}),
		encoder: entryEncoder{groupName: opt.GroupName}}
	f.durable.Store(&durablePoint{})
	f.writer = logWriter{Feed: f}
	return f
}

func (f *Feed) dir() string { return filepath.Join(f.opt.Dir, LogName) }

// logID returns the id of the feed's log. A file of the journal that is put beside it by
// mistake has another one.
func (f *Feed) logID() appendlog.ID {
	id := appendlog.ID(f.source)
	id[0] ^= 0xfe
	return id
}

// OpenLog implements journal.Observer: it opens the log of the feed, if there is one.
// first is the first batch that the journal still has.
func (f *Feed) OpenLog(id appendlog.ID, first uint64) {
	f.source = accounting.SourceID(id)
	f.deriver = NewDeriver(f.source, f.opt.Host)
	found, err := f.writer.open()
	if err != nil {
		// the jobs are more important
		f.opt.Log.Error("there is no accounting feed until the schedd is restarted", "error", err)
		f.broken = true
		return
	}
	f.collecting.Store(found || f.opt.Wanted)
	if found && f.writer.through < first && !f.writer.needsGap {
		f.opt.Log.Warn("the accounting feed lacks what followed from a part of the job log",
			"from", f.writer.through, "before", first)
		f.writer.needsGap = true
	}
}

// BeginBatch implements journal.Observer.
func (f *Feed) BeginBatch(number uint64) { f.batch = number }

// BeforeEvent implements journal.Observer.
func (f *Feed) BeforeEvent(q *queue.Queue, e *queue.JobEvent) {
	if f.isReplayed() {
		f.deriver.Before(q, e)
	}
}

// AfterEvent implements journal.Observer.
func (f *Feed) AfterEvent(q *queue.Queue, e *queue.JobEvent) {
	if f.isReplayed() {
		f.deriver.After(q, e)
	}
}

// isReplayed reports whether the log of the feed lacks what follows from the batch.
func (f *Feed) isReplayed() bool {
	return f.writer.log != nil && !f.writer.needsGap && f.batch >= f.writer.through &&
		!mutant.Active(mutant.FeedRestartForgets)
}

// Start ends the replay. next is the next batch of the journal. What the log lacked is on
// disk on return.
func (f *Feed) Start(next uint64) {
	f.durable.Store(&durablePoint{batch: next})
	if f.writer.needsGap {
		f.writer.through = next
	}
	for _, d := range f.deriver.Take() {
		f.incoming = append(f.incoming, queuedDraft{Draft: d})
	}
	if f.writer.log != nil && f.writer.through > next {
		f.opt.Log.Warn("the accounting feed is newer than the job log, which seems to be an older copy",
			"feed", f.writer.through, "log", next)
		f.writer.needsGap, f.writer.through = true, next
	}
	if !f.collecting.Load() {
		return
	}
	if err := f.writer.write(); err != nil { // Run tries again
		f.opt.Log.Error("the accounting feed cannot be written; jobs are not affected", "error", err)
	}
}

// Before is Deriver.Before for the loop.
func (f *Feed) Before(q *queue.Queue, e *queue.JobEvent) {
	if f.collecting.Load() {
		f.deriver.Before(q, e)
	}
}

// chunkSize is how many entries the loop hands over at once.
const chunkSize = 256

// After is Deriver.After for the loop.
func (f *Feed) After(q *queue.Queue, e *queue.JobEvent) {
	f.events++
	if !f.collecting.Load() {
		return
	}
	f.deriver.After(q, e)
	f.takeDrafts()
}

// AddUsage adds what an attempt of a task used in an hour. It fills in the key.
func (f *Feed) AddUsage(q *queue.Queue, seq uint64, index int, attempt roost.AttemptNumber, u *accounting.UsageHour) {
	if f.collecting.Load() {
		u.AttemptKey = accounting.AttemptKey{JobKey: f.deriver.jobKey(q, seq), Index: index, Attempt: attempt}
		f.deriver.add(accounting.FeedEntry{Usage: u})
		f.takeDrafts()
	}
}

// IsCollecting reports whether the pool has an accountant.
func (f *Feed) IsCollecting() bool { return f.collecting.Load() }

func (f *Feed) takeDrafts() {
	for i := range f.deriver.drafts {
		f.chunk = append(f.chunk, queuedDraft{f.deriver.drafts[i], f.events})
	}
	f.deriver.drafts = f.deriver.drafts[:0]
	if len(f.chunk) >= chunkSize {
		f.Flush()
	}
}

// Flush hands over what the loop has derived. The loop calls it each second at least, and
// with each checkpoint.
func (f *Feed) Flush() {
	if !f.collecting.Load() {
		return
	}
	f.mu.Lock()
	if len(f.incoming)+len(f.chunk) > f.opt.Bounds.Backlog {
		f.incoming, f.overflow = nil, true
	}
	if !f.overflow {
		f.incoming = append(f.incoming, f.chunk...)
	}
	f.flushed = f.events
	f.mu.Unlock()
	clear(f.chunk)
	if f.chunk = f.chunk[:0]; cap(f.chunk) > 16*chunkSize {
		f.chunk = nil
	}
	f.signal()
}

// signal wakes the writer.
func (f *Feed) signal() {
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

// NoteAppended implements journal.Observer: the journal has so many further events on
// disk.
func (f *Feed) NoteAppended(events int, batch uint64) {
	f.durable.Store(&durablePoint{f.durable.Load().events + uint64(events), batch + 1})
}

// NoteCheckpoint implements journal.Observer: a checkpoint begins after the last batch.
// SyncThrough is going to need that what follows from it is in the log.
func (f *Feed) NoteCheckpoint() {
	f.mu.Lock()
	f.points = append(f.points, *f.durable.Load())
	f.mu.Unlock()
}

// usablePoint returns the last durable point of which all entries were handed over. There
// may be none yet: a batch is often on disk before the loop hands over what follows from
// it. The caller has locked f.mu.
func (f *Feed) usablePoint() (point durablePoint, usable bool) {
	if now := *f.durable.Load(); len(f.points) == 0 || f.points[len(f.points)-1].batch != now.batch {
		f.points = append(f.points, now)
	}
	n := 0
	for n < len(f.points) && f.points[n].events <= f.flushed {
		n++
	}
	if n == 0 {
		return point, false
	}
	f.points = append(f.points[:0], f.points[n-1:]...)
	return f.points[0], true
}

// Close closes the log.
func (f *Feed) Close() error {
	if f.writer.log == nil {
		return nil
	}
	return f.writer.log.Close()
}
