package queue

import (
	"fmt"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/roost-batch/roost"
)

// Unsaved drains the jobs that have changed since the last checkpoint; gone tells which of them are not in the queue any more.
func (q *Queue) Unsaved() []uint64 { return drain(&q.unsaved) }

// The fields of a snapshot. Tasks come in runs: of one state, of one note, of successes.
const (
	sAdmitted = iota + 1
	sStates
	sRecord
	sFree
	sMet
	sNode // before the successes that refer to it
	sFinished
	sBegan
	sEnded
	sRank
	sSince
	sPast  // of tasks that run: the ad with which they began, and which they are
	sAdded // what others have said of it
	sOn    // that are to come yet; so the next
	sSync
	sRival
	sStopped
	sBarren
	sDue // its start time has come, though it waits for others
	sEntered
	sWaiting
	sWaited
	sAbove
	sUnsure
	sUrgent // tasks that are to run now
	sDenied // why they could not
)

// Snapshot returns the whole truth about one job in its form on disk; false when it is not in the queue.
func (q *Queue) Snapshot(seq uint64) ([]byte, bool) {
	j := q.jobs[seq]
	if j == nil {
		return nil, false
	}
	sub := *j.sub
	sub.Unasked = q.unasked[seq]
	admitted := Event{What: Submitted, Time: j.submitted, Job: j.seq, Submission: &sub}
	b := message(nil, sAdmitted, func([]byte) []byte { return AppendEvent(nil, &admitted) })
	for first := 0; first < len(j.state); {
		last := runOf(j.state, first)
		b = message(b, sStates, func(b []byte) []byte {
			return number(number(b, 1, uint64(last-first+1)), 2, uint64(j.state[first]))
		})
		first = last + 1
	}
	b = j.book.append(b)
	if !j.blocked() {
		b = number(b, sFree, 1)
	}
	for i, w := range j.sub.Waits {
		if !slices.Contains(j.waits, w) {
			b = number(b, sMet, uint64(i+1))
		}
	}
	b = number(number(b, sBegan, uint64(j.began)), sEnded, uint64(j.ended))
	if j.rank != j.seq {
		b = number(number(b, sRank, j.rank), sSince, uint64(j.since))
	}
	return j.appendUrgent(j.distrust.append(j.eligible.append(j.relations(j.appendPast(b))))), true
}

// appendPast adds what tasks that run began with, where the job has been altered since.
func (j *job) appendPast(b []byte) []byte {
	if j.active == 0 || !slices.ContainsFunc(j.classes, func(c *class) bool { return c.past != nil }) {
		return b
	}
	var all []*past
	tasks := map[*past][]Range{}
	for i, s := range j.state {
		if p := j.class(i).past; p != nil && s.Active() {
			if tasks[p] == nil {
				all = append(all, p)
			}
			tasks[p] = appendIndex(tasks[p], i)
		}
	}
	for _, p := range all {
		b = message(b, sPast, func(b []byte) []byte {
			b = text(b, 1, p.ad)
			for _, r := range tasks[p] {
				b = message(b, 2, func(b []byte) []byte { return number(number(b, 1, uint64(r.First)), 2, uint64(r.Last)) })
			}
			return b
		})
	}
	return b
}

// runOf returns the last index of the run of equal things that begins at first.
func runOf[T comparable](list []T, first int) int {
	last := first
	for last+1 < len(list) && list[last+1] == list[first] {
		last++
	}
	return last
}

// append adds what is known of tasks beyond their states.
func (b *book) append(buf []byte) []byte {
	for _, name := range b.nodes {
		buf = protowire.AppendString(protowire.AppendTag(buf, sNode, protowire.BytesType), name)
	}
	for first := 0; first < len(b.refs); {
		last := first
		switch b.refs[first].kind() {
		case kindOwn:
			buf = message(buf, sRecord, func(buf []byte) []byte { return b.written(first).append(number(buf, 1, uint64(first))) })
		case kindNote:
			last = runOf(b.refs, first)
			buf = message(buf, sRecord, func(buf []byte) []byte {
				return number(b.at(first).append(number(buf, 1, uint64(first))), 19, uint64(last))
			})
		case kindFinished:
			for last+1 < len(b.refs) && b.refs[last+1].kind() == kindFinished {
				last++
			}
			buf = message(buf, sFinished, func(buf []byte) []byte { return b.appendFinished(buf, first, last) })
		}
		first = last + 1
	}
	return buf
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
	if r.saves != nil {
		b = message(b, 20, r.saves.append)
	}
	b = text(b, 21, r.place)
	b = text(b, 22, r.owner)
	b = truth(b, 23, r.both)
	b = truth(b, 24, r.requeued)
	b = number(b, 25, uint64(r.spoiled))
	return b
}

// put sets the state of a restored task, which may be any.
func (q *Queue) put(j *job, i int, to roost.TaskState) {
	from := j.state[i]
	if from == to {
		return
	}
	j.state[i] = to
	j.gangs.moved(i, from, to)
	j.counts[from]--
	j.counts[to]++
	j.show(i)
	if to.Final() {
		q.countOpen(j, -1)
		j.class(i).open--
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
