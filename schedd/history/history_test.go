package history

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/schedd/queue"
)

var epoch = time.Unix(1_700_000_000, 0)

// newEndedJobs makes a queue with n removed jobs and returns their records. Job k ended k
// hours after the epoch.
func newEndedJobs(t testing.TB, n int) (records []JobRecord) {
	t.Helper()
	ad, err := classad.Parse(`[Cmd = "/bin/true"]`)
	if err != nil {
		t.Fatal(err)
	}
	alice := queue.CallerIdentity{User: "alice", UID: 1000}
	q := queue.New("h")
	for i := range n {
		events, ids, _, err := q.SubmitJobs(epoch, alice, "k"+strconv.Itoa(i/2), []queue.SubmitSpec{{Ad: ad, Count: 2}},
			queue.SubmitLimits{})
		if err == nil && len(events) == 0 { // the key exists: another part of the same submission
			events, ids, _, err = q.SubmitJobs(epoch, alice, "again"+strconv.Itoa(i),
				[]queue.SubmitSpec{{Ad: ad, Count: 2}}, queue.SubmitLimits{})
		}
		if err != nil {
			t.Fatal(err)
		}
		q.Apply(events[0])
		removed, err := q.RemoveTasks(epoch, alice, queue.TaskSelector{Job: ids[0]}, "why not", false)
		if err != nil {
			t.Fatal(err)
		}
		q.Apply(removed[0])
		snapshot, _ := q.Snapshot(ids[0].Seq)
		events[0].Submission = nil
		records = append(records, JobRecord{
			Seq: ids[0].Seq, Key: "1000:k" + strconv.Itoa(i/2), Ended: epoch.Add(time.Duration(i) * time.Hour),
			Snapshot: snapshot,
			Events:   append(events, removed...),
		})
	}
	return records
}

func open(t testing.TB, dir string) *History {
	t.Helper()
	h, err := Open(dir, "h")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.Close() })
	return h
}

func recordNumbers(t testing.TB, h *History) (list []uint64) {
	t.Helper()
	if err := h.Each(func(seq uint64, past *queue.Queue) bool {
		if _, ok := past.Status(seq); !ok || past.Len() != 1 {
			t.Errorf("the queue of job %d has %d jobs", seq, past.Len())
		}
		list = append(list, seq)
		return true
	}); err != nil {
		t.Fatal(err)
	}
	return list
}

// TestAdd checks that added jobs are there after reopening, newest first. Each must be
// there once, however often it was added.
func TestAdd(t *testing.T) {
	dir, records := t.TempDir(), newEndedJobs(t, 5)
	h := open(t, dir)
	if h.LastSeq() != 0 {
		t.Fatalf("the last job of an empty history is %d", h.LastSeq())
	}
	for range 2 {
		if err := h.Add(records); err != nil {
			t.Fatal(err)
		}
	}
	h.Close()
	h = open(t, dir)
	if got := recordNumbers(t, h); !slices.Equal(got, []uint64{5, 4, 3, 2, 1}) || h.LastSeq() != 5 {
		t.Fatalf("got %v, and %d as the last", got, h.LastSeq())
	}
	q, events, err := h.Job(3)
	if err != nil {
		t.Fatal(err)
	}
	snapshot, _ := q.Snapshot(3)
	if !bytes.Equal(snapshot, records[2].Snapshot) || !reflect.DeepEqual(events, records[2].Events) {
		t.Fatalf("got %v, want %v", events, records[2].Events)
	}
	if _, _, err := h.Job(9); !errors.Is(err, roost.NotFound) {
		t.Fatalf("job 9: %v", err)
	}
}

func TestKeys(t *testing.T) {
	h := open(t, t.TempDir())
	if err := h.Add(newEndedJobs(t, 5)); err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string][]uint64{"1000:k0": {1, 2}, "1000:k1": {3, 4}, "1000:k2": {5}, "1000:k": nil,
		"": nil, "1000:k00": nil} {
		if got, err := h.JobsByKey(key); err != nil || !slices.Equal(got, want) {
			t.Errorf("%q: got %v, %v, want %v", key, got, err, want)
		}
	}
}

// TestRemove checks that old jobs are found and deleted, with their keys.
func TestRemove(t *testing.T) {
	h := open(t, t.TempDir())
	if err := h.Add(newEndedJobs(t, 5)); err != nil {
		t.Fatal(err)
	}
	old, err := h.EndedBefore(epoch.Add(3*time.Hour), 2)
	if err != nil || !slices.Equal(old, []uint64{1, 2}) {
		t.Fatalf("got %v, %v", old, err)
	}
	if err := h.Remove(append(old, 77)...); err != nil {
		t.Fatal(err)
	}
	if old, err = h.EndedBefore(epoch.Add(3*time.Hour), 100); err != nil || !slices.Equal(old, []uint64{3}) {
		t.Fatalf("got %v, %v", old, err)
	}
	if got := recordNumbers(t, h); !slices.Equal(got, []uint64{5, 4, 3}) {
		t.Fatalf("got %v", got)
	}
	if got, err := h.JobsByKey("1000:k0"); err != nil || len(got) != 0 {
		t.Fatalf("the key of forgotten jobs gives %v, %v", got, err)
	}
}

func TestRefusedFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	open(t, dir)
	if _, err := Open(dir, "h"); !errors.Is(err, roost.Conflict) {
		t.Errorf("a second opener: %v", err)
	}
	for name, b := range map[string][]byte{"garbage": bytes.Repeat([]byte("no history\n"), 2000),
		"zeroes": make([]byte, 1<<16), "short": []byte("x")} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, FileName), b, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(dir, "h"); !errors.Is(err, roost.BadConfig) ||
			!strings.Contains(err.Error(), "roost doctor --repair") && name != "short" {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// TestDamagedRecord checks that an unreadable record gives an error that names the job.
// It must not prevent the job's deletion.
func TestDamagedRecord(t *testing.T) {
	h := open(t, t.TempDir())
	records := newEndedJobs(t, 1)
	records[0].Snapshot = []byte("nonsense")
	if err := h.Add(records); err != nil {
		t.Fatal(err)
	}
	if _, _, err := h.Job(1); err == nil || !strings.Contains(err.Error(), FileName) {
		t.Errorf("got %v", err)
	}
	if err := h.Each(func(uint64, *queue.Queue) bool {
		return true
	}); err == nil || !strings.Contains(err.Error(), "job 1") {
		t.Errorf("got %v", err)
	}
	if err := h.Remove(1); err != nil || h.LastSeq() != 0 {
		t.Errorf("got %v, and %d is left", err, h.LastSeq())
	}
}

func FuzzRecord(f *testing.F) {
	for _, r := range newEndedJobs(f, 2) {
		f.Add(r.encode())
	}
	f.Add([]byte("12345678\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := decodeRecord(b)
		if err != nil {
			return
		}
		again, err := decodeRecord(r.encode())
		if err != nil || fmt.Sprint(again) != fmt.Sprint(r) {
			t.Fatalf("%v became %v (%v)", r, again, err)
		}
	})
}

func TestLast(t *testing.T) {
	h := open(t, t.TempDir())
	records := newEndedJobs(t, 3)
	if err := h.Add(records); err != nil {
		t.Fatal(err)
	}
	if seq, found, err := h.LastOf("alice"); seq != 3 || !found || err != nil {
		t.Fatalf("got %d, %v, %v, want job 3", seq, found, err)
	}
	if err := h.Remove(3); err != nil {
		t.Fatal(err)
	}
	if seq, found, err := h.LastOf("alice"); seq != 2 || !found || err != nil {
		t.Fatalf("got %d, %v, %v, want job 2", seq, found, err)
	}
	for _, other := range []string{"ali", "alice2", "bob", "aaa", ""} {
		if seq, found, err := h.LastOf(other); found || err != nil {
			t.Fatalf("%q: got %d, %v, want none", other, seq, err)
		}
	}
}

// TestNumbers checks that an ended array of sbatch is found by the numbers of its tasks.
func TestNumbers(t *testing.T) {
	ad, err := classad.Parse(`[Cmd = "/bin/true"; Array = true; Slurm = [ ]]`)
	if err != nil {
		t.Fatal(err)
	}
	q := queue.New("h")
	h := open(t, t.TempDir())
	for i, count := range []int{3, 1} {
		events, ids, _, err := q.SubmitJobs(epoch, queue.CallerIdentity{User: "alice", UID: 1000}, strconv.Itoa(i),
			[]queue.SubmitSpec{{Ad: ad, Count: count}}, queue.SubmitLimits{})
		if err != nil {
			t.Fatal(err)
		}
		q.Apply(events[0])
		snapshot, _ := q.Snapshot(ids[0].Seq)
		if err := h.Add([]JobRecord{{Seq: ids[0].Seq, Key: strconv.Itoa(i), Snapshot: snapshot}}); err != nil {
			t.Fatal(err)
		}
		if i == 0 && h.LastSeq() != 3 {
			t.Errorf("the last number is %d", h.LastSeq())
		}
	}
	for number, want := range map[uint64]uint64{1: 1, 2: 1, 3: 1, 4: 4, 5: 0} {
		past, _, err := h.Job(number)
		switch {
		case want == 0:
			if !errors.Is(err, roost.NotFound) {
				t.Errorf("%d: %v", number, err)
			}
		case err != nil:
			t.Errorf("%d: %v", number, err)
		default:
			if _, there := past.Status(want); !there {
				t.Errorf("%d is not of job %d", number, want)
			}
		}
	}
}
