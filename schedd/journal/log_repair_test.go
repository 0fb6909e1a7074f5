package journal

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
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

// acknowledgedLog writes a journal with jobs in its snapshots and in its newest batches.
// It returns the directory, its files, and the queue.
func acknowledgedLog(t *testing.T) (dir string, files map[string][]byte, want *queue.Queue) {
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
		if err := appendWith(j, events, c); err != nil {
			t.Fatal(err)
		}
	}
	j.Close()
	return dir, readFiles(t, dir), q
}

// readFiles reads all files below a directory, by their paths in it.
func readFiles(t testing.TB, dir string) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	if err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, _ := filepath.Rel(dir, path)
		files[name], err = os.ReadFile(path)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return files
}

// writeFiles leaves exactly the given files below a directory.
func writeFiles(t testing.TB, dir string, files map[string][]byte) {
	t.Helper()
	err := os.RemoveAll(dir)
	for name, text := range files {
		path := filepath.Join(dir, name)
		err = errors.Join(err, os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, text, 0o600))
	}
	if err != nil {
		t.Fatal(err)
	}
}

// newestSegment returns the path of the last segment of the log in dir.
func newestSegment(t testing.TB, dir string) string {
	t.Helper()
	all, err := filepath.Glob(filepath.Join(dir, LogName, "*.log"))
	if err != nil || len(all) == 0 {
		t.Fatalf("no segment is in %s: %v", dir, err)
	}
	return slices.Max(all)
}

// damagedFiles returns the files of a journal with one or two damages, also in both the
// snapshots and the log. What is damaged and how depends on the number of the trial.
func damagedFiles(rng *rand.Rand, files map[string][]byte, trial int) (what string, damaged map[string][]byte) {
	names := slices.DeleteFunc(slices.Sorted(maps.Keys(files)), func(name string) bool {
		return strings.HasSuffix(name, ".mark")
	})
	damaged = maps.Clone(files)
	for n := range 1 + trial%2 {
		name := names[rng.IntN(len(names))]
		used := len(bytes.TrimRight(damaged[name], "\x00"))
		b := slices.Clone(damaged[name])
		switch at := rng.IntN(used); {
		case trial%10 == 9:
			page := at / 4096 * 4096
			clear(b[page:min(page+4096, len(b))])
		case trial%5 == 3 && name != FileName:
			_, b = damage.DamageOnce(rng, b[:used])
		default:
			b[at] ^= 1 << rng.IntN(8)
			if trial%3 == 0 { // and another near it
				b[min(at+rng.IntN(12), used-1)] ^= 1 << rng.IntN(8)
			}
		}
		damaged[name] = b
		what += fmt.Sprintf("%d: %s; ", n, name)
	}
	return what, damaged
}

// TestRepairs flips bits and loses pages anywhere in the files. The log must be refused
// with a name or give the acknowledged queue. After the repair it must open, each job in
// it must be unchanged, held or ended, and the missing ones must be named.
func TestRepairs(t *testing.T) {
	t.Parallel()
	dir, files, want := acknowledgedLog(t)
	rng := rand.New(rand.NewPCG(5, 6))
	trials, refused, same, held, out := damage.TrialCount(t, 100), 0, 0, 0, 0
	if testing.Short() {
		trials = 30
	}
	for trial := range trials {
		what, damaged := damagedFiles(rng, files, trial)
		writeFiles(t, dir, damaged)
		report, err := Repair(dir, host, epoch, true)
		if err != nil {
			t.Fatalf("trial %d: %v", trial, err)
		}
		if report == nil {
			j, q, err := Open(dir, host)
			if err != nil {
				t.Fatalf("trial %d: %s: %v", trial, what, err)
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
			t.Fatalf("trial %d: %s: %v", trial, what, err)
		}
		j, q, err := Open(dir, host)
		if err != nil {
			t.Fatalf("trial %d: after the repair: %v", trial, err)
		}
		s, h, o := checkSurvivors(t, q, want, report)
		same, held, out = same+s, held+h, out+o
		j.Close()
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
	t.Parallel()
	dir := t.TempDir()
	j, q := open(t, dir)
	s := newRandomWorkload(1, q)
	for range 4 {
		events := s.submit(t, 1)
		s.apply(events)
		if err := j.Append(events); err != nil {
			t.Fatal(err)
		}
	}
	if err := checkpoint(j, fullCheckpoint(q)); err != nil {
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
	if err := j.Append(batch); err != nil {
		t.Fatal(err)
	}
	j.Close()
	path := filepath.Join(dir, FileName)
	flipWordBits(t, path, "1000:k2", 5)                    // in the snapshot of job 2: two bits
	flipWordBits(t, newestSegment(t, dir), "node-of-3", 1) // in the assignment of job 3: one
	before := readFiles(t, dir)
	err := reopenIn(dir)
	checkErrorText(t, err)
	for _, words := range []string{"job 2.h: its checksum is wrong", "batch 4 of the newest events: one bit",
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
		now := readFiles(t, dir)
		if dry != maps.EqualFunc(now, before, bytes.Equal) {
			t.Fatalf("a dry run (%v) has changed the files", dry)
		}
		for name, text := range before { // the damaged files are beside the new ones
			aside := filepath.Base(report.DamagedPath)
			if strings.HasPrefix(name, LogName+"/") {
				aside += ".log/" + filepath.Base(name)
			}
			if !dry && !strings.HasSuffix(name, ".mark") && !bytes.Equal(now[aside], text) {
				t.Errorf("the damaged %s is not in %s", name, aside)
			}
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
		if err := j.Append(events); err != nil {
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
	if err := j.Append([]queue.JobEvent{e}); err != nil {
		t.Fatal(err)
	}
	j.Close()
	flipWordBits(t, newestSegment(t, dir), "node-of-2", 5)
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
