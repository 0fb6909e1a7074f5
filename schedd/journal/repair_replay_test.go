package journal

import (
	"bytes"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/boltfile"
	"github.com/roost-batch/roost/schedd/queue"
)

// naiveReplay excludes one misfit at a time and restarts.
func (r *repairState) naiveReplay() *queue.Queue {
	for {
		q := queue.New(r.host)
		var first []misfit
		for _, seq := range slices.Sorted(maps.Keys(r.jobs)) {
			if boltfile.CatchFaults(func() error { return q.RestoreSnapshot(cloneBytes(r.jobs[seq])) }) != nil {
				first = []misfit{{seq: seq, place: noSnapshot}}
				break
			}
		}
		for i := 0; i < len(r.newEvents) && first == nil; i++ {
			if n := r.newEvents[i]; !r.lostJobs[n.seq] && i < r.cutIndex(n.seq) && apply(q, n.raw) != nil {
				first = []misfit{{seq: n.seq, place: i}}
			}
		}
		if first == nil {
			first = r.contradictions(q)
		}
		if len(first) == 0 {
			return q
		}
		r.leaveOut(first[0])
	}
}

// TestReplayIsThatOfOneByOne checks that a replay that excludes several misfits in a pass
// equals a naive one. The naive replay restarts after each misfit.
func TestReplayIsThatOfOneByOne(t *testing.T) {
	cuts, lost := 0, 0
	for seed := range uint64(60) {
		q := queue.New(host)
		s := newRandomWorkload(seed, q)
		snapshots := map[uint64][]byte{}
		var events []queue.JobEvent
		for i := range 150 {
			step := s.step(t)
			if events = append(events, step...); i == 40 {
				for seq := range q.LastSeq() + 1 {
					if snapshot, there := q.Snapshot(seq); there {
						snapshots[seq] = snapshot
					}
				}
				events = nil
			}
		}
		rng := rand.New(rand.NewPCG(seed, 9))
		for seq, snapshot := range snapshots {
			if rng.IntN(10) == 0 {
				snapshots[seq] = snapshot[:rng.IntN(len(snapshot))]
			}
		}
		var news []loggedEvent
		for i := range events {
			if rng.IntN(6) > 0 {
				news = append(news, loggedEvent{nil, events[i].Job, queue.AppendEvent(nil, &events[i])})
			}
		}
		made := func() *repairState {
			return &repairState{host: host, jobs: maps.Clone(snapshots), newEvents: news, cutAt: map[uint64]int{},
				lostJobs: map[uint64]bool{}, attempts: map[uint64]roost.AttemptNumber{}}
		}
		one, all := made(), made()
		want, got := one.naiveReplay(), all.replayQueue()
		if !maps.Equal(one.cutAt, all.cutAt) || !maps.Equal(one.lostJobs, all.lostJobs) {
			t.Fatalf("seed %d: cut %v and lost %v, want %v and %v", seed, all.cutAt, all.lostJobs, one.cutAt,
				one.lostJobs)
		}
		for seq := range q.LastSeq() + 1 {
			a, _ := got.Snapshot(seq)
			if b, _ := want.Snapshot(seq); !bytes.Equal(a, b) {
				t.Fatalf("seed %d: job %d is not the same", seed, seq)
			}
		}
		got.Check()
		cuts, lost = cuts+len(one.cutAt), lost+len(one.lostJobs)
	}
	if t.Logf("%d jobs were cut short and %d taken out", cuts, lost); cuts < 100 || lost < 20 {
		t.Error("too few to tell")
	}
}
