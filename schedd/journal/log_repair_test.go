package journal

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/boltfile"
	"github.com/roost-batch/roost/internal/damage"
	"github.com/roost-batch/roost/schedd/queue"
)

// acknowledgedLog writes a log with jobs in its snapshots and in its newest batches. It
// returns the directory, the contents of the log and of its mark file, and the queue.
func acknowledgedLog(t *testing.T) (dir string, file, mark []byte, want *queue.Queue) {
	t.Helper()
	dir = t.TempDir()
	j, q := open(t, dir)
	s := newRandomWorkload(3, q)
	for i := range 120 {
		var c *QueueCheckpoint
		events := s.step(t)
		if i == 25 || i == 50 {
			c = fullCheckpoint(q)
		}
		if err := j.Append(events, c); err != nil {
			t.Fatal(err)
		}
	}
	j.Close()
	file, err := os.ReadFile(filepath.Join(dir, FileName))
	if err != nil {
		t.Fatal(err)
	}
	if mark, err = os.ReadFile(filepath.Join(dir, FileName+".mark")); err != nil {
		t.Fatal(err)
	}
	return dir, file, mark, q
}

// TestRepairs flips bits and loses pages anywhere in the file. The log must be refused
// with a name or give the acknowledged queue. After the repair it must open, each job in
// it must be unchanged, held or ended, and the missing ones must be named.
func TestRepairs(t *testing.T) {
	dir, file, mark, want := acknowledgedLog(t)
	used := len(bytes.TrimRight(file, "\x00"))
	rng := rand.New(rand.NewPCG(5, 6))
	trials, refused, same, held, out := damage.TrialCount(t, 100), 0, 0, 0, 0
	if testing.Short() {
		trials = 30
	}
	for trial := range trials {
		b := slices.Clone(file)
		at := rng.IntN(used)
		if trial%10 == 9 {
			page := at / 4096 * 4096
			clear(b[page : page+4096])
		} else {
			b[at] ^= 1 << rng.IntN(8)
			if trial%3 == 0 { // and another near it
				b[min(at+rng.IntN(12), used-1)] ^= 1 << rng.IntN(8)
			}
		}
		for name, text := range map[string][]byte{FileName: b, FileName + ".mark": mark} {
			if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		report, err := Repair(dir, host, epoch, true)
		if err != nil {
			t.Fatalf("trial %d: %v", trial, err)
		}
		if report == nil {
			j, q, err := Open(dir, host)
			if err != nil {
				t.Fatalf("trial %d: byte %d: %v", trial, at, err)
			}
			sameJobs(t, q, want)
			j.Close()
			continue
		}
		refused++
		if trial%10 == 0 {
			checkErrorText(t, reopenIn(dir))
		}
		if report, err = Repair(dir, host, epoch, false); err != nil {
			t.Fatalf("trial %d: byte %d: %v", trial, at, err)
		}
		j, q, err := Open(dir, host)
		if err != nil {
			t.Fatalf("trial %d: after the repair: %v", trial, err)
		}
		s, h, o := checkSurvivors(t, q, want, report)
		same, held, out = same+s, held+h, out+o
		j.Close()
		os.Remove(report.DamagedPath)
	}
	t.Logf("%d of %d refused; jobs after the repairs: %d as they were, %d held, %d out", refused, trials,
		same, held, out)
	if refused < trials/4 || same < held+out {
		t.Errorf("%d of %d were refused, and of the jobs %d are as they were", refused, trials, same)
	}
}

func reopenIn(dir string) error {
	j, _, err := Open(dir, host)
	if err == nil {
		j.Close()
	}
	return err
}

// sameJobs fails unless two queues contain the same jobs.
func sameJobs(t *testing.T, got, want *queue.Queue) {
	t.Helper()
	for seq := range want.LastSeq() + 1 {
		a, _ := got.Snapshot(seq)
		if b, _ := want.Snapshot(seq); !bytes.Equal(a, b) {
			t.Fatalf("job %d is not the same, without a word", seq)
		}
	}
}

// checkSurvivors checks each job after a repair.
func checkSurvivors(t *testing.T, got, want *queue.Queue, report *boltfile.RepairReport) (same, held, out int) {
	t.Helper()
	got.Check()
	actions := strings.Join(report.Actions, "\n")
	for seq := uint64(1); seq <= want.LastSeq(); seq++ {
		b, was := want.Snapshot(seq)
		a, is := got.Snapshot(seq)
		id := fmt.Sprintf("job %v ", roost.JobID{Seq: seq, Host: host})
		switch {
		case bytes.Equal(a, b):
			same++
		case strings.Contains(actions, id), strings.Contains(actions, "it is unknown which jobs"):
			if _, unsure := got.UnrecordedLease(seq); is && !unsure {
				t.Fatalf("job %d is not as it was, and nobody is unsure of it", seq)
			}
			if is {
				held++
			} else {
				out++
			}
		default:
			t.Fatalf("job %d was %v, is %v, and nothing says so:\n%v\n%s", seq, was, is, report.Damages, actions)
		}
	}
	if got.LastSeq() < want.LastSeq() {
		t.Fatalf("the number of job %d is given again", want.LastSeq())
	}
	return same, held, out
}

// flipWordBits flips bits of the second byte of some words, also on old pages of the
// file.
func flipWordBits(t testing.TB, path, words string, bits byte) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	places := 0
	for from := 0; ; places++ {
		at := bytes.Index(b[from:], []byte(words))
		if at < 0 {
			break
		}
		b[from+at+1] ^= bits
		from += at + 1
	}
	if err := os.WriteFile(path, b, 0o600); err != nil || places == 0 {
		t.Fatalf("%q is in %d places: %v", words, places, err)
	}
}

// TestRepairNames checks that a repair names and removes a job whose record is damaged.
// It must correct what has one flipped bit and leave all others unchanged. A dry run must
// change nothing.
func TestRepairNames(t *testing.T) {
	dir := t.TempDir()
	j, q := open(t, dir)
	s := newRandomWorkload(1, q)
	for range 4 {
		events := s.submit(t, 1)
		s.apply(events)
		if err := j.Append(events, nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := j.Append(nil, fullCheckpoint(q)); err != nil {
		t.Fatal(err)
	}
	var batch []queue.JobEvent
	for seq := uint64(2); seq <= 4; seq++ {
		e, _, err := q.AssignNext(epoch, roost.JobID{Seq: seq, Host: host}.Task(0), fmt.Sprint("node-of-", seq),
			"unix:/n", 1)
		if err != nil {
			t.Fatal(err)
		}
		s.apply([]queue.JobEvent{e})
		batch = append(batch, e)
	}
	if err := j.Append(batch, nil); err != nil {
		t.Fatal(err)
	}
	j.Close()
	path := filepath.Join(dir, FileName)
	flipWordBits(t, path, "1000:k2", 5)   // in the snapshot of job 2: two bits
	flipWordBits(t, path, "node-of-3", 1) // in the assignment of job 3: one
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	err = reopenIn(dir)
	checkErrorText(t, err)
	for _, words := range []string{"job 2.h: its checksum is wrong", "batch 5 of the newest events: one bit",
		"all else in it is whole"} {
		if !strings.Contains(err.Error(), words) {
			t.Errorf("it does not say %q: %v", words, err)
		}
	}
	for _, dry := range []bool{true, false} {
		report, err := Repair(dir, host, epoch, dry)
		if err != nil {
			t.Fatal(err)
		}
		want := "[1 records are put right: one bit of each has flipped, and its checksum tells which job 2.h is " +
			"taken out 3 jobs are kept]"
		if got := fmt.Sprint(report.Actions); got != want || dry != (report.DamagedPath == "") {
			t.Fatalf("got %s, %q", got, report.DamagedPath)
		}
		if now, err := os.ReadFile(path); err != nil || dry != bytes.Equal(now, before) {
			t.Fatalf("a dry run (%v) has changed the file: %v", dry, err)
		}
	}
	j, got := open(t, dir)
	defer j.Close()
	for seq, state := range map[uint64]roost.TaskState{1: roost.Idle, 3: roost.Starting, 4: roost.Starting} {
		if st, ok := got.Status(seq); !ok || st.Counts[state] != 1 {
			t.Errorf("job %d: %v", seq, st.Counts)
		}
	}
	if _, there := got.Status(2); there || got.LastSeq() != 4 {
		t.Errorf("job 2 is there: %v, and the last is %d", there, got.LastSeq())
	}
	if events, err := j.Events(4); err != nil || len(events[4]) != 2 {
		t.Errorf("the events of job 4: %v, %v", events, err)
	}
	if report, err := Repair(dir, host, epoch, true); report != nil || err == nil ||
		!strings.Contains(err.Error(), "stop it first") {
		t.Errorf("while a daemon has it: %v, %v", report, err)
	}
}

// TestRepairHoldsUncertain loses the start of an attempt, whose job is then unknown. All
// jobs must be held, the number of that attempt must not be assigned again, and the queue
// must be uncertain of each job until its release, also across checkpoints.
func TestRepairHoldsUncertain(t *testing.T) {
	dir := t.TempDir()
	j, q := open(t, dir)
	s := newRandomWorkload(1, q)
	for range 3 {
		events := s.submit(t, 1)
		s.apply(events)
		if err := j.Append(events, nil); err != nil {
			t.Fatal(err)
		}
	}
	assign := func(q *queue.Queue, seq uint64) (queue.JobEvent, roost.AttemptNumber) {
		e, a, err := q.AssignNext(epoch, roost.JobID{Seq: seq, Host: host}.Task(0), fmt.Sprint("node-of-", seq),
			"unix:/n", 1)
		if err != nil {
			t.Fatal(err)
		}
		return e, a.Attempt
	}
	e, _ := assign(q, 2)
	s.apply([]queue.JobEvent{e})
	if err := j.Append([]queue.JobEvent{e}, nil); err != nil {
		t.Fatal(err)
	}
	j.Close()
	path := filepath.Join(dir, FileName)
	flipWordBits(t, path, "node-of-2", 5)
	err := reopenIn(dir)
	checkErrorText(t, err)
	if !strings.Contains(err.Error(), "an event of an unknown job") {
		t.Errorf("got %v", err)
	}
	report, err := Repair(dir, host, epoch, false)
	if err != nil || !strings.Contains(fmt.Sprint(report.Actions), "it is unknown which jobs") {
		t.Fatalf("got %v, %v", report, err)
	}
	j, q = open(t, dir)
	defer j.Close()
	who := queue.CallerIdentity{User: "root", Admin: true}
	for seq := uint64(1); seq <= 3; seq++ {
		if st, _ := q.Status(seq); st.Counts[roost.Held] != st.Tasks {
			t.Errorf("job %d: %v", seq, st.Counts)
		}
		if _, unsure := q.UnrecordedLease(seq); !unsure {
			t.Errorf("nobody is unsure of job %d", seq)
		}
		events, err := q.ReleaseTasks(epoch, who, queue.TaskSelector{Job: roost.JobID{Seq: seq, Host: host}})
		if err != nil {
			t.Fatal(err)
		}
		q.Apply(events[0])
		if _, unsure := q.UnrecordedLease(seq); unsure {
			t.Errorf("job %d was released, and is doubted still", seq)
		}
		snapshot, _ := q.Snapshot(seq)
		again := queue.New(host)
		if err := again.RestoreSnapshot(snapshot); err != nil {
			t.Fatal(err)
		}
		for _, q := range []*queue.Queue{q, again} {
			e, a := assign(q, seq)
			if a != skippedAttempts+1 {
				t.Errorf("the next attempt of job %d is %d", seq, a)
			}
			q.Apply(e)
		}
	}
}

// TestRepairConsistent checks that events that depend on a lost one are excluded. The log
// after a repair must open, and no claim may have two active attempts because the end of
// the first is lost.
func TestRepairConsistent(t *testing.T) {
	s := newRandomWorkload(1, queue.New(host))
	var events []queue.JobEvent
	apply := func(more ...queue.JobEvent) {
		s.apply(more)
		events = append(events, more...)
	}
	apply(s.submit(t, 2)...)
	task := roost.JobID{Seq: 1, Host: host}.Task(0)
	assigned, first, err := s.queue.AssignNext(epoch, task, "n1", "unix:/n", 7)
	if err != nil {
		t.Fatal(err)
	}
	apply(assigned)
	started, _ := s.queue.RecordStarted(epoch, first)
	apply(started)
	ended, err := s.queue.RecordEnded(epoch, first, &queue.AttemptExit{})
	if err != nil {
		t.Fatal(err)
	}
	apply(ended)
	assigned, second, err := s.queue.AssignNext(epoch, roost.JobID{Seq: 1, Host: host}.Task(1), "n1", "unix:/n", 7)
	if err != nil {
		t.Fatal(err)
	}
	apply(assigned)
	for lost := range events {
		raw := make([][]byte, len(events))
		for i := range events {
			if i != lost {
				raw[i] = queue.AppendEvent(nil, &events[i])
			}
		}
		q, _ := SalvageQueue(host, nil, raw, epoch)
		q.Check()
		if snapshot, there := q.Snapshot(1); there {
			if err := queue.New(host).RestoreSnapshot(snapshot); err != nil {
				t.Errorf("without %v: %v", events[lost].Type, err)
			}
		}
		if q.IsLive(first) && q.IsLive(second) {
			t.Errorf("without %v: both live on one claim", events[lost].Type)
		}
	}
}
