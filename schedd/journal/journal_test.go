package journal

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/schedd/queue"
)

// TestReopen checks that appended events survive any number of reopenings, with or
// without checkpoints in between.
func TestReopen(t *testing.T) {
	for seed := range uint64(4) {
		dir := t.TempDir()
		j, q := open(t, dir)
		s := newRandomWorkload(seed, q)
		for i := range 150 {
			var c *QueueCheckpoint
			events := s.step(t)
			if seed > 0 && s.IntN(10) == 0 {
				c = fullCheckpoint(s.queue)
			}
			if err := appendWith(j, events, c); err != nil {
				t.Fatal(err)
			}
			if i%50 != 49 {
				continue
			}
			if err := j.Close(); err != nil {
				t.Fatal(err)
			}
			j, q = open(t, dir)
			checkSameQueue(t, q, s.queue)
			s.queue = q
		}
	}
}

// TestEvents checks that a job's events are complete and in order across checkpoints and
// restarts, and deleted with the job.
func TestEvents(t *testing.T) {
	dir := t.TempDir()
	j, q := open(t, dir)
	want := map[uint64][]string{}
	s := newRandomWorkload(5, q)
	for i := range 300 {
		events := s.step(t)
		for _, e := range events {
			want[e.Job] = append(want[e.Job], eventTexts(&e))
		}
		var c *QueueCheckpoint
		if i%7 == 0 {
			c = fullCheckpoint(s.queue)
		}
		if err := appendWith(j, events, c); err != nil {
			t.Fatal(err)
		}
		if i%40 == 39 {
			j.Close()
			j, s.queue = open(t, dir)
		}
	}
	if err := checkpoint(j, fullCheckpoint(s.queue)); err != nil {
		t.Fatal(err)
	}
	for seq := range s.queue.LastSeq() + 1 {
		if _, ok := s.queue.Status(seq); !ok {
			want[seq] = nil
		}
		got, err := j.Events(seq)
		if err != nil {
			t.Fatal(err)
		}
		var lines []string
		for _, e := range got[seq] {
			lines = append(lines, eventTexts(&e))
		}
		if fmt.Sprint(lines) != fmt.Sprint(want[seq]) {
			t.Fatalf("job %d: got\n%s\nwant\n%s", seq, strings.Join(lines, "\n"), strings.Join(want[seq], "\n"))
		}
	}
}

func eventTexts(e *queue.JobEvent) string {
	return fmt.Sprintf("%d %v %d[%d] attempt %d", e.Time, e.Type, e.Job, e.Index, e.Attempt)
}

// TestNumbersAfterPurge checks that the number of a purged job is not assigned again,
// though nothing of the job is left.
func TestNumbersAfterPurge(t *testing.T) {
	dir := t.TempDir()
	j, q := open(t, dir)
	s := newRandomWorkload(1, q)
	log := s.submit(t, 1)
	s.apply(log)
	remove, err := q.RemoveTasks(s.now, alice, queue.TaskSelector{Job: roost.JobID{Seq: 1, Host: host}}, "", false)
	if err != nil {
		t.Fatal(err)
	}
	s.apply(remove)
	purge, _ := q.PurgeJob(s.now, 1)
	s.apply([]queue.JobEvent{purge})
	if err := appendWith(j, append(append(log, remove...), purge), fullCheckpoint(q)); err != nil {
		t.Fatal(err)
	}
	j.Close()
	_, again := open(t, dir)
	if again.Len() != 0 || again.LastSeq() != 1 {
		t.Fatalf("got %d jobs, the last of number %d, want none, and 1", again.Len(), again.LastSeq())
	}
}

func TestIncarnationsRise(t *testing.T) {
	dir := t.TempDir()
	for want := uint64(1); want < 4; want++ {
		j, _ := open(t, dir)
		if got, err := j.NextIncarnation(); got != want || err != nil {
			t.Fatalf("got %d, %v, want %d", got, err, want)
		}
		j.Close()
	}
}

func TestSecondOpenerIsRefused(t *testing.T) {
	t.Parallel() // it mostly waits
	dir := t.TempDir()
	open(t, dir)
	_, _, err := Open(dir, host)
	if !errors.Is(err, roost.Conflict) || !strings.Contains(err.Error(), "another daemon has it open") {
		t.Fatalf("got %v", err)
	}
}

// TestSize checks that Size counts from the last checkpoint, also after a restart.
func TestSize(t *testing.T) {
	dir := t.TempDir()
	j, q := open(t, dir)
	s := newRandomWorkload(1, q)
	events := s.submit(t, 3)
	s.apply(events)
	if err := j.Append(events); err != nil {
		t.Fatal(err)
	}
	size := j.Size()
	j.Close()
	j, q = open(t, dir)
	if size == 0 || j.Size() != size {
		t.Fatalf("got %d after the restart, %d before it", j.Size(), size)
	}
	if err := checkpoint(j, fullCheckpoint(q)); err != nil || j.Size() != 0 {
		t.Fatalf("got %d after a checkpoint, %v", j.Size(), err)
	}
}
