package journal

import (
	"maps"
	"slices"

	"github.com/roost-batch/roost/internal/boltfile"
	"github.com/roost-batch/roost/schedd/queue"
)

// replayQueue builds the queue from the intact records. An event that does not apply
// shows that an earlier one is missing: the job's events end there, and the replay
// restarts.
//
// Restarting after each such job would take jobs times damages. So a pass continues after
// the first misfit. A later misfit may only be a consequence of the first, and counts
// only if the job by itself fails at the same event.
func (r *repairState) replayQueue() *queue.Queue {
	own := map[uint64][]int{} // by job number: the indexes of its events
	for i := range r.newEvents {
		own[r.newEvents[i].seq] = append(own[r.newEvents[i].seq], i)
	}
	for {
		q := queue.New(r.host)
		misfits := r.restoreAll(q)
		if len(misfits) == 0 {
			misfits = r.applyAll(q)
		}
		if len(misfits) == 0 {
			if misfits = r.contradictions(q); len(misfits) == 0 {
				return q
			}
		}
		for n, m := range misfits {
			if n == 0 || m.certain || r.alone(own[m.seq], m.seq) == m.place {
				r.leaveOut(m)
			}
		}
	}
}

// misfit is a job whose snapshot cannot be restored or one of whose events does not
// apply.
type misfit struct {
	seq     uint64
	place   int  // index in newEvents, or noSnapshot for the snapshot
	certain bool // it is no consequence of another misfit
}

// noSnapshot is the place of an unreadable snapshot.
const noSnapshot = -1

// leaveOut excludes a misfit from the repair.
func (r *repairState) leaveOut(m misfit) {
	if m.place == noSnapshot {
		delete(r.jobs, m.seq)
		r.lostJobs[m.seq] = true
		return
	}
	r.cutAt[m.seq] = m.place
}

// restoreAll restores all snapshots and lists those that fail.
func (r *repairState) restoreAll(q *queue.Queue) (misfits []misfit) {
	for _, seq := range slices.Sorted(maps.Keys(r.jobs)) {
		if err := boltfile.CatchFaults(func() error { return q.RestoreSnapshot(cloneBytes(r.jobs[seq])) }); err != nil {
			misfits = append(misfits, misfit{seq: seq, place: noSnapshot})
		}
	}
	return misfits
}

// applyAll applies the events that are not excluded. It lists the first event of each job
// that fails to apply.
func (r *repairState) applyAll(q *queue.Queue) (misfits []misfit) {
	failed := map[uint64]bool{}
	for i := range r.newEvents {
		n := &r.newEvents[i]
		if r.lostJobs[n.seq] || failed[n.seq] || i >= r.cutIndex(n.seq) {
			continue
		}
		if apply(q, n.raw) != nil {
			failed[n.seq] = true
			misfits = append(misfits, misfit{seq: n.seq, place: i})
		}
	}
	return misfits
}

func apply(q *queue.Queue, raw []byte) error {
	return boltfile.CatchFaults(func() error {
		e, err := queue.DecodeEvent(raw)
		if err == nil {
			q.Apply(e)
		}
		return err
	})
}

// alone returns the place where a job fails by itself. It uses a queue with only that
// job, whose events have the indexes in own. If none fails the result is past all of
// them.
func (r *repairState) alone(own []int, seq uint64) (place int) {
	q := queue.New(r.host)
	if snapshot := r.jobs[seq]; snapshot != nil {
		if boltfile.CatchFaults(func() error { return q.RestoreSnapshot(cloneBytes(snapshot)) }) != nil {
			return noSnapshot
		}
	}
	for _, i := range own {
		if i < r.cutIndex(seq) && apply(q, r.newEvents[i].raw) != nil {
			return i
		}
	}
	return len(r.newEvents)
}

// contradictions lists the jobs whose state in the queue cannot be saved and restored. An
// event may be missing though those after it apply.
func (r *repairState) contradictions(q *queue.Queue) (misfits []misfit) {
	for _, seq := range r.knownJobs() {
		snapshot, there := q.Snapshot(seq)
		if !there {
			continue
		}
		again := queue.New(r.host)
		if boltfile.CatchFaults(func() error { return again.RestoreSnapshot(snapshot) }) == nil {
			continue
		}
		place := 0
		if first, cut := r.cutAt[seq]; cut && first == 0 { // the snapshot by itself is invalid
			place = noSnapshot
		}
		misfits = append(misfits, misfit{seq, place, true})
	}
	return misfits
}
