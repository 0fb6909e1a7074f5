package journal

import (
	"maps"
	"slices"

	"github.com/roost-batch/roost/internal/boltfile"
	"github.com/roost-batch/roost/schedd/queue"
)

// replayQueue makes the queue of what is whole. An event that does not fit shows that one
// before it is missing: the job's events end there, and all is made again.
//
// To begin again after each such job would take jobs times damages. So a pass goes on
// after the first: what does not fit after it may only be because of it, and is believed
// where the job on its own fails at the same place.
func (r *repairState) replayQueue() *queue.Queue {
	own := map[uint64][]int{} // job -> the places of its events
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

// misfit is a job whose snapshot or one of whose events does not fit to what was before.
type misfit struct {
	seq     uint64
	place   int  // in news; noSnapshot: it is the snapshot
	certain bool // it is no consequence of another one
}

// noSnapshot is the place of a snapshot that cannot be read.
const noSnapshot = -1

// leaveOut takes out of the repair what does not fit.
func (r *repairState) leaveOut(m misfit) {
	if m.place == noSnapshot {
		delete(r.jobs, m.seq)
		r.lostJobs[m.seq] = true
		return
	}
	r.cutAt[m.seq] = m.place
}

// restoreAll restores all snapshots, and lists those that cannot be.
func (r *repairState) restoreAll(q *queue.Queue) (misfits []misfit) {
	for _, seq := range slices.Sorted(maps.Keys(r.jobs)) {
		if err := boltfile.CatchFaults(func() error { return q.RestoreSnapshot(cloneBytes(r.jobs[seq])) }); err != nil {
			misfits = append(misfits, misfit{seq: seq, place: noSnapshot})
		}
	}
	return misfits
}

// applyAll applies the events that count, and lists the first of each job that does not
// fit.
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

// alone is the place where a job fails in a queue of its own, which has the job's events
// at those places; it is past all of them where it does not.
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

// contradictions lists the jobs that could not be read again as they are in the queue. An
// event may be missing though those after it seem to fit.
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
		if first, cut := r.cutAt[seq]; cut && first == 0 { // its snapshot alone is wrong
			place = noSnapshot
		}
		misfits = append(misfits, misfit{seq, place, true})
	}
	return misfits
}
