package feed

import (
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/schedd/queue"
	"github.com/roost-batch/roost/schedd/queue/eventlog"
)

const testHost = "h"

var (
	alice = queue.CallerIdentity{User: "alice", UID: 1000, GID: 1000}
	epoch = time.Unix(1_700_000_000, 0)
)

// randomJobs does random things to a queue. Its caller applies the events of a step.
type randomJobs struct {
	*rand.Rand
	queue  *queue.Queue
	now    time.Time
	keys   int
	images uint64
}

func newRandomJobs(seed uint64, q *queue.Queue) *randomJobs {
	return &randomJobs{Rand: rand.New(rand.NewPCG(seed, 1)), queue: q, now: epoch}
}

func (s *randomJobs) step(t testing.TB) (events []queue.JobEvent) {
	t.Helper()
	s.now = s.now.Add(time.Duration(1+s.IntN(5000)) * time.Millisecond)
	target := queue.TaskSelector{Job: roost.JobID{Seq: 1 + s.Uint64N(s.queue.LastSeq()+1), Host: testHost}}
	switch s.IntN(16) {
	case 0, 1:
		return s.submit(t, 1+s.IntN(4))
	case 2:
		events, _ = s.queue.HoldTasks(s.now, alice, target, "because")
	case 3:
		events, _ = s.queue.ReleaseTasks(s.now, alice, target)
	case 4:
		if s.IntN(4) == 0 {
			events, _ = s.queue.RemoveTasks(s.now, alice, target, "no longer needed", false)
		}
	case 5:
		events, _ = s.queue.RetryTasks(s.now, alice, target)
	case 6:
		events, _ = s.queue.SuspendTasks(s.now, alice, target, "")
	case 7:
		events, _ = s.queue.ResumeTasks(s.now, alice, target)
	case 8:
		events, _ = s.queue.RerunTasks(s.now, alice, target, false)
	default:
		events = s.advanceTask(t)
	}
	return events
}

func (s *randomJobs) submit(t testing.TB, count int) []queue.JobEvent {
	t.Helper()
	ad, err := classad.Parse(`[Cmd = "/usr/bin/wave"; Iwd = "/home/alice"; MaxRetries = 1; RequestCpus = 2;
		PBS = [Account_Name = "ocean"]]`)
	if err != nil {
		t.Fatal(err)
	}
	s.keys++
	spec := queue.SubmitSpec{Ad: ad, Count: count}
	events, _, _, err := s.queue.SubmitJobs(s.now, alice, "k"+strconv.Itoa(s.keys), []queue.SubmitSpec{spec},
		queue.SubmitLimits{})
	if err != nil {
		t.Fatal(err)
	}
	return events
}

// advanceTask advances a random task by one step.
func (s *randomJobs) advanceTask(t testing.TB) []queue.JobEvent {
	if live := s.queue.ActiveAttempts(); len(live) > 0 && s.IntN(2) == 0 {
		return s.advanceAttempt(t, live[s.IntN(len(live))])
	}
	for _, r := range s.queue.Requests() {
		if task, ok := s.queue.NextTask(r); ok {
			e, _, err := s.queue.AssignNext(s.now, task, "n"+strconv.Itoa(s.IntN(3)), "unix:/n", 1)
			if err != nil {
				t.Fatal(err)
			}
			return []queue.JobEvent{e}
		}
	}
	return nil
}

func (s *randomJobs) advanceAttempt(t testing.TB, live queue.ActiveAttempt) []queue.JobEvent {
	a := live.Attempt
	if e, ok := s.queue.RecordStarted(s.now, a); ok && s.IntN(3) > 0 {
		return []queue.JobEvent{e}
	}
	switch s.IntN(6) {
	case 0:
		if e, ok := s.queue.SuspendForOwner(s.now, a, live.Node, []string{"", "a key was pressed"}[s.IntN(2)]); ok {
			return []queue.JobEvent{e}
		}
	case 1:
		if live.StartTime {
			s.images++
			image := &queue.CheckpointImage{Sequence: s.images, Attempt: a.Attempt, Node: live.Node,
				CPUUsage: queue.CPUUsage{Wall: s.Int64N(1e10)}}
			return []queue.JobEvent{{Type: queue.Checkpointed, Time: s.now.UnixNano(), Job: a.Task.Job.Seq,
				Index: a.Task.Index, Attempt: a.Attempt, Image: image}}
		}
	case 2:
		if e, ok := s.queue.RecordLost(s.now, a, "its node is gone"); ok {
			return []queue.JobEvent{e}
		}
	}
	causes := []queue.ExitCause{queue.CauseExited, queue.CauseExited, queue.CauseVacate, queue.CausePreemption,
		queue.CauseMemory, eventlog.CauseLease}
	e, err := s.queue.RecordEnded(s.now, a, &queue.AttemptExit{Code: int32(s.IntN(2)),
		Cause: causes[s.IntN(len(causes))], Wall: s.Int64N(2e10), User: s.Int64N(1e10),
		Used: queue.ResourceUsage{Peak: s.Int64N(1 << 20)}})
	if err != nil {
		t.Fatal(err)
	}
	return []queue.JobEvent{e}
}
