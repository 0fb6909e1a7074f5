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
	"github.com/roost-batch/roost/internal/boltfile"
	"github.com/roost-batch/roost/schedd/queue"
)

// How far numbers jump where events are lost, and which cannot be told: a number that was
// given is not given again. Between two checkpoints a log has no room for as many
// submissions or attempts.
const (
	skippedSeqs     = 100_000
	skippedAttempts = 1_000_000
)

// Repair takes out of the log in dir what is damaged; dry only says what would be. It
// returns nil where nothing is. No schedd may run.
//
// What has one flipped bit is put right, for its checksum tells which. A job whose
// snapshot has more damage is taken out. One that lacks an event stays as it stood before
// that event, and is held: what happened to it since is not known, and a task that has
// run must not run again before somebody has looked. Where it cannot be told whose events
// are lost, that is done to every job. An attempt that is not on record may live, so the
// next ones of such a job have numbers beyond all that may have been given, and the queue
// remembers that it is unsure of the job.
func Repair(dir, host string, now time.Time, dry bool) (*boltfile.RepairReport, error) {
	r := repairState{
		host: host, jobs: map[uint64][]byte{}, counters: map[string]uint64{}, batches: map[uint64]salvagedBatch{},
		cutAt: map[uint64]int{}, lostJobs: map[uint64]bool{},
		attempts: map[uint64]roost.AttemptNumber{}, removed: map[uint64][]byte{},
	}
	path, kind := filepath.Join(dir, FileName), fileKind(host)
	damage, err := boltfile.InspectFile(path, kind, r.addRecord)
	if err != nil || damage == nil {
		return nil, err
	}
	r.classifyDamage(damage.Damages)
	q := r.replayQueue()
	held := r.holdIncomplete(q, now)
	report := &boltfile.RepairReport{Path: path, Damages: damage.Names(), Actions: r.actionTexts(q, held)}
	if !dry {
		report.DamagedPath, err = boltfile.ReplaceDamaged(path, kind, now, func(w *boltfile.ReplacementWriter) error {
			r.writeRemoved(w, q, now, boltfile.Aside(path, now))
			return r.writeLog(w, q, held, now)
		})
	}
	return report, err
}

// SalvageQueue is the queue that a repair makes of snapshots and of the events since, of
// which a nil one is lost, and the jobs that it holds: for the simulator, whose disks are
// its own.
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

// repairState is what is whole in a damaged log.
type repairState struct {
	host      string
	jobs      map[uint64][]byte // snapshots
	oldEvents []loggedEvent     // events up to the last checkpoint
	batches   map[uint64]salvagedBatch
	counters  map[string]uint64
	removed   map[uint64][]byte // what an earlier repair wrote of jobs that it took out

	newEvents []loggedEvent  // events since, in their order
	cutAt     map[uint64]int // job -> place in news of its first event that does not fit
	lostJobs  map[uint64]bool
	attempts  map[uint64]roost.AttemptNumber // job -> highest number of an attempt that any event of it has
	corrected int                            // records and events that had one flipped bit
	uncertain bool                           // events are lost, and whose is not known
}

// loggedEvent is an event, and where it stands.
type loggedEvent struct {
	key []byte // in the bucket of events
	seq uint64
	raw []byte // nil: it is damaged
}

// addRecord takes in a record that is whole.
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
		} else if len(value) == 8 {
			r.counters[string(key)] = binary.BigEndian.Uint64(value)
		}
	}
}

// classifyDamage finds out from the damages which jobs are hit.
func (r *repairState) classifyDamage(damages []boltfile.DamageFinding) {
	for i := range damages {
		d := &damages[i]
		first, last, some := jobRange(d)
		switch single := some && first == last && last != 0; {
		case d.Corrected:
			r.corrected++
			r.addRecord(d.Bucket, d.From, d.Raw)
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
			key := binary.BigEndian.AppendUint32(append(bigEndian(e.Job), bigEndian(n)...), uint32(place+1))
			r.newEvents = append(r.newEvents, loggedEvent{key, e.Job, raw})
			r.attempts[e.Job] = max(r.attempts[e.Job], e.Attempt)
		}
	}
	// a snapshot that is not found, by the number that it has, was of a job that
	// something happened to
	for i := range r.oldEvents {
		seq := r.oldEvents[i].seq
		r.lostJobs[seq] = r.lostJobs[seq] || r.jobs[seq] == nil && !submitted[seq]
		if e, err := queue.DecodeEvent(r.oldEvents[i].raw); err == nil {
			r.attempts[seq] = max(r.attempts[seq], e.Attempt)
		}
	}
	maps.DeleteFunc(r.lostJobs, func(seq uint64, lost bool) bool { return !lost || seq == 0 || r.jobs[seq] != nil })
}

// cutIndex is from where on the events of a job count no more.
func (r *repairState) cutIndex(seq uint64) int {
	if place, hit := r.cutAt[seq]; hit {
		return place
	}
	return len(r.newEvents) + 1<<30
}

// knownJobs lists the jobs that anything tells of.
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

// holdIncomplete holds the jobs of which something is missing, and returns the events
// that do.
func (r *repairState) holdIncomplete(q *queue.Queue, now time.Time) (events []queue.JobEvent) {
	for _, seq := range r.knownJobs() {
		if !r.cutJob(seq) && !r.uncertain {
			continue
		}
		e, ok := q.HoldDamaged(now, seq, r.attempts[seq]+skippedAttempts,
			"its record on disk was damaged, and what happened to it last may be missing: see what it has done, then "+
				"release or remove it")
		if ok {
			q.Apply(e)
			events = append(events, e)
		}
	}
	return append(events, r.endSuperseded(q, now)...)
}

// endSuperseded ends attempts of jobs that lack an event which seem to live, as their
// ends are lost, on claims that were given another one since: a claim runs one after the
// other.
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

// actionTexts says what becomes of whom.
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
		how := "is held as it stood before what is missing"
		if st, ok := q.Status(e.Job); ok && st.Counts[roost.Completed]+st.Counts[roost.Removed] == st.Tasks {
			how = "has ended, as far as it is known"
		}
		all = append(all, fmt.Sprintf("job %v %s", id(e.Job), how))
	}
	if r.uncertain {
		all = append(all, "what is lost of the newest events cannot be told by job: all jobs that have not ended are "+
			"held, and jobs whose submission is lost are not in the queue")
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

// writeLog writes the new log: all of it as a checkpoint.
func (r *repairState) writeLog(w *boltfile.ReplacementWriter, q *queue.Queue, held []queue.JobEvent,
	now time.Time) error {
	there := map[uint64]bool{}
	for _, seq := range r.remainingJobs(q) {
		there[seq] = true
		snapshot, _ := q.Snapshot(seq)
		w.Put(string(bucketJobs), bigEndian(seq), snapshot)
	}
	next := r.counters[string(keyNextBatch)]
	for n := range r.batches {
		next = max(next, n+1)
	}
	events := slices.Clone(r.oldEvents)
	for i, n := range r.newEvents {
		if i < r.cutIndex(n.seq) {
			events = append(events, n)
		}
	}
	for i := range held {
		key := binary.BigEndian.AppendUint32(append(bigEndian(held[i].Job), bigEndian(next)...), uint32(i+1))
		events = append(events, loggedEvent{key, held[i].Job, queue.AppendEvent(nil, &held[i])})
	}
	slices.SortFunc(events, func(a, b loggedEvent) int { return bytes.Compare(a.key, b.key) })
	for _, e := range events {
		event, err := queue.DecodeEvent(e.raw)
		if err != nil || !there[e.seq] {
			continue
		}
		event.Submission = nil // the snapshot has it
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
		incarnation = uint64(now.Unix()) // above all that were counted, and numbers of sessions have room for it
	}
	w.Put(string(bucketCounters), keyLastSeq, bigEndian(last))
	w.Put(string(bucketCounters), keyNextBatch, bigEndian(next+1))
	w.Put(string(bucketCounters), keyIncarnation, bigEndian(incarnation))
	return nil
}
