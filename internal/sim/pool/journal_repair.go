package pool

import (
	"encoding/binary"
	"fmt"
	"slices"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/sim/audit"
	"github.com/roost-batch/roost/internal/sim/eventloop"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/schedd/journal"
	"github.com/roost-batch/roost/schedd/queue"
)

// A schedd with a damaged log does not start. The simulated administrator runs roost
// doctor --repair at once, and releases the jobs that it holds as soon as the schedd
// permits it.

// releaseInterval is the time between two attempts of the administrator to release a job.
const releaseInterval = 10 * time.Second

// damageWindow is the number of newest events among which one is damaged: older ones no
// longer matter.
const damageWindow = 40

// damageEvent makes an event unreadable in the log of a schedd that is down. It spares
// submissions and jobs that have moved into the history since.
func (s *scheddNode) damageEvent(n int) {
	type place struct{ batch, from, to int }
	var all []place
	gone := map[uint64]bool{}
	for i := len(s.files.log) - 1; i >= 0; i-- {
		var batch []place
		for _, e := range eventSpans(s.files.log[i]) {
			event, err := queue.DecodeEvent(s.files.log[i][e.body:e.to])
			if err != nil || e.body == e.to {
				continue
			}
			gone[event.Job] = gone[event.Job] || event.Type == queue.Purged
			if event.Type != queue.Submitted && !gone[event.Job] {
				batch = append(batch, place{i, e.from, e.to})
			}
		}
		slices.Reverse(batch)
		all = append(all, batch...)
	}
	if all = all[:min(len(all), damageWindow)]; len(all) == 0 {
		return
	}
	at := all[n%len(all)]
	batch := s.files.log[at.batch]
	_, k := binary.Uvarint(batch[at.from:])
	event, err := queue.DecodeEvent(batch[at.from+k : at.to])
	if err != nil {
		panic(fmt.Sprintf("%s: an event of its log: %v", s.name, err))
	}
	s.files.damagedJobs = append(s.files.damagedJobs, event.Job)
	s.files.log[at.batch] = slices.Concat(batch[:at.from], []byte{0}, batch[at.to:])
}

// eventSpan is the place of an event in a batch. It has the offsets of the event's
// length, of its body and of its end.
type eventSpan struct{ from, body, to int }

func eventSpans(batch []byte) (all []eventSpan) {
	for at := 0; at < len(batch); {
		size, k := binary.Uvarint(batch[at:])
		all = append(all, eventSpan{at, at + k, at + k + int(size)})
		at += k + int(size)
	}
	return all
}

// repairLog rebuilds a log with lost events, as roost doctor does. It returns the jobs
// that lost events, and the jobs that are held because of it.
func (s *scheddNode) repairLog() (hit, held []uint64) {
	if hit = s.files.damagedJobs; len(hit) == 0 {
		return nil, nil
	}
	var events [][]byte
	for _, batch := range s.files.log {
		for _, e := range eventSpans(batch) {
			if e.body == e.to {
				events = append(events, nil)
			} else {
				events = append(events, batch[e.body:e.to])
			}
		}
	}
	q, held := journal.SalvageQueue(s.queueName, s.files.snapshots, events, s.wallTime())
	clear(s.files.snapshots)
	for _, id := range q.MatchingJobs(queue.JobFilter{}) {
		s.files.snapshots[id.Seq], _ = q.Snapshot(id.Seq)
	}
	s.files.lastSeq, s.files.log, s.files.size, s.files.damagedJobs = max(q.LastSeq(), s.files.lastSeq), nil, 0, nil
	return hit, held
}

// reportDoubted reports to the observer which jobs a repair holds. Of jobs that lost an
// event it also reports the tasks that are unfinished by the repaired log.
func (s *scheddNode) reportDoubted(q *queue.Queue, hit, held []uint64) {
	for _, seq := range held {
		id := roost.JobID{Seq: seq, Host: s.queueName}
		open := false
		q.EachTask(queue.TaskSelector{Job: id}, func(st queue.JobStatus) bool {
			final, index := st.Task.State.IsFinal(), st.Task.Index
			if open = open || !final; slices.Contains(hit, seq) && !final {
				s.pool.observe(audit.Event{Type: audit.RecordLost, Job: id, Index: index})
				s.reopenTask(id, index)
			}
			return true
		})
		if !open {
			continue
		}
		s.pool.observe(audit.Event{Type: audit.HeldByUser, Job: id, Index: audit.AllTasks})
		s.releaseHeld(id)
	}
}

// reopenTask makes a task unfinished again.
func (s *jobReporter) reopenTask(id roost.JobID, index int) {
	if !s.ended[id.Seq][index] {
		return
	}
	delete(s.ended[id.Seq], index)
	u := &s.sim.users[s.jobs[id.Seq]]
	if u.unfinished++; u.unfinished == 1 {
		s.sim.unfinished++
	}
	s.sim.endedTasks--
}

// releaseHeld releases a job that a repair holds, as soon as the schedd permits it. What
// a schedd has not answered it may have lost, and is asked for again.
func (s *scheddNode) releaseHeld(id roost.JobID) {
	answered := false
	s.planRelease(id, &answered)
}

func (s *scheddNode) planRelease(id roost.JobID, answered *bool) {
	s.pool.loop.Schedule(eventloop.PlannedEvent{At: s.pool.loop.Now() + releaseInterval, Place: s.id, Kind: evFunc,
		Payload: func() {
			if *answered {
				return
			}
			if !s.isUp || s.nextDaemonTime() > s.pool.loop.Now() {
				s.planRelease(id, answered)
				return
			}
			if _, unsure := s.core.Queue().UnrecordedLease(id.Seq); !unsure { // already released, or ended
				return
			}
			s.planRelease(id, answered)
			root := queue.CallerIdentity{User: "root", Host: s.name, Admin: true}
			release := &wire.ActRequest{Verb: wire.ActRequest_RELEASE}
			if s.core.Act(s.timeOf(), release, root, queue.TaskSelector{Job: id}, func() { *answered = true }) != nil {
				return
			}
			s.pool.users[s.jobs[id.Seq]].releases++
			s.pool.observe(audit.Event{Type: audit.Released, Job: id, Index: audit.AllTasks})
			s.endTurn()
		}})
}
