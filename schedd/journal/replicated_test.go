package journal

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/schedd/queue"
)

// replicatedJournals is a leader's journal and that of a replica which follows.
type replicatedJournals struct {
	testing.TB
	dirs   [2]string
	leader *Journal
	other  *Journal
	queue  *queue.Queue // of the other
	lost   bool         // batches are not committed
}

func newReplicated(t testing.TB) (*replicatedJournals, *queue.Queue) {
	r := &replicatedJournals{TB: t, dirs: [2]string{t.TempDir(), t.TempDir()}}
	var q *queue.Queue
	var err error
	if r.leader, q, err = OpenReplicated(r.dirs[0], host, nil, r.replicate); err != nil {
		t.Fatal(err)
	}
	r.openOther()
	t.Cleanup(func() { r.leader.Close(); r.other.Close() })
	return r, q
}

func (r *replicatedJournals) openOther() {
	r.Helper()
	var err error
	if r.other, r.queue, err = OpenReplicated(r.dirs[1], host, nil, nil); err != nil {
		r.Fatal(err)
	}
}

var errLost = errors.New("no quorum")

func (r *replicatedJournals) replicate(number uint64, batch []byte) error {
	if r.lost {
		return errLost
	}
	if err := r.leader.AddBatch(number, batch); err != nil {
		return err
	}
	return r.addToOther(number, batch)
}

func (r *replicatedJournals) addToOther(number uint64, batch []byte) error {
	if err := r.other.AddBatch(number, batch); err != nil {
		return err
	}
	return r.other.ApplyBatch(r.queue, batch)
}

// otherCheckpoint writes a checkpoint of the replica that follows.
func (r *replicatedJournals) otherCheckpoint() {
	r.Helper()
	c := &QueueCheckpoint{Jobs: map[uint64][]byte{}, LastSeq: r.queue.LastSeq()}
	for _, seq := range r.queue.TakeUnsaved() {
		c.Jobs[seq], _ = r.queue.Snapshot(seq)
	}
	if err := r.other.AddedCheckpoint(c); err != nil {
		r.Fatal(err)
	}
	if err := r.other.WriteCheckpoint(c); err != nil {
		r.Fatal(err)
	}
}

// TestReplicated checks that a replica that follows has the leader's queue. There are
// checkpoints of either, restarts, and replacements by an export.
func TestReplicated(t *testing.T) {
	t.Parallel()
	for seed := range uint64(6) {
		r, q := newReplicated(t)
		s := newRandomWorkload(seed, q)
		for i := range 200 {
			var c *QueueCheckpoint
			events := s.step(t)
			if s.IntN(12) == 0 {
				c = fullCheckpoint(s.queue)
			}
			if err := appendWith(r.leader, events, c); err != nil {
				t.Fatal(err)
			}
			switch s.IntN(15) {
			case 0:
				r.otherCheckpoint()
			case 1: // it restarts
				r.other.Close()
				r.openOther()
			case 2: // it was away for too long
				r.other.Close()
				var exported bytes.Buffer
				if err := r.leader.Export(&exported); err != nil {
					t.Fatal(err)
				}
				if err := Import(r.dirs[1], host, &exported); err != nil {
					t.Fatal(err)
				}
				r.openOther()
			}
			if i%20 == 0 {
				checkSameQueue(t, r.queue, s.queue)
			}
		}
		checkSameEvents(t, r.leader, r.other, s.queue)
	}
}

// checkSameEvents compares the events of the jobs in the queue. Those of others go at the
// next checkpoint of each replica.
func checkSameEvents(t *testing.T, a, b *Journal, q *queue.Queue) {
	t.Helper()
	var seqs []uint64
	for seq := range q.LastSeq() + 1 {
		if _, ok := q.Status(seq); ok {
			seqs = append(seqs, seq)
		}
	}
	events := func(j *Journal) (all []string) {
		of, err := j.Events(seqs...)
		if err != nil {
			t.Fatal(err)
		}
		for _, seq := range seqs {
			for i := range of[seq] {
				all = append(all, eventTexts(&of[seq][i]))
			}
		}
		return all
	}
	x, y := events(a), events(b)
	if len(x) == 0 || len(x) != len(y) {
		t.Fatalf("%d events and %d", len(x), len(y))
	}
	for i := range x {
		if x[i] != y[i] {
			t.Fatalf("event %d: %s and %s", i, x[i], y[i])
		}
	}
}

// TestStaleBatches checks that a batch is added once and in its place. A leader of before
// neither adds a batch nor makes a checkpoint.
func TestStaleBatches(t *testing.T) {
	r, q := newReplicated(t)
	s := newRandomWorkload(1, q)
	if err := r.leader.Append(s.submit(t, 1)); err != nil {
		t.Fatal(err)
	}
	next := r.leader.NextBatch()
	for _, number := range []uint64{next - 1, next + 1} {
		if err := r.leader.AddBatch(number, nil); !errors.Is(err, ErrStale) {
			t.Errorf("batch %d of %d: %v", number, next, err)
		}
	}
	r.lost = true
	if err := r.leader.Append(s.submit(t, 1)); !errors.Is(err, errLost) || r.leader.NextBatch() != next {
		t.Errorf("not committed: %v, and %d is the next of %d", err, r.leader.NextBatch(), next)
	}
	r.lost = false
	if err := r.leader.AddBatch(next, nil); err != nil { // of the next leader
		t.Fatal(err)
	}
	if err := r.leader.Append(s.submit(t, 1)); !errors.Is(err, ErrStale) {
		t.Errorf("of a leader of before: %v", err)
	}
	if err := r.leader.StartCheckpoint(fullCheckpoint(q)); !errors.Is(err, ErrStale) {
		t.Errorf("a checkpoint of a leader of before: %v", err)
	}
	if err := r.other.Append(s.submit(t, 1)); err == nil {
		t.Error("a replica that follows has appended")
	}
}

// TestDamagedExport checks that a damaged or incomplete export is refused.
func TestDamagedExport(t *testing.T) {
	r, q := newReplicated(t)
	s := newRandomWorkload(2, q)
	for range 30 {
		if err := r.leader.Append(s.step(t)); err != nil {
			t.Fatal(err)
		}
	}
	var whole bytes.Buffer
	if err := r.leader.Export(&whole); err != nil {
		t.Fatal(err)
	}
	for _, size := range []int{0, 4, len(exportMagic), whole.Len() / 2, whole.Len() - 1} {
		if err := Import(t.TempDir(), host, bytes.NewReader(whole.Bytes()[:size])); err == nil {
			t.Errorf("%d bytes of %d were taken", size, whole.Len())
		}
	}
	wrong := bytes.Clone(whole.Bytes())
	wrong[len(exportMagic)] = 'x'
	if err := Import(t.TempDir(), host, bytes.NewReader(wrong)); err == nil {
		t.Error("a record of an unknown kind was taken")
	}
}

// TestLargeBatches checks that the events of many large submissions become batches that
// an entry of the replicated log can have. No submission is in two of them.
func TestLargeBatches(t *testing.T) {
	r, q := newReplicated(t)
	var batches [][]queue.JobEvent
	largest := 0
	r.leader.replicate = func(number uint64, batch []byte) error {
		largest = max(largest, len(batch))
		var events []queue.JobEvent
		if err := EachEvent(batch, func(e *queue.JobEvent) { events = append(events, *e) }); err != nil {
			return err
		}
		batches = append(batches, events)
		return r.replicate(number, batch)
	}
	large := strings.Repeat("x", 1<<20)
	var events []queue.JobEvent
	for i := range 14 { // 42 MiB, where an entry has 32
		var specs []queue.SubmitSpec
		for range 3 {
			specs = append(specs, queue.SubmitSpec{Ad: testAd(t, `[Cmd = "/bin/true"; Script = "`+large+`"]`), Count: 1})
		}
		some, _, _, err := q.SubmitJobs(epoch, alice, fmt.Sprint("large", i), specs,
			queue.SubmitLimits{MaxLog: MaxSubmission})
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range some {
			q.Apply(e)
		}
		events = append(events, some...)
	}
	for rest := events; len(rest) > 0; {
		n, err := r.leader.AppendPart(rest, nil)
		if err != nil {
			t.Fatal(err)
		}
		rest = rest[n:]
	}
	if largest > MaxReplicatedBatch || len(batches) != 14 {
		t.Errorf("%d batches of up to %d bytes", len(batches), largest)
	}
	for i, b := range batches {
		if first := b[0].Submission; first.PartIndex != 0 || len(b)%3 != 0 {
			t.Errorf("batch %d has %d events and begins with job %d of submission %s", i, len(b), first.PartIndex,
				first.Key)
		}
	}
	checkSameQueue(t, r.queue, q)
}

// TestBatchesOfTurns checks that a batch without a submission is cut between turns alone.
func TestBatchesOfTurns(t *testing.T) {
	r, _ := newReplicated(t)
	var sizes []int
	r.leader.replicate = func(number uint64, batch []byte) error {
		n := 0
		err := EachEvent(batch, func(*queue.JobEvent) { n++ })
		sizes = append(sizes, n)
		return errors.Join(err, r.leader.AddBatch(number, batch))
	}
	reason := strings.Repeat("x", 1<<20)
	events := make([]queue.JobEvent, 40)
	for i := range events {
		events[i] = queue.JobEvent{Type: queue.Held, Job: 1, Time: epoch.UnixNano(), Reason: reason}
	}
	from := 0
	for from < len(events) {
		n, err := r.leader.AppendPart(events[from:], func(i int) bool { return (from+i)%3 == 0 })
		if err != nil {
			t.Fatal(err)
		}
		from += n
	}
	if want := []int{3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 1}; !slices.Equal(sizes, want) {
		t.Errorf("batches of %d events, and not of %d", sizes, want)
	}
}

func testAd(t testing.TB, text string) *classad.Ad {
	t.Helper()
	ad, err := classad.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return ad
}
