package feed

import (
	"maps"
	"slices"
	"time"

	"github.com/roost-batch/roost/internal/accounting"
	"github.com/roost-batch/roost/schedd/queue"
)

// JobWalk makes entries of jobs as they are, for an accountant whose feed has a gap. The
// entries are as the feed would have had them.
type JobWalk struct {
	deriver *Deriver
	encoder entryEncoder
	host    string
	send    func(entries [][]byte) error
	entries [][]byte
	bytes   int
}

// maxWalkEntries bounds the entries that are sent at once.
const maxWalkEntries = 1000

// NewJobWalk returns a walk that hands entries over to send, which owns them then.
func NewJobWalk(f *Feed, send func(entries [][]byte) error) *JobWalk {
	return &JobWalk{deriver: NewDeriver(f.source, f.opt.Host), host: f.opt.Host,
		encoder: entryEncoder{groupName: f.opt.GroupName}, send: send}
}

// AddSnapshot adds the job of a snapshot, with its events.
func (w *JobWalk) AddSnapshot(snapshot []byte, events map[uint64][]queue.JobEvent) error {
	submitted, err := queue.DecodeSubmission(snapshot)
	if err != nil {
		return err
	}
	q := queue.New(w.host)
	if err := q.RestoreSnapshot(snapshot); err != nil {
		return err
	}
	return w.Add(q, submitted.Job, events[submitted.Job])
}

// RunningOptions say what [JobWalk.RunningDrafts] makes, beyond live attempts.
type RunningOptions struct {
	Now      time.Time // attempts have how they went until then; zero: they have not
	WithIdle bool      // an attempt 0 of the first task of each job that waits
}

// RunningDrafts makes the entries of a job of a queue with its live attempts, if it has
// any. They are not yet in the feed. Nothing is encoded, so that it takes little time.
func (w *JobWalk) RunningDrafts(q *queue.Queue, seq uint64, o RunningOptions) []Draft {
	live := q.LiveAttempts(seq)
	idle, isIdle := 0, false
	if o.WithIdle {
		idle, isIdle = q.FirstWaitingTask(seq)
	}
	j, there := q.AccountedJob(seq)
	if len(live) == 0 && !isIdle || !there {
		return nil
	}
	key := w.deriver.jobKey(q, seq)
	drafts := []Draft{jobDraft(key, w.host, &j, 0)}
	add := func(a *accounting.AttemptEntry) {
		drafts = append(drafts, Draft{FeedEntry: accounting.FeedEntry{Attempt: a}})
	}
	if isIdle {
		add(&accounting.AttemptEntry{AttemptKey: accounting.AttemptKey{JobKey: key, Index: idle}})
	}
	for _, index := range slices.Sorted(maps.Keys(live)) {
		a := live[index]
		entry := &accounting.AttemptEntry{AttemptKey: accounting.AttemptKey{JobKey: key, Index: index,
			Attempt: a.Attempt}, Node: a.Node, AppClass: a.AppClass, Assigned: millis(a.Assigned),
			Started: millis(a.Started), Held: a.Resources}
		if now := o.Now.UnixNano(); !o.Now.IsZero() && a.Started != 0 {
			entry.Wall = max(now-a.Started, 0) / 1e6
			addSegments(entry, &a, now)
		}
		add(entry)
	}
	return drafts
}

// Add adds a job, which is in a queue as it is after these events.
func (w *JobWalk) Add(q *queue.Queue, seq uint64, events []queue.JobEvent) error {
	return w.AddDrafts(w.deriver.JobDrafts(q, seq, events))
}

// AddDrafts adds entries.
func (w *JobWalk) AddDrafts(drafts []Draft) error {
	for i := range drafts {
		b := w.encoder.encode(&drafts[i])
		if len(w.entries) >= maxWalkEntries || w.bytes+len(b) > maxBatchBytes {
			if err := w.Flush(); err != nil {
				return err
			}
		}
		w.entries, w.bytes = append(w.entries, b), w.bytes+len(b)
	}
	return nil
}

// Flush sends what is left.
func (w *JobWalk) Flush() error {
	if len(w.entries) == 0 {
		return nil
	}
	entries := w.entries
	w.entries, w.bytes = nil, 0
	return w.send(entries)
}
