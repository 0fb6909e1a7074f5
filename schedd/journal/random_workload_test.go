package journal

import (
	"bytes"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/schedd/queue"
)

const host = "h"

var (
	alice = queue.CallerIdentity{User: "alice", UID: 1000, GID: 1000}
	epoch = time.Unix(1_700_000_000, 0)
)

// randomWorkload performs random operations on a queue. Each step returns the events of
// one batch, applied already.
type randomWorkload struct {
	*rand.Rand
	queue *queue.Queue
	now   time.Time
	keys  int
}

func newRandomWorkload(seed uint64, q *queue.Queue) *randomWorkload {
	return &randomWorkload{rand.New(rand.NewPCG(seed, 1)), q, epoch, 0}
}

func (s *randomWorkload) step(t testing.TB) []queue.JobEvent {
	t.Helper()
	s.now = s.now.Add(time.Second)
	target := queue.TaskSelector{Job: roost.JobID{Seq: 1 + s.Uint64N(s.queue.LastSeq()+1), Host: host}}
	var events []queue.JobEvent
	switch s.IntN(10) {
	case 0, 1:
		events = s.submit(t, 1+s.IntN(4))
	case 2:
		events, _ = s.queue.HoldTasks(s.now, alice, target, "")
	case 3:
		events, _ = s.queue.ReleaseTasks(s.now, alice, target)
	case 4:
		events, _ = s.queue.RemoveTasks(s.now, alice, target, "", false)
	case 5:
		if done := s.queue.TakeFinal(); len(done) > 0 {
			if e, ok := s.queue.PurgeJob(s.now, done[0]); ok {
				events = append(events, e)
			}
		}
	default:
		events = s.advanceTask(t)
	}
	s.apply(events)
	return events
}

func (s *randomWorkload) apply(events []queue.JobEvent) {
	for _, e := range events {
		s.queue.Apply(e)
	}
}

func (s *randomWorkload) submit(t testing.TB, count int) []queue.JobEvent {
	t.Helper()
	ad, err := classad.Parse(`[Cmd = "/bin/true"; MaxRetries = 1]`)
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
func (s *randomWorkload) advanceTask(t testing.TB) []queue.JobEvent {
	if live := s.queue.ActiveAttempts(); len(live) > 0 && s.IntN(2) == 0 {
		a := live[s.IntN(len(live))].Attempt
		if e, ok := s.queue.RecordStarted(s.now, a); ok && s.IntN(2) == 0 {
			return []queue.JobEvent{e}
		}
		e, err := s.queue.RecordEnded(s.now, a, &queue.AttemptExit{Code: int32(s.IntN(2))})
		if err != nil {
			t.Fatal(err)
		}
		return []queue.JobEvent{e}
	}
	for _, r := range s.queue.Requests() {
		if task, ok := s.queue.NextTask(r); ok {
			e, _, err := s.queue.AssignNext(s.now, task, "n", "unix:/n", 1)
			if err != nil {
				t.Fatal(err)
			}
			return []queue.JobEvent{e}
		}
	}
	return nil
}

// fullCheckpoint returns a checkpoint of all changes, as the daemon makes it.
func fullCheckpoint(q *queue.Queue) *QueueCheckpoint {
	c := &QueueCheckpoint{Jobs: map[uint64][]byte{}, LastSeq: q.LastSeq()}
	for _, seq := range q.TakeUnsaved() {
		c.Jobs[seq], _ = q.Snapshot(seq)
	}
	return c
}

// checkpoint writes a checkpoint, as the daemon does.
func checkpoint(j *Journal, c *QueueCheckpoint) error {
	if err := j.StartCheckpoint(c); err != nil {
		return err
	}
	return j.WriteCheckpoint(c)
}

// appendWith appends a batch, and then writes a checkpoint if one is given.
func appendWith(j *Journal, events []queue.JobEvent, c *QueueCheckpoint) error {
	if err := j.Append(events); err != nil || c == nil {
		return err
	}
	return checkpoint(j, c)
}

// checkSameQueue fails unless two queues are equal.
func checkSameQueue(t testing.TB, got, want *queue.Queue) {
	t.Helper()
	if got.Len() != want.Len() || got.LastSeq() != want.LastSeq() || got.OpenTaskCount() != want.OpenTaskCount() {
		t.Fatalf("got %d jobs, %d tasks, last job %d, want %d, %d, %d", got.Len(), got.OpenTaskCount(), got.LastSeq(),
			want.Len(), want.OpenTaskCount(), want.LastSeq())
	}
	for seq := range want.LastSeq() + 1 {
		a, _ := got.Snapshot(seq)
		if b, _ := want.Snapshot(seq); !bytes.Equal(a, b) {
			t.Fatalf("job %d is not the same:\n%x\n%x", seq, a, b)
		}
	}
	got.Check()
}

func open(t testing.TB, dir string) (*Journal, *queue.Queue) {
	t.Helper()
	j, q, err := Open(dir, host)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { j.Close() })
	return j, q
}
