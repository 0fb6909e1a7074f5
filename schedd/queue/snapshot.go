package queue

import (
	"fmt"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/roost-batch/roost"
)

// The fields of a snapshot. Tasks come in runs: of one state, of one note, of successes.
const (
	sAdmitted = iota + 1
	sStates
	sRecord
	sUnblocked
	sResolved
	sNode // before the successes that refer to it
	sFinished
	sBegan
	sEnded
	sOrderRank
	sOrderTime
	sOldAd          // of tasks that run: the ad with which they began, and which they are
	sAdded          // what others have said of it
	sExpectedBefore // that are to come yet; so the next
	sExpectedSync
	sRunOne
	sRunOneStarted
	sRemovedUnstarted
	sDue // its start time has come, though it waits for others
	sEligibleSince
	sWaitingSince
	sWaited
	sMaxUnrecorded
	sAttemptMayLive
	sUrgent // tasks that are to run now
	sDenied // why they could not
)

// Snapshot returns the whole truth about one job in its form on disk; false when it is
// not in the queue.
func (q *Queue) Snapshot(seq uint64) ([]byte, bool) {
	j := q.jobs[seq]
	if j == nil {
		return nil, false
	}
	sub := *j.submission
	sub.DeferredAdmission = q.deferredJobs[seq]
	admitted := JobEvent{Type: Submitted, Time: j.submitted, Job: j.seq, Submission: &sub}
	b := appendMessage(nil, sAdmitted, func([]byte) []byte { return AppendEvent(nil, &admitted) })
	for first := 0; first < len(j.state); {
		last := runEnd(j.state, first)
		b = appendMessage(b, sStates, func(b []byte) []byte {
			return appendNumber(appendNumber(b, 1, uint64(last-first+1)), 2, uint64(j.state[first]))
		})
		first = last + 1
	}
	b = j.records.append(b)
	if !j.isBlocked() {
		b = appendNumber(b, sUnblocked, 1)
	}
	for i, w := range j.submission.Dependencies {
		if !slices.Contains(j.dependencies, w) {
			b = appendNumber(b, sResolved, uint64(i+1))
		}
	}
	b = appendNumber(appendNumber(b, sBegan, uint64(j.firstStarted)), sEnded, uint64(j.lastEnded))
	if j.orderRank != j.seq {
		b = appendNumber(appendNumber(b, sOrderRank, j.orderRank), sOrderTime, uint64(j.orderTime))
	}
	return j.appendUrgent(j.distrust.append(j.eligible.append(j.appendDependencies(j.appendOldAds(b))))), true
}

// appendOldAds adds what tasks that run began with, where the job has been altered since.
func (j *job) appendOldAds(b []byte) []byte {
	if j.active == 0 || !slices.ContainsFunc(j.classes, func(c *taskClass) bool { return c.oldAd != nil }) {
		return b
	}
	var all []*oldAd
	tasks := map[*oldAd][]IndexRange{}
	for i, s := range j.state {
		if p := j.class(i).oldAd; p != nil && s.IsActive() {
			if tasks[p] == nil {
				all = append(all, p)
			}
			tasks[p] = appendIndex(tasks[p], i)
		}
	}
	for _, p := range all {
		b = appendMessage(b, sOldAd, func(b []byte) []byte {
			b = appendText(b, 1, p.ad)
			for _, r := range tasks[p] {
				b = appendMessage(b, 2, func(b []byte) []byte {
					return appendNumber(appendNumber(b, 1, uint64(r.First)), 2, uint64(r.Last))
				})
			}
			return b
		})
	}
	return b
}

// runEnd returns the last index of the run of equal things that begins at first.
func runEnd[T comparable](list []T, first int) int {
	last := first
	for last+1 < len(list) && list[last+1] == list[first] {
		last++
	}
	return last
}

// append adds what is known of tasks beyond their states.
func (b *taskRecords) append(buf []byte) []byte {
	for _, name := range b.nodes {
		buf = protowire.AppendString(protowire.AppendTag(buf, sNode, protowire.BytesType), name)
	}
	for first := 0; first < len(b.refs); {
		last := first
		switch b.refs[first].kind() {
		case refOwn:
			buf = appendMessage(buf, sRecord, func(buf []byte) []byte {
				return b.own(first).append(appendNumber(buf, 1, uint64(first)))
			})
		case refShared:
			last = runEnd(b.refs, first)
			buf = appendMessage(buf, sRecord, func(buf []byte) []byte {
				return appendNumber(b.get(first).append(appendNumber(buf, 1, uint64(first))), 19, uint64(last))
			})
		case refSuccess:
			for last+1 < len(b.refs) && b.refs[last+1].kind() == refSuccess {
				last++
			}
			buf = appendMessage(buf, sFinished, func(buf []byte) []byte { return b.appendSuccesses(buf, first, last) })
		}
		first = last + 1
	}
	return buf
}

func (r *taskRecord) append(b []byte) []byte {
	b = appendNumber(b, 2, uint64(r.attempt))
	b = appendText(b, 3, r.node)
	b = appendText(b, 4, r.address)
	b = appendNumber(b, 5, r.claim)
	b = appendNumber(b, 6, uint64(r.assigned))
	b = appendNumber(b, 7, uint64(r.started))
	b = appendNumber(b, 8, uint64(r.ended))
	b = appendNumber(b, 9, uint64(r.jobFailures))
	b = appendNumber(b, 10, uint64(r.machineFailures))
	b = appendBool(b, 11, r.live)
	b = appendText(b, 12, r.holdReason)
	b = appendBool(b, 13, r.holdWanted)
	b = appendText(b, 14, r.requestedBy)
	b = appendBool(b, 15, r.removeWanted)
	b = appendText(b, 16, r.reason)
	b = appendBool(b, 17, r.force)
	if r.exit != nil {
		b = appendMessage(b, 18, r.exit.append)
	}
	if r.checkpoints != nil {
		b = appendMessage(b, 20, r.checkpoints.append)
	}
	b = appendText(b, 21, r.placement)
	b = appendText(b, 22, r.ownerReason)
	b = appendBool(b, 23, r.alsoByUser)
	b = appendBool(b, 24, r.requeueWanted)
	b = appendNumber(b, 25, uint64(r.lastMachineFailure))
	return b
}

// restoreState sets the state of a restored task, which may be any.
func (q *Queue) restoreState(j *job, i int, to roost.TaskState) {
	from := j.state[i]
	if from == to {
		return
	}
	j.state[i] = to
	j.gangs.taskMoved(i, from, to)
	j.counts[from]--
	j.counts[to]++
	j.updateUserState(i)
	if to.IsFinal() {
		q.countOpen(j, -1)
		j.class(i).open--
	}
	q.setReady(j, i, to == roost.Idle)
}

// DecodeSubmission reads the job's own part of a snapshot, for the history.
func DecodeSubmission(snapshot []byte) (JobEvent, error) {
	num, _, n := protowire.ConsumeTag(snapshot)
	if n < 0 || num != 1 {
		return JobEvent{}, fmt.Errorf("snapshot of a job: %w", roost.Invalid)
	}
	b, m := protowire.ConsumeBytes(snapshot[n:])
	if m < 0 {
		return JobEvent{}, fmt.Errorf("snapshot of a job: %w", roost.Invalid)
	}
	return DecodeEvent(b)
}
