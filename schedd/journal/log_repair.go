package journal

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/appendlog"
	"github.com/roost-batch/roost/internal/boltfile"
	"github.com/roost-batch/roost/schedd/queue"
)

// How far job and attempt numbers skip ahead when unknown events are lost, so that no
// number is assigned twice. A log contains fewer submissions or attempts between two
// checkpoints.
const (
	skippedSeqs     = 100_000
	skippedAttempts = 1_000_000
)

// Repair removes damaged parts from the log in dir. With dry it only reports what it
// would do. It returns nil if nothing is damaged. No schedd may run meanwhile.
//
// It corrects a record with one flipped bit, which the checksum identifies. It removes a
// job whose snapshot has more damage. A job that lacks an event keeps its state from
// before that event and is held: what happened since is unknown, and a task that has run
// must not run again before somebody has checked it. If the jobs of the lost events are
// unknown, Repair does this to every job. An unrecorded attempt may be active, so the
// next attempts of such a job have numbers beyond all that may have been assigned, and
// the queue marks the job as uncertain.
func Repair(dir, host string, now time.Time, dry bool) (*boltfile.RepairReport, error) {
	r := newRepairState(host)
	path := filepath.Join(dir, FileName)
	damage, err := r.readFiles(path)
	if err != nil || damage == nil {
		return nil, err
	}
	r.classifyDamage(damage.Damages)
	q := r.replayQueue()
	held := r.holdIncomplete(q, now)
	report := &boltfile.RepairReport{Path: damage.Path, Damages: damage.Names(), Actions: r.actionTexts(q, held)}
	if !dry {
		report.DamagedPath, err = r.replaceFiles(path, q, held, now)
	}
	return report, err
}

// HoldRestored makes a restored copy of a log one whose newest events are lost. The copy
// is of the time at. What happened since is unknown, so it holds all jobs that had not
// ended, as [Repair] does, and no number of a job or an attempt is given twice.
func HoldRestored(dir, host string, now, at time.Time) (*boltfile.RepairReport, error) {
	r := newRepairState(host)
	r.uncertain, r.restoredFrom = true, at
	path := filepath.Join(dir, FileName)
	damage, err := r.readFiles(path)
	if err != nil {
		return nil, err
	}
	report := &boltfile.RepairReport{Path: path}
	if damage != nil {
		report.Damages = damage.Names()
		r.classifyDamage(damage.Damages)
	} else {
		r.classifyDamage(nil)
	}
	q := r.replayQueue()
	held := r.holdIncomplete(q, now)
	report.Actions = r.actionTexts(q, held)
	report.DamagedPath, err = r.replaceFiles(path, q, held, now)
	return report, err
}

// SalvageQueue builds a queue as a repair does, from snapshots and later events. A nil
// event is lost. It also returns the jobs that it holds. The simulator uses it, as it has
// its own disks.
func SalvageQueue(host string, snapshots map[uint64][]byte, events [][]byte,
	now time.Time) (q *queue.Queue, held []uint64) {
	r := repairState{host: host, jobs: maps.Clone(snapshots), cutAt: map[uint64]int{}, lostJobs: map[uint64]bool{},
		attempts: map[uint64]roost.AttemptNumber{}}
	for _, raw := range events {
		e, err := queue.DecodeEvent(raw)
		if r.uncertain = r.uncertain || raw == nil || err != nil; raw == nil || err != nil {
			continue
		}
		r.newEvents = append(r.newEvents, loggedEvent{nil, e.Job, raw})
		r.attempts[e.Job] = max(r.attempts[e.Job], e.Attempt)
	}
	q = r.replayQueue()
	for _, e := range r.holdIncomplete(q, now) {
		if e.Type == queue.Held {
			held = append(held, e.Job)
		}
	}
	return q, held
}

// repairState contains the intact parts of a damaged log.
type repairState struct {
	host      string
	jobs      map[uint64][]byte // snapshots by job number
	oldEvents []loggedEvent     // events up to the last checkpoint
	batches   map[uint64]salvagedBatch
	counters  map[string]uint64
	removed   map[uint64][]byte // records of earlier repairs about removed jobs
	logID     *appendlog.ID     // nil: unknown
	logNext   uint64            // above the number of each entry of the log

	newEvents []loggedEvent  // events since the last checkpoint, in order
	cutAt     map[uint64]int // by job number: index in newEvents of the first event that does not apply
	lostJobs  map[uint64]bool
	attempts  map[uint64]roost.AttemptNumber // by job number: highest attempt number of any of its events
	corrected int                            // number of records and events with one flipped bit
	uncertain bool                           // events of unknown jobs are lost
	// time of the backup that the log is from; zero: it is the log itself
	restoredFrom time.Time
}

func newRepairState(host string) *repairState {
	return &repairState{
		host: host, jobs: map[uint64][]byte{}, counters: map[string]uint64{}, batches: map[uint64]salvagedBatch{},
		cutAt: map[uint64]int{}, lostJobs: map[uint64]bool{},
		attempts: map[uint64]roost.AttemptNumber{}, removed: map[uint64][]byte{},
	}
}

// loggedEvent is an event with its position.
type loggedEvent struct {
	key []byte // in the bucket of events
	seq uint64
	raw []byte // nil: it is damaged
}

// addRecord adds an intact record.
func (r *repairState) addRecord(bucket string, key, value []byte) {
	if len(key) < 8 && bucket != string(bucketCounters) {
		return
	}
	value = cloneBytes(value)
	switch bucket {
	case string(bucketJobs):
		r.jobs[binary.BigEndian.Uint64(key)] = value
	case string(bucketEvents):
		r.oldEvents = append(r.oldEvents, loggedEvent{cloneBytes(key), binary.BigEndian.Uint64(key), value})
	case string(bucketLog):
		r.batches[binary.BigEndian.Uint64(key)] = salvageBatch(value)
	case string(bucketCounters):
		if seq, is := removedJob(key); is {
			r.removed[seq] = value
		} else if string(key) == string(keyLogID) && len(value) == len(r.logID) {
			r.logID = (*appendlog.ID)(value)
		} else if len(value) == 8 {
			r.counters[string(key)] = binary.BigEndian.Uint64(value)
		}
	}
}

// classifyDamage determines which jobs the damages affect.
func (r *repairState) classifyDamage(damages []boltfile.DamageFinding) {
	for i := range damages {
		d := &damages[i]
		first, last, some := jobRange(d)
		switch single := some && first == last && last != 0; {
		case d.Corrected:
			r.corrected++
			if d.From != nil {
				r.addRecord(d.Bucket, d.From, d.Raw)
			}
		case d.Bucket == string(bucketEvents):
		case d.Bucket == string(bucketJobs) && single:
			r.lostJobs[first] = true
		case d.Bucket == string(bucketLog) && !d.IsRange && len(d.From) == 8:
			s := salvageBatch(d.Raw)
			r.batches[binary.BigEndian.Uint64(d.From)] = s
			r.corrected += len(s.corrected)
			r.uncertain = r.uncertain || s.unknownLost || len(s.corrected) == 0
		default:
			r.uncertain = true
		}
	}
	submitted := map[uint64]bool{}
	for _, n := range slices.Sorted(maps.Keys(r.batches)) {
		for place, raw := range r.batches[n].events {
			e, err := queue.DecodeEvent(raw)
			if err != nil {
				continue
			}
			submitted[e.Job] = submitted[e.Job] || e.Type == queue.Submitted || e.Type == queue.Returned
			r.newEvents = append(r.newEvents, loggedEvent{eventKey(e.Job, n, uint32(place+1)), e.Job, raw})
			r.attempts[e.Job] = max(r.attempts[e.Job], e.Attempt)
		}
	}
	// events before the checkpoint without a snapshot mean that the snapshot is lost
	for i := range r.oldEvents {
		seq := r.oldEvents[i].seq
		r.lostJobs[seq] = r.lostJobs[seq] || r.jobs[seq] == nil && !submitted[seq]
		if e, err := queue.DecodeEvent(r.oldEvents[i].raw); err == nil {
			r.attempts[seq] = max(r.attempts[seq], e.Attempt)
		}
	}
	maps.DeleteFunc(r.lostJobs, func(seq uint64, lost bool) bool { return !lost || seq == 0 || r.jobs[seq] != nil })
}

// cutIndex returns the index from which the events of a job are ignored.
func (r *repairState) cutIndex(seq uint64) int {
	if place, hit := r.cutAt[seq]; hit {
		return place
	}
	return len(r.newEvents) + 1<<30
}

// knownJobs lists the jobs that any record mentions.
func (r *repairState) knownJobs() []uint64 {
	all := map[uint64]bool{}
	for seq := range r.jobs {
		all[seq] = true
	}
	for seq := range r.lostJobs {
		all[seq] = true
	}
	for seq := range r.cutAt {
		all[seq] = true
	}
	for _, list := range [][]loggedEvent{r.oldEvents, r.newEvents} {
		for i := range list {
			all[list[i].seq] = true
		}
	}
	delete(all, 0)
	return slices.Sorted(maps.Keys(all))
}

// holdIncomplete holds the jobs that lack events, and returns the events that do it.
func (r *repairState) holdIncomplete(q *queue.Queue, now time.Time) (events []queue.JobEvent) {
	for _, seq := range r.knownJobs() {
		if !r.cutJob(seq) && !r.uncertain {
			continue
		}
		e, ok := q.HoldDamaged(now, seq, r.attempts[seq]+skippedAttempts, r.holdReason())
		if ok {
			q.Apply(e)
			events = append(events, e)
		}
	}
	return append(events, r.endSuperseded(q, now)...)
}

// holdReason says to users why their jobs are held.
func (r *repairState) holdReason() string {
	if !r.restoredFrom.IsZero() {
		return fmt.Sprintf("the queue was restored from a backup of %s, and what happened since is unknown: see what "+
			"it has done, then release or remove it", r.restoredFrom.Local().Format("2006-01-02 15:04:05"))
	}
	return "its record on disk was damaged, and what happened to it last may be missing: see what it has done, then " +
		"release or remove it"
}

// endSuperseded ends attempts that seem active only because their ends are lost. Their
// jobs lack an event, and their claim ran another attempt since: a claim runs one after
// the other.
func (r *repairState) endSuperseded(q *queue.Queue, now time.Time) (events []queue.JobEvent) {
	type claim struct {
		node string
		id   uint64
	}
	last := map[claim]roost.AttemptID{}
	for i := range r.newEvents {
		if e, err := queue.DecodeEvent(r.newEvents[i].raw); err == nil && e.Type == queue.Assigned {
			task := roost.JobID{Seq: e.Job, Host: r.host}.Task(e.Index)
			last[claim{e.Node, e.Claim}] = roost.AttemptID{Task: task, Attempt: e.Attempt}
		}
	}
	for _, a := range q.ActiveAttempts() {
		newest, known := last[claim{a.Node, a.Claim}]
		if !known || newest == a.Attempt || !r.uncertain && !r.cutJob(a.Attempt.Task.Job.Seq) {
			continue
		}
		if e, ok := q.RecordLost(now, a.Attempt,
			"its end is not on record, and its claim was given another task since"); ok {
			q.Apply(e)
			events = append(events, e)
		}
	}
	return events
}

// actionTexts describes what the repair does to each job.
func (r *repairState) actionTexts(q *queue.Queue, held []queue.JobEvent) (all []string) {
	id := func(seq uint64) roost.JobID { return roost.JobID{Seq: seq, Host: r.host} }
	if r.corrected > 0 {
		all = append(all, fmt.Sprintf("%d records are put right: one bit of each has flipped, and its checksum "+
			"tells which", r.corrected))
	}
	for _, seq := range r.takenOut(q) {
		all = append(all, fmt.Sprintf("job %v is taken out", id(seq)))
	}
	for _, e := range held {
		if e.Type != queue.Held {
			continue
		}
		how := "is held in the state before what is missing"
		if st, ok := q.Status(e.Job); ok && st.Counts[roost.Completed]+st.Counts[roost.Removed] == st.Tasks {
			how = "has ended, as far as it is known"
		}
		all = append(all, fmt.Sprintf("job %v %s", id(e.Job), how))
	}
	if r.uncertain && r.restoredFrom.IsZero() {
		all = append(all, "it is unknown which jobs the lost newest events belong to: all jobs that have not "+
			"ended are held, and jobs whose submission is lost are not in the queue")
	}
	return append(all, fmt.Sprintf("%d jobs are kept", len(r.remainingJobs(q))))
}

func (r *repairState) cutJob(seq uint64) bool {
	_, cut := r.cutAt[seq]
	return cut
}

func (r *repairState) remainingJobs(q *queue.Queue) (seqs []uint64) {
	for _, seq := range r.knownJobs() {
		if _, there := q.Status(seq); there {
			seqs = append(seqs, seq)
		}
	}
	return seqs
}

// writeLog writes the new file, all of it as a checkpoint. Next is the first batch of the
// log that continues it; the events that hold jobs get the number before.
func (r *repairState) writeLog(w *boltfile.ReplacementWriter, q *queue.Queue, held []queue.JobEvent,
	next uint64, now time.Time) error {
	there := map[uint64]bool{}
	for _, seq := range r.remainingJobs(q) {
		there[seq] = true
		snapshot, _ := q.Snapshot(seq)
		w.Put(string(bucketJobs), bigEndian(seq), snapshot)
	}
	events := slices.Clone(r.oldEvents)
	for i, n := range r.newEvents {
		if i < r.cutIndex(n.seq) {
			events = append(events, n)
		}
	}
	for i := range held {
		events = append(events, loggedEvent{eventKey(held[i].Job, next-1, uint32(i+1)), held[i].Job,
			queue.AppendEvent(nil, &held[i])})
	}
	slices.SortFunc(events, func(a, b loggedEvent) int { return bytes.Compare(a.key, b.key) })
	for _, e := range events {
		event, err := queue.DecodeEvent(e.raw)
		if err != nil || !there[e.seq] {
			continue
		}
		event.Submission = nil // it is in the snapshot
		w.Put(string(bucketEvents), e.key, queue.AppendEvent(nil, &event))
	}
	last := max(q.LastSeq(), r.counters[string(keyLastSeq)])
	if known := r.knownJobs(); len(known) > 0 {
		last = max(last, known[len(known)-1])
	}
	if r.uncertain || r.counters[string(keyLastSeq)] == 0 {
		last += skippedSeqs
	}
	incarnation, counted := r.counters[string(keyIncarnation)]
	if !counted {
		incarnation = uint64(now.Unix()) // above all earlier counts, and session numbers have room for it
	}
	w.Put(string(bucketCounters), keyLastSeq, bigEndian(last))
	w.Put(string(bucketCounters), keyNextBatch, bigEndian(next))
	w.Put(string(bucketCounters), keyLogID, r.logID[:])
	w.Put(string(bucketCounters), keyIncarnation, bigEndian(incarnation))
	return nil
}
