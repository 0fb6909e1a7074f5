package queue

import (
	"fmt"
	"maps"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/roost-batch/roost"
)

// Unsaved drains the jobs that have changed since the last checkpoint; gone tells which of them are not in the queue any more.
func (q *Queue) Unsaved() []uint64 { return drain(&q.unsaved) }

// Snapshot returns the whole truth about one job in its form on disk; false when it is not in the queue.
func (q *Queue) Snapshot(seq uint64) ([]byte, bool) {
	j := q.jobs[seq]
	if j == nil {
		return nil, false
	}
	admitted := Event{What: Submitted, Time: j.submitted, Job: j.seq, Submission: j.sub}
	b := message(nil, 1, func([]byte) []byte { return AppendEvent(nil, &admitted) })
	for first := 0; first < len(j.state); {
		last := first
		for last+1 < len(j.state) && j.state[last+1] == j.state[first] {
			last++
		}
		b = message(b, 2, func(b []byte) []byte {
			return number(number(b, 1, uint64(last-first+1)), 2, uint64(j.state[first]))
		})
		first = last + 1
	}
	for _, i := range slices.Sorted(maps.Keys(j.record)) {
		b = message(b, 3, func(b []byte) []byte { return j.record[i].append(number(b, 1, uint64(i))) })
	}
	if !j.blocked() {
		b = number(b, 4, 1)
	}
	return b, true
}

func (r *record) append(b []byte) []byte {
	b = number(b, 2, uint64(r.attempt))
	b = text(b, 3, r.node)
	b = text(b, 4, r.address)
	b = number(b, 5, r.claim)
	b = number(b, 6, uint64(r.assigned))
	b = number(b, 7, uint64(r.started))
	b = number(b, 8, uint64(r.ended))
	b = number(b, 9, uint64(r.own))
	b = number(b, 10, uint64(r.machine))
	b = truth(b, 11, r.live)
	b = text(b, 12, r.hold)
	b = truth(b, 13, r.held)
	b = text(b, 14, r.by)
	b = truth(b, 15, r.removed)
	b = text(b, 16, r.reason)
	b = truth(b, 17, r.force)
	if r.exit != nil {
		b = message(b, 18, r.exit.append)
	}
	return b
}

// saved is a snapshot taken apart.
type saved struct {
	admitted Event
	states   []roost.TaskState
	records  map[int]*record
	free     bool // not blocked
}

// Restore puts a job back that Snapshot wrote down.
func (q *Queue) Restore(snapshot []byte) error {
	s := saved{records: map[int]*record{}}
	err := fields(snapshot, func(f field) (err error) {
		switch f.number {
		case 1:
			s.admitted, err = DecodeEvent(f.bytes)
		case 2:
			err = s.run(f.bytes)
		case 3:
			err = s.record(f.bytes)
		case 4:
			s.free = f.value != 0
		}
		return err
	})
	if err == nil && (s.admitted.Submission == nil || len(s.states) != s.admitted.Submission.Count) {
		err = fmt.Errorf("%d states", len(s.states))
	}
	if err != nil {
		return fmt.Errorf("snapshot of a job: %w: %w", roost.Invalid, err)
	}
	q.restore(&s)
	return nil
}

func (s *saved) run(b []byte) error {
	var n, state uint64
	err := fields(b, func(f field) error {
		switch f.number {
		case 1:
			n = f.value
		case 2:
			state = f.value
		}
		return nil
	})
	if err == nil && (state > uint64(roost.Removed) || n > roost.MaxTasks || len(s.states)+int(n) > roost.MaxTasks) {
		err = fmt.Errorf("%d tasks in state %d", n, state)
	}
	if err == nil {
		s.states = append(s.states, slices.Repeat([]roost.TaskState{roost.TaskState(state)}, int(n))...)
	}
	return err
}

func (s *saved) record(b []byte) error {
	r, index := &record{}, 0
	err := fields(b, func(f field) error {
		switch f.number {
		case 1:
			index = int(f.value)
		case 2:
			r.attempt = roost.Attempt(f.value)
		case 3:
			r.node = string(f.bytes)
		case 4:
			r.address = string(f.bytes)
		case 5:
			r.claim = f.value
		case 6:
			r.assigned = int64(f.value)
		case 7:
			r.started = int64(f.value)
		case 8:
			r.ended = int64(f.value)
		case 9:
			r.own = int(f.value)
		case 10:
			r.machine = int(f.value)
		}
		return r.decodeRest(f)
	})
	s.records[index] = r
	return err
}

func (r *record) decodeRest(f field) error {
	switch f.number {
	case 11:
		r.live = f.value != 0
	case 12:
		r.hold = string(f.bytes)
	case 13:
		r.held = f.value != 0
	case 14:
		r.by = string(f.bytes)
	case 15:
		r.removed = f.value != 0
	case 16:
		r.reason = string(f.bytes)
	case 17:
		r.force = f.value != 0
	case 18:
		r.exit = &Exit{}
		return r.exit.decode(f.bytes)
	}
	return nil
}

// restore admits the job anew and brings its tasks to where they stood.
func (q *Queue) restore(s *saved) {
	q.admit(s.admitted)
	j := q.jobs[s.admitted.Job]
	if s.free {
		q.unblocked(j)
	}
	for i, r := range s.records {
		if i >= len(j.state) {
			continue
		}
		j.record[i] = r
		if r.live {
			j.active++
			if r.removed || r.held {
				q.asked = append(q.asked, Vacate{q.attemptOf(j, i), r.force, r.reason})
			}
		}
	}
	for i, to := range s.states {
		q.put(j, i, to)
		if r := j.record[i]; to == roost.Completed && r != nil && r.exit != nil && !r.exit.Success() {
			j.failed++
		}
	}
	q.settleAll(j)
	if j.final() {
		q.done[j.seq] = true
	}
	delete(q.unsaved, j.seq)
}

// put sets the state of a restored task, which may be any.
func (q *Queue) put(j *job, i int, to roost.TaskState) {
	from := j.state[i]
	if from == to {
		return
	}
	j.state[i] = to
	j.counts[from]--
	j.counts[to]++
	if to.Final() {
		q.tasks--
	}
	q.setReady(j, i, to == roost.Idle)
}

// LastSeq is the highest number that was given to a job; Resume raises it after a restart.
func (q *Queue) LastSeq() uint64 { return q.lastSeq }

// Resume makes the next job's number higher than seq.
func (q *Queue) Resume(seq uint64) { q.lastSeq = max(q.lastSeq, seq) }

// DecodeSubmission reads the job's own part of a snapshot, for the history.
func DecodeSubmission(snapshot []byte) (Event, error) {
	num, _, n := protowire.ConsumeTag(snapshot)
	if n < 0 || num != 1 {
		return Event{}, fmt.Errorf("snapshot of a job: %w", roost.Invalid)
	}
	b, m := protowire.ConsumeBytes(snapshot[n:])
	if m < 0 {
		return Event{}, fmt.Errorf("snapshot of a job: %w", roost.Invalid)
	}
	return DecodeEvent(b)
}
