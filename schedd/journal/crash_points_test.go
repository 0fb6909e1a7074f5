package journal

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/roost-batch/roost/internal/failpoint"
	"github.com/roost-batch/roost/schedd/queue"
)

// crashCopies copies a directory at each failpoint, which is what a process that is
// killed there leaves behind.
type crashCopies struct {
	t      *testing.T
	dir    string
	copies map[string][]map[string][]byte // files, by failpoint
}

func (c *crashCopies) onPoint(name string) {
	c.copies[name] = append(c.copies[name], readFiles(c.t, c.dir))
}

// TestCrashPoints opens what a crash leaves at each failpoint of appends and checkpoints.
// The queue must be the one before the batch or the one after it, and the one after it
// once the batch is synced. All events must be there, once.
func TestCrashPoints(t *testing.T) {
	t.Parallel()
	c := &crashCopies{t, t.TempDir(), map[string][]map[string][]byte{}}
	j, q, err := openAt(c.dir, host, nil, c.onPoint)
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	s := newRandomWorkload(6, q)
	total := map[uint64]int{} // events by job
	states := 0
	for i := range 80 {
		clear(c.copies)
		before := snapshotsOf(q)
		events := s.step(t)
		if err := j.Append(events); err != nil {
			t.Fatal(err)
		}
		beforeTotal := countEvents(total, nil)
		total = countEvents(total, events)
		if i%6 == 5 {
			if err := checkpoint(j, fullCheckpoint(q)); err != nil {
				t.Fatal(err)
			}
		}
		after := snapshotsOf(q)
		for name, copies := range c.copies {
			for _, files := range copies {
				states++
				want, wantTotal := after, total
				switch name {
				case failpoint.ScheddBeforeAppend, failpoint.ScheddAfterAppend:
					// the entry may be complete in the file, though it is not synced
					if checkCrashed(t, files, before, beforeTotal, false) {
						continue
					}
				}
				if !checkCrashed(t, files, want, wantTotal, true) {
					t.Fatalf("step %d: after a crash at %s: not the queue that was acknowledged", i, name)
				}
			}
		}
	}
	if states < 200 {
		t.Errorf("only %d crashes", states)
	}
	for _, name := range []string{failpoint.ScheddAfterNewSegment, failpoint.ScheddInCheckpoint,
		failpoint.ScheddAfterCheckpoint, failpoint.ScheddAfterTruncate} {
		clear(c.copies)
		if err := checkpoint(j, fullCheckpoint(q)); err != nil || len(c.copies[name]) != 1 {
			t.Errorf("%s is passed %d times: %v", name, len(c.copies[name]), err)
		}
	}
}

func countEvents(total map[uint64]int, events []queue.JobEvent) map[uint64]int {
	sum := make(map[uint64]int, len(total))
	for seq, n := range total {
		sum[seq] = n
	}
	for _, e := range events {
		sum[e.Job]++
	}
	return sum
}

func snapshotsOf(q *queue.Queue) map[uint64]string {
	all := map[uint64]string{}
	for seq := range q.LastSeq() + 1 {
		if snapshot, there := q.Snapshot(seq); there {
			all[seq] = string(snapshot)
		}
	}
	return all
}

// checkCrashed opens files and reports whether they have a queue, and a number of events
// of each of its jobs. With must it fails instead.
func checkCrashed(t *testing.T, files map[string][]byte, want map[uint64]string, events map[uint64]int,
	must bool) bool {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "crashed")
	defer os.RemoveAll(dir)
	writeFiles(t, dir, files)
	j, q, err := Open(dir, host)
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	got := snapshotsOf(q)
	if len(got) != len(want) {
		return false
	}
	for seq, snapshot := range want {
		if got[seq] != snapshot {
			return false
		}
		all, err := j.Events(seq)
		if err != nil {
			t.Fatal(err)
		}
		if must && len(all[seq]) != events[seq] {
			t.Errorf("job %d has %d events, want %d", seq, len(all[seq]), events[seq])
		}
	}
	return true
}

// TestCrashInCarryOver opens what a crash leaves while a directory of format 2 is carried
// over. It also crashes twice in a row.
func TestCrashInCarryOver(t *testing.T) {
	c := &crashCopies{t, t.TempDir(), map[string][]map[string][]byte{}}
	want, events := oldDir(t, c.dir, 2)
	j, _, err := openAt(c.dir, host, nil, c.onPoint)
	if err != nil {
		t.Fatal(err)
	}
	j.Close()
	for _, name := range []string{failpoint.ScheddBeforeCarryOver, failpoint.ScheddInCarryOver,
		failpoint.ScheddAfterCarryOver} {
		if len(c.copies[name]) != 1 {
			t.Fatalf("%s is passed %d times", name, len(c.copies[name]))
		}
		files := c.copies[name][0]
		for range 2 {
			again := &crashCopies{t, filepath.Join(t.TempDir(), "again"), map[string][]map[string][]byte{}}
			writeFiles(t, again.dir, files)
			j, _, err := openAt(again.dir, host, nil, again.onPoint)
			if err != nil {
				t.Fatalf("after a crash at %s: %v", name, err)
			}
			j.Close()
			checkCarriedOver(t, again.dir, want, events)
			if name == failpoint.ScheddAfterCarryOver {
				break
			}
			files = again.copies[name][0]
		}
	}
}
