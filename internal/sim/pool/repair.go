package pool

import (
	"encoding/binary"
	"fmt"
	"slices"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/sim/audit"
	"github.com/roost-batch/roost/internal/sim/kernel"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/schedd/journal"
	"github.com/roost-batch/roost/schedd/queue"
)

// A schedd whose log is damaged does not start. Here somebody runs roost doctor --repair at once, and lets the jobs go on that it holds, as soon as the schedd
// allows that.

// releaseEvery is how often he tries.
const releaseEvery = 10 * time.Second

// recent is of how many of the newest events one is lost: what was long ago says nothing any more.
const recent = 40

// lose makes an event in the log of a schedd that is down unreadable. Submissions are spared, and jobs that have gone into the history since.
func (s *scheddNode) lose(n int) {
	type place struct{ batch, from, to int }
	var all []place
	gone := map[uint64]bool{}
	for i := len(s.files.log) - 1; i >= 0; i-- {
		var batch []place
		for _, e := range pieces(s.files.log[i]) {
			event, err := queue.DecodeEvent(s.files.log[i][e.body:e.to])
			if err != nil || e.body == e.to {
				continue
			}
			gone[event.Job] = gone[event.Job] || event.What == queue.Purged
			if event.What != queue.Submitted && !gone[event.Job] {
				batch = append(batch, place{i, e.from, e.to})
			}
		}
		slices.Reverse(batch)
		all = append(all, batch...)
	}
	if all = all[:min(len(all), recent)]; len(all) == 0 {
		return
	}
	at := all[n%len(all)]
	batch := s.files.log[at.batch]
	_, k := binary.Uvarint(batch[at.from:])
	event, err := queue.DecodeEvent(batch[at.from+k : at.to])
	if err != nil {
		panic(fmt.Sprintf("%s: an event of its log: %v", s.name, err))
	}
	s.files.hit = append(s.files.hit, event.Job)
	s.files.log[at.batch] = slices.Concat(batch[:at.from], []byte{0}, batch[at.to:])
}

// piece is where an event stands in a batch: its length, its body, and its end.
type piece struct{ from, body, to int }

func pieces(batch []byte) (all []piece) {
	for at := 0; at < len(batch); {
		size, k := binary.Uvarint(batch[at:])
		all = append(all, piece{at, at + k, at + k + int(size)})
		at += k + int(size)
	}
	return all
}

// repair makes the log anew where events are lost, as roost doctor does, and returns the jobs of which, and those that are held for that.
func (s *scheddNode) repair() (hit, held []uint64) {
	if hit = s.files.hit; len(hit) == 0 {
		return nil, nil
	}
	var events [][]byte
	for _, batch := range s.files.log {
		for _, e := range pieces(batch) {
			if e.body == e.to {
				events = append(events, nil)
			} else {
				events = append(events, batch[e.body:e.to])
			}
		}
	}
	q, held := journal.Salvage(s.name, s.files.snapshots, events, s.now())
	clear(s.files.snapshots)
	for _, id := range q.Match(queue.Filter{}) {
		s.files.snapshots[id.Seq], _ = q.Snapshot(id.Seq)
	}
	s.files.last, s.files.log, s.files.size, s.files.hit = max(q.LastSeq(), s.files.last), nil, 0, nil
	return hit, held
}

// doubted tells the observer of what a repair says: which jobs are held, and which of their tasks have not come to their end any more, as far as the log knows.
// That is so of jobs only of which an event was lost.
func (s *scheddNode) doubted(q *queue.Queue, hit, held []uint64) {
	for _, seq := range held {
		id := roost.JobID{Seq: seq, Host: s.name}
		open := false
		q.EachTask(queue.Target{Job: id}, func(st queue.Status) bool {
			final, index := st.Task.State.Final(), st.Task.Index
			if open = open || !final; slices.Contains(hit, seq) && !final {
				s.p.see(audit.Seen{What: audit.Doubted, Job: id, Index: index})
				s.unsettled(id, index)
			}
			return true
		})
		if !open {
			continue
		}
		s.p.see(audit.Seen{What: audit.HeldBack, Job: id, Index: audit.All})
		s.letGo(id)
	}
}

// unsettled takes back that a task has come to its end.
func (s *scheddNode) unsettled(id roost.JobID, index int) {
	if !s.ended[id.Seq][index] {
		return
	}
	delete(s.ended[id.Seq], index)
	u := &s.p.users[s.jobs[id.Seq]]
	if u.open++; u.open == 1 {
		s.p.unfinished++
	}
	s.p.over--
}

// letGo has a job released that a repair holds, as soon as the schedd does that.
func (s *scheddNode) letGo(id roost.JobID) {
	s.p.k.Plan(kernel.Event{At: s.p.k.Now() + releaseEvery, Place: s.id, Kind: evCall, With: func() {
		if !s.up || s.until() > s.p.k.Now() {
			s.letGo(id)
			return
		}
		if _, unsure := s.core.Queue().Unsure(id.Seq); !unsure { // it was released, or is over
			return
		}
		root := queue.Submitter{User: "root", Host: s.name, Admin: true}
		if err := s.core.Act(s.moment(), wire.ActRequest_RELEASE, root, queue.Target{Job: id}, func() {}); err != nil {
			s.letGo(id)
			return
		}
		s.p.users[s.jobs[id.Seq]].letGo++
		s.p.see(audit.Seen{What: audit.LetGo, Job: id, Index: audit.All})
		s.turn()
	}})
}
