package queue

import (
	"fmt"
	"maps"
	"slices"

	"github.com/roost-batch/roost"
)

// SnapshotJob is a job's whole form on disk; nil when it is not in the queue. The same state gives the same bytes.
func (q *Queue) SnapshotJob(seq uint64) []byte {
	j := q.jobs[seq]
	if j == nil {
		return nil
	}
	w := writer{[]byte{codecVersion}}
	w.number(j.seq)
	s := *j.sub
	for i := range j.columns {
		s.Columns = append(s.Columns, j.columns[i].column())
	}
	w.submission(&s)
	for _, t := range [...]int64{j.submitted, j.started, j.ended} {
		w.signed(t)
	}
	w.truth(j.due)
	w.waits(j.waits)
	for i := 0; i < len(j.state); { // runs of like states
		run := i
		for run < len(j.state) && j.state[run] == j.state[i] {
			run++
		}
		w.number(uint64(j.state[i]))
		w.number(uint64(run - i))
		i = run
	}
	w.number(uint64(len(j.records)))
	for _, i := range slices.Sorted(maps.Keys(j.records)) {
		w.number(uint64(i))
		w.record(j.records[i])
	}
	return w.b
}

// RestoreJob puts a job back. The queue must not hold it.
func (q *Queue) RestoreJob(b []byte) error {
	r := scanner{b: b}
	r.version()
	j := &job{seq: r.number(), sub: r.submission(), submitted: r.signed(), started: r.signed(), ended: r.signed(), due: r.truth(), waits: r.waits()}
	if r.err != nil {
		return r.end("job")
	}
	if q.jobs[j.seq] != nil || j.sub.Count < 1 || j.sub.Count > roost.MaxTasks {
		return fmt.Errorf("job %d: %w: it stands twice in the log, or has %d tasks", j.seq, roost.Internal, j.sub.Count)
	}
	for _, c := range j.sub.Columns {
		if len(c.Values) != j.sub.Count {
			r.fail("a column has too few values")
		}
	}
	j.state = make([]roost.TaskState, j.sub.Count)
	for i := 0; i < len(j.state) && r.err == nil; {
		s, run := roost.TaskState(r.number()), r.index()
		if s > roost.Removed || run == 0 || run > len(j.state)-i {
			r.fail("the states make no sense")
			break
		}
		for range run {
			j.state[i] = s
			i++
		}
	}
	j.records = map[int]*record{}
	for range r.length(16) {
		i, rec := r.index(), r.record()
		if i >= len(j.state) {
			r.fail("a record is of no task")
			break
		}
		j.records[i] = rec
	}
	for i, s := range j.state {
		rec := j.records[i]
		if s.Active() != (rec != nil && rec.live) || s == roost.Completed && rec.exit == nil {
			r.fail("a record does not fit its task's state")
			break
		}
		if s == roost.Completed && !rec.exit.Success() {
			j.failed++
		}
	}
	if err := r.end("job"); err != nil {
		return err
	}
	if err := j.read(); err != nil {
		return fmt.Errorf("job %d: %w", j.seq, err)
	}
	q.lastSeq = max(q.lastSeq, j.seq)
	q.enter(j)
	q.wishAgain(j)
	return nil
}

// wishAgain asks anew for the end of what was to end.
func (q *Queue) wishAgain(j *job) {
	for _, i := range slices.Sorted(maps.Keys(j.records)) {
		if r := j.records[i]; r.live && r.want != roost.Running {
			q.vacates = append(q.vacates, Vacate{roost.AttemptID{Task: j.id(q.host).Task(i), Attempt: r.attempt}, r.force, r.reason})
		}
	}
}

// SetLastSeq tells a fresh queue which numbers were given out before.
func (q *Queue) SetLastSeq(seq uint64) { q.lastSeq = max(q.lastSeq, seq) }

// Unsaved drains the jobs that have changed since the last call, and those that have left.
func (q *Queue) Unsaved() (changed, purged []uint64) {
	purged = q.departed
	q.departed = nil
	return drain(q.unsaved), purged
}

func (w *writer) record(r *record) {
	w.number(uint64(r.attempt))
	w.truth(r.live)
	w.number(uint64(r.own))
	w.number(uint64(r.machine))
	w.number(uint64(r.want))
	w.truth(r.force)
	w.signed(int64(r.code))
	w.text(r.node)
	w.text(r.address)
	w.number(r.claim)
	w.signed(r.assigned)
	w.signed(r.started)
	w.signed(r.ended)
	w.text(r.by)
	w.text(r.reason)
	w.truth(r.exit != nil)
	if r.exit != nil {
		w.exit(r.exit)
	}
}

func (s *scanner) record() *record {
	r := &record{attempt: roost.Attempt(s.index()), live: s.truth(), own: int16(s.number()), machine: int16(s.number())}
	r.want, r.force, r.code = roost.TaskState(s.number()), s.truth(), int(s.signed())
	r.node, r.address, r.claim = s.text(), s.text(), s.number()
	r.assigned, r.started, r.ended = s.signed(), s.signed(), s.signed()
	r.by, r.reason = s.text(), s.text()
	if s.truth() {
		r.exit = s.exit()
	}
	return r
}
