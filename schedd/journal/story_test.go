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
	alice = queue.Submitter{User: "alice", UID: 1000, GID: 1000}
	epoch = time.Unix(1_700_000_000, 0)
)

// story makes things happen to a queue at random; each step gives the events of one batch, applied already.
type story struct {
	*rand.Rand
	queue *queue.Queue
	now   time.Time
	keys  int
}

func newStory(seed uint64, q *queue.Queue) *story {
	return &story{rand.New(rand.NewPCG(seed, 1)), q, epoch, 0}
}

func (s *story) step(t testing.TB) []queue.Event {
	t.Helper()
	s.now = s.now.Add(time.Second)
	target := queue.Target{Job: roost.JobID{Seq: 1 + s.Uint64N(s.queue.LastSeq()+1), Host: host}}
	var events []queue.Event
	switch s.IntN(10) {
	case 0, 1:
		events = s.submit(t, 1+s.IntN(4))
	case 2:
		events, _ = s.queue.Hold(s.now, alice, target, "")
	case 3:
		events, _ = s.queue.Release(s.now, alice, target)
	case 4:
		events, _ = s.queue.Remove(s.now, alice, target, "", false)
	case 5:
		if done := s.queue.Done(); len(done) > 0 {
			if e, ok := s.queue.Purge(s.now, done[0]); ok {
				events = append(events, e)
			}
		}
	default:
		events = s.work(t)
	}
	s.apply(events)
	return events
}

func (s *story) apply(events []queue.Event) {
	for _, e := range events {
		s.queue.Apply(e)
	}
}

func (s *story) submit(t testing.TB, count int) []queue.Event {
	t.Helper()
	ad, err := classad.Parse(`[Cmd = "/bin/true"; MaxRetries = 1]`)
	if err != nil {
		t.Fatal(err)
	}
	s.keys++
	spec := queue.Spec{Ad: ad, Count: count}
	events, _, _, err := s.queue.Submit(s.now, alice, "k"+strconv.Itoa(s.keys), []queue.Spec{spec}, queue.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	return events
}

// work moves some task a step on.
func (s *story) work(t testing.TB) []queue.Event {
	if live := s.queue.Active(); len(live) > 0 && s.IntN(2) == 0 {
		a := live[s.IntN(len(live))].Attempt
		if e, ok := s.queue.Start(s.now, a); ok && s.IntN(2) == 0 {
			return []queue.Event{e}
		}
		e, err := s.queue.End(s.now, a, &queue.Exit{Code: int32(s.IntN(2))})
		if err != nil {
			t.Fatal(err)
		}
		return []queue.Event{e}
	}
	for _, r := range s.queue.Requests() {
		if task, ok := s.queue.Next(r); ok {
			e, _, err := s.queue.Assign(s.now, task, "n", "unix:/n", 1)
			if err != nil {
				t.Fatal(err)
			}
			return []queue.Event{e}
		}
	}
	return nil
}

// checkpoint is one of all that has changed, as the daemon makes it.
func checkpoint(q *queue.Queue) *Checkpoint {
	c := &Checkpoint{Jobs: map[uint64][]byte{}, LastSeq: q.LastSeq()}
	for _, seq := range q.Unsaved() {
		c.Jobs[seq], _ = q.Snapshot(seq)
	}
	return c
}

// same fails unless two queues hold the same.
func same(t testing.TB, got, want *queue.Queue) {
	t.Helper()
	if got.Len() != want.Len() || got.LastSeq() != want.LastSeq() || got.Tasks() != want.Tasks() {
		t.Fatalf("got %d jobs, %d tasks, last job %d, want %d, %d, %d", got.Len(), got.Tasks(), got.LastSeq(), want.Len(), want.Tasks(), want.LastSeq())
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
