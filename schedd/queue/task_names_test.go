package queue

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/schedd/queue/eventlog"
)

// TestLocate checks that a selection means the tasks of any array whose indexes are in
// it. The names of those tasks mean them again.
func TestLocate(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for round := range 300 {
		d := newTestQueue(t)
		list := func() string {
			var parts []string
			for range 1 + rng.IntN(3) {
				first := rng.IntN(40)
				parts = append(parts, []string{fmt.Sprint(first), fmt.Sprintf("%d-%d", first, first+rng.IntN(9)),
					fmt.Sprintf("%d-%d:3", first, first+rng.IntN(20))}[rng.IntN(3)])
			}
			return strings.Join(parts, ",")
		}
		indexes, err := roost.ParseArrayIndexes(list())
		if err != nil {
			t.Fatal(err)
		}
		id := d.submit(indexes.Len(), fmt.Sprintf("ArrayIndexes = %q", indexes))
		wanted, _ := roost.ParseArrayIndexes(list())
		stated, err := ParseSelector(fmt.Sprintf("%d[%v].h", id.Seq, wanted), "h")
		if err != nil {
			t.Fatal(err)
		}
		var want, got []int
		for task := range indexes.Len() {
			if _, in := wanted.TaskOf(indexes.IndexOf(task)); in {
				want = append(want, task)
			}
		}
		at, err := d.queue.LocateTasks(stated)
		if (err != nil) != (len(want) == 0) || err != nil && !errors.Is(err, ErrNoSubjob) {
			t.Fatalf("round %d: %v of %v: %v", round, wanted, indexes, err)
		}
		if err != nil {
			continue
		}
		at.eachIndex(indexes.Len(), func(i int) { got = append(got, i) })
		if !slices.Equal(got, want) {
			t.Fatalf("round %d: %v of %v are tasks %v, want %v", round, wanted, indexes, got, want)
		}
		var again []int
		for first := 0; first < indexes.Len(); first += 7 {
			if part := at.Intersect(first, first+6); len(part.Ranges) > 0 {
				part.eachIndex(indexes.Len(), func(i int) { again = append(again, i) })
			}
		}
		if !slices.Equal(again, want) {
			t.Fatalf("round %d: %v of %v are tasks %v in pieces, want %v", round, wanted, indexes, again, want)
		}
		if twice, err := d.queue.LocateTasks(at); err != nil || !slices.Equal(twice.Ranges, at.Ranges) ||
			at.String() != stated.String() {
			t.Fatalf("round %d: %v located twice is %v, %v", round, stated, twice, err)
		}
		named, err := ParseSelector(d.queue.TaskNames(id.Seq).Tasks(id, at.Ranges), "x")
		if err != nil {
			t.Fatal(err)
		}
		if again, err := d.queue.LocateTasks(named); err != nil || !slices.Equal(again.Ranges, at.Ranges) {
			t.Fatalf("round %d: %v are called %v, and that is %v (%v)", round, at.Ranges, named, again.Ranges, err)
		}
		if name := d.queue.TaskName(id.Task(want[0])); name != fmt.Sprintf("%d[%d].h", id.Seq,
			indexes.IndexOf(want[0])) {
			t.Fatalf("round %d: task %d is called %s", round, want[0], name)
		}
	}
}

// TestEndedSubjob checks the error for a task of an array that has ended. It differs from
// that for an index that is not there, and for an array that has ended as a whole.
func TestEndedSubjob(t *testing.T) {
	d := newTestQueue(t)
	id := d.submit(3, `ArrayIndexes = "10-20:5"; Array = true`)
	remove := func(indexes string) error {
		t.Helper()
		target, err := ParseSelector("1"+indexes, "h")
		if err == nil {
			target, err = d.queue.LocateTasks(target)
		}
		var events []eventlog.JobEvent
		if err == nil {
			events, err = d.queue.RemoveTasks(d.now, alice, target, "", false)
		}
		d.apply(events...)
		return err
	}
	for _, c := range []struct {
		indexes string
		want    error
	}{
		{"[12]", ErrNoSubjob}, {"[21-30]", ErrNoSubjob}, {"[15]", nil}, {"[15]", ErrEndedSubjob},
		{"[15-17]", ErrEndedSubjob}, {"[11-20]", nil}, {"[15-20]", nil}, {"[10]", nil},
		{"[10]", roost.Finished}, {"", roost.Finished},
	} {
		if err := remove(c.indexes); !errors.Is(err, c.want) ||
			errors.Is(err, ErrEndedSubjob) != (c.want == ErrEndedSubjob) {
			t.Errorf("remove %s: %v, want %v", c.indexes, err, c.want)
		}
	}
	if st, _ := d.queue.TaskStatus(id.Task(1)); st.Task.UserIndex != 15 {
		t.Errorf("task 1 is known as %d", st.Task.UserIndex)
	}
}

// TestNumbers checks the numbers that tasks of arrays of sbatch have. They follow that of
// the job and name the tasks, and no other job gets one of them.
func TestNumbers(t *testing.T) {
	d := newTestQueue(t)
	const ofSbatch = "Array = true; Slurm = []; "
	first := d.submit(1, "Slurm = []")
	array := d.submit(4, ofSbatch+`ArrayIndexes = "2-8:2"`)
	plain := d.submit(3, "Array = true")
	next := d.submit(1, "")
	if first.Seq != 1 || array.Seq != 2 || plain.Seq != 6 || next.Seq != 7 {
		t.Fatalf("the jobs have numbers %d, %d, %d, %d", first.Seq, array.Seq, plain.Seq, next.Seq)
	}
	for number, want := range map[uint64]string{1: "1.h", 2: "2.h", 3: "2[4].h", 5: "2[8].h", 6: "6.h", 7: "7.h",
		8: "8.h"} {
		at, err := d.queue.LocateTasks(TaskSelector{Job: roost.JobID{Seq: number, Host: "h"}})
		if err != nil || at.String() != want {
			t.Errorf("%d is %v, %v, want %s", number, at, err, want)
		}
	}
	a := roost.AttemptID{Task: array.Task(2), Attempt: 2}
	if p, err := d.queue.Program(a); err != nil || p.Slurm.Number != 4 || p.Slurm.Restarts != 1 {
		t.Errorf("the program is %+v, %v", p.Slurm, err)
	}
	if p, err := d.queue.Program(roost.AttemptID{Task: plain.Task(2), Attempt: 1}); err != nil || p.Slurm != nil {
		t.Errorf("the program of a task of no array of sbatch is %+v, %v", p.Slurm, err)
	}
	snapshot, _ := d.queue.Snapshot(array.Seq)
	again := New("h")
	if err := again.RestoreSnapshot(snapshot); err != nil || again.LastSeq() != 5 {
		t.Errorf("after a restart the last number is %d, %v", again.LastSeq(), err)
	}
	removed, err := d.queue.RemoveTasks(epoch, alice, TaskSelector{Job: array}, "", false)
	if err != nil {
		t.Fatal(err)
	}
	d.apply(append(removed, eventlog.JobEvent{Type: eventlog.Purged, Job: array.Seq})...)
	if at, _ := d.queue.LocateTasks(TaskSelector{Job: roost.JobID{Seq: 3, Host: "h"}}); len(at.Ranges) > 0 {
		t.Errorf("a task that is gone is %v", at)
	}
	if err := d.tryAlter(alice, first, "[ Slurm = [ Signal = 65 ] ]"); !errors.Is(err, roost.Invalid) {
		t.Errorf("a signal that there is not: %v", err)
	}
}
