package feed

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/roost-batch/roost/internal/accounting/codec"
	"github.com/roost-batch/roost/internal/failpoint"
	"github.com/roost-batch/roost/schedd/journal"
	"github.com/roost-batch/roost/schedd/queue"
)

// testSchedd is a journal with its feed, and a loop that does random things.
type testSchedd struct {
	*Feed
	t       testing.TB
	dir     string
	journal *journal.Journal
	queue   *queue.Queue
	jobs    *randomJobs
}

// SyncThrough writes in this goroutine, so that a test has only one.
func (s *testSchedd) SyncThrough(uint64) {
	s.waiters = append(s.waiters, make(chan error, 1))
	if err := s.writer.write(); err != nil {
		s.overflow = true
	}
}

func openSchedd(t testing.TB, dir string, opt Options) *testSchedd {
	t.Helper()
	opt.Dir, opt.Host, opt.Log = dir, testHost, slog.New(slog.DiscardHandler)
	s := &testSchedd{Feed: New(opt), t: t, dir: dir}
	var err error
	if s.journal, s.queue, err = journal.OpenObserved(dir, testHost, s); err != nil {
		t.Fatal(err)
	}
	s.Start(s.journal.NextBatch())
	return s
}

func (s *testSchedd) close() {
	s.t.Helper()
	if err := errors.Join(s.journal.Close(), s.Feed.Close()); err != nil {
		s.t.Fatal(err)
	}
}

// commit applies events as the loop does, and writes them.
func (s *testSchedd) commit(events []queue.JobEvent) {
	s.t.Helper()
	for i := range events {
		s.Before(s.queue, &events[i])
		s.queue.Apply(events[i])
		s.After(s.queue, &events[i])
	}
	if err := s.journal.Append(events); err != nil {
		s.t.Fatal(err)
	}
}

func (s *testSchedd) checkpoint() {
	s.t.Helper()
	c := &journal.QueueCheckpoint{Jobs: map[uint64][]byte{}, LastSeq: s.queue.LastSeq()}
	for _, seq := range s.queue.TakeUnsaved() {
		c.Jobs[seq], _ = s.queue.Snapshot(seq)
	}
	s.Flush()
	err := s.journal.StartCheckpoint(c)
	if err == nil {
		err = s.journal.WriteCheckpoint(c)
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

func (s *testSchedd) write() {
	s.t.Helper()
	s.Flush()
	if err := s.writer.write(); err != nil {
		s.t.Fatal(err)
	}
}

// step does one random thing, and what the goroutines of a schedd do beside the loop.
func (s *testSchedd) step() {
	s.commit(s.jobs.step(s.t))
	switch s.jobs.IntN(8) {
	case 0, 1:
		s.Flush()
	case 2, 3:
		s.write()
	case 4:
		if s.jobs.IntN(4) == 0 {
			s.checkpoint()
		}
	}
}

// truth returns the rows of all jobs, from the events in the journal.
func (s *testSchedd) truth() rows {
	s.t.Helper()
	want := rows{}
	for seq := range s.queue.LastSeq() + 1 {
		events, err := s.journal.Events(seq)
		if err != nil {
			s.t.Fatal(err)
		}
		want.add(s.deriver.JobDrafts(s.queue, seq, events[seq]))
	}
	return want
}

// testStore is what an accountant has stored.
type testStore struct {
	rows rows
	next uint64
	gaps int
}

func newTestStore() *testStore { return &testStore{rows: rows{}, next: 1} }

func (a *testStore) clone() *testStore {
	c := &testStore{rows{}, a.next, a.gaps}
	for k, v := range a.rows {
		c.rows[k] = v
	}
	return c
}

// pull stores what the feed has, up to its end. A gap is filled from the jobs.
func (a *testStore) pull(s *testSchedd, acknowledge bool) {
	s.t.Helper()
	for {
		ctx, cancel := context.WithCancel(context.Background())
		if _, next := s.index.bounds(); next <= a.next {
			cancel()
		}
		b, err := s.Read(ctx, a.next, 100)
		cancel()
		if err != nil {
			return
		}
		a.store(s, &b)
		if acknowledge {
			s.Acknowledge(a.next)
		}
	}
}

func (a *testStore) store(s *testSchedd, b *Batch) {
	s.t.Helper()
	if b.Gap {
		a.gaps++
		for key, body := range s.truth() {
			a.rows[key] = body
		}
		a.next = b.Next()
		return
	}
	if b.First != a.next {
		s.t.Fatalf("the feed goes on with entry %d, want %d", b.First, a.next)
	}
	for i, body := range b.Entries {
		e, err := codec.DecodeEntry(body, b.First+uint64(i), codec.Origin{Source: s.Source(), Host: testHost})
		if err != nil {
			s.t.Fatal(err)
		}
		a.rows.add([]Draft{{FeedEntry: e}})
	}
	a.next = b.Next()
}

// TestEveryCrash copies the files at each failpoint of the feed, and goes on with the
// copy. The accountant then has exactly what the journal says, and it was never sent a
// gap but the first.
func TestEveryCrash(t *testing.T) {
	states, points := 0, map[string]bool{}
	for seed := range uint64(5) {
		states += runCrashes(t, seed, points)
	}
	if states < 100 {
		t.Errorf("only %d crashes", states)
	}
	for _, name := range failpoint.FeedNames()[:4] {
		if !points[name] {
			t.Errorf("%s was never passed", name)
		}
	}
}

// runCrashes does random things, crashes at each failpoint that is passed, and counts the
// crashes.
func runCrashes(t testing.TB, seed uint64, points map[string]bool) (states int) {
	t.Helper()
	dir := t.TempDir()
	var copies []string
	copyAt := func(name string) {
		points[name] = true
		to := filepath.Join(t.TempDir(), "copy")
		if err := os.CopyFS(to, os.DirFS(dir)); err != nil {
			t.Fatal(err)
		}
		copies = append(copies, to)
	}
	s := openSchedd(t, dir, Options{Wanted: true, Bounds: Bounds{Segment: 600}})
	s.opt.onPoint = copyAt
	s.jobs = newRandomJobs(seed, s.queue)
	a := newTestStore()
	for range 60 {
		before := a.clone()
		s.step()
		for _, copied := range copies {
			states++
			checkCrashed(t, copied, before)
		}
		copies = nil
		if s.jobs.IntN(4) == 0 {
			a.pull(s, s.jobs.IntN(2) == 0)
		}
	}
	s.write()
	a.pull(s, true)
	checkSameRows(t, a.rows, s.truth())
	if a.gaps != 1 {
		t.Errorf("%d gaps", a.gaps)
	}
	s.close()
	return states
}

// checkCrashed opens a copy of the files and pulls all of its feed.
func checkCrashed(t testing.TB, dir string, a *testStore) {
	t.Helper()
	s := openSchedd(t, dir, Options{Wanted: true})
	defer s.close()
	a, gaps := a.clone(), a.gaps
	s.write()
	a.pull(s, true)
	checkSameRows(t, a.rows, s.truth())
	if a.gaps > max(gaps, 1) {
		t.Fatalf("%d gaps, want %d", a.gaps, gaps)
	}
	os.RemoveAll(dir)
}

// TestAcknowledged checks that what is stored leaves the disk. Numbers go on after that
// and a restart, and nothing but the rest is sent.
func TestAcknowledged(t *testing.T) {
	dir := t.TempDir()
	s := openSchedd(t, dir, Options{Wanted: true, Bounds: Bounds{Segment: 500}})
	s.jobs = newRandomJobs(1, s.queue)
	a := newTestStore()
	for range 300 {
		s.step()
	}
	s.write()
	a.pull(s, true)
	s.write()
	if files, _ := os.ReadDir(s.Feed.dir()); len(files) > 2 {
		t.Errorf("%d files are left", len(files))
	}
	if n := s.Backlog(); n != 0 {
		t.Errorf("a backlog of %d", n)
	}
	was := a.next
	s.close()
	s = openSchedd(t, dir, Options{})
	s.jobs = newRandomJobs(2, s.queue)
	s.jobs.keys = 1000
	s.commit(s.jobs.submit(t, 1))
	s.write()
	if b, err := s.Read(context.Background(), was, 10); err != nil || b.Gap || b.First != was || len(b.Entries) != 1 ||
		!b.Last {
		t.Errorf("got %+v, %v", b, err)
	}
	if b, err := s.Read(context.Background(), 2, 10); err != nil || !b.Gap || b.Next() > was {
		t.Errorf("what is gone: got %+v, %v", b, err)
	}
	s.close()
}

// TestNumberOfAnotherFeed asks for a number that the feed never had. The answer is a gap,
// and later numbers are above it.
func TestNumberOfAnotherFeed(t *testing.T) {
	s := openSchedd(t, t.TempDir(), Options{Wanted: true})
	defer s.close()
	s.jobs = newRandomJobs(1, s.queue)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	read := make(chan Batch, 1)
	go func() {
		b, _ := s.Read(ctx, 5000, 10)
		read <- b
	}()
	<-s.wake
	s.write()
	if b := <-read; !b.Gap || b.First != 5000 {
		t.Fatalf("got %+v", b)
	}
	s.commit(s.jobs.submit(t, 1))
	s.write()
	if b, err := s.Read(ctx, 5001, 10); err != nil || len(b.Entries) != 1 {
		t.Errorf("got %+v, %v", b, err)
	}
}

// TestBounds checks that a log that nobody reads begins anew, by each of its bounds.
func TestBounds(t *testing.T) {
	for name, bounds := range map[string]Bounds{
		"bytes": {Bytes: 4000}, "entries": {Entries: 50}, "age": {Age: time.Nanosecond}, "backlog": {Backlog: 40},
	} {
		s := openSchedd(t, t.TempDir(), Options{Wanted: true, Bounds: bounds})
		s.jobs = newRandomJobs(3, s.queue)
		a := newTestStore()
		a.pull(s, false)
		for i := range 400 {
			s.commit(s.jobs.step(t))
			if s.Flush(); i%100 == 99 {
				s.write()
			}
		}
		s.write()
		size := int64(0)
		for _, p := range s.index.parts {
			size += p.bytes
		}
		if size > 60_000 {
			t.Errorf("%s: the log has %d bytes", name, size)
		}
		a.pull(s, false)
		checkSameRows(t, a.rows, s.truth())
		if a.gaps < 2 {
			t.Errorf("%s: %d gaps", name, a.gaps)
		}
		s.close()
	}
}

// TestNoAccountant checks that nothing is written where there is no accountant. One that
// comes later is sent a gap and then all that follows.
func TestNoAccountant(t *testing.T) {
	dir := t.TempDir()
	s := openSchedd(t, dir, Options{})
	s.jobs = newRandomJobs(4, s.queue)
	for range 100 {
		s.commit(s.jobs.step(t))
		s.Flush()
	}
	if _, err := os.Stat(s.Feed.dir()); err == nil {
		t.Error("there is a log")
	}
	ctx, cancel := context.WithCancel(context.Background())
	ran := make(chan struct{})
	go func() { defer close(ran); s.Run(ctx) }()
	if err := s.Enable(ctx); err != nil {
		t.Fatal(err)
	}
	cancel()
	<-ran
	a := newTestStore()
	a.pull(s, true)
	for range 100 {
		s.step()
	}
	s.write()
	a.pull(s, true)
	checkSameRows(t, a.rows, s.truth())
	s.close()
	if s = openSchedd(t, dir, Options{}); !s.IsCollecting() {
		t.Error("after a restart the feed is forgotten")
	}
	s.close()
}

// TestNoRoom checks that a feed that cannot be written does not stop the journal, and
// goes on with a gap.
func TestNoRoom(t *testing.T) {
	full := false
	s := openSchedd(t, t.TempDir(), Options{Wanted: true, HasRoom: func() bool { return !full }})
	s.jobs = newRandomJobs(5, s.queue)
	a := newTestStore()
	for i := range 200 {
		s.commit(s.jobs.step(t))
		full = i > 50 && i < 150
		if s.Flush(); i%20 == 0 {
			s.checkpoint()
		}
		if !full {
			s.write()
			a.pull(s, true)
		}
	}
	checkSameRows(t, a.rows, s.truth())
	if a.gaps < 2 {
		t.Errorf("%d gaps", a.gaps)
	}
	s.close()
}

// TestOtherJournal puts the feed of another schedd in place: it is put aside.
func TestOtherJournal(t *testing.T) {
	dir, other := t.TempDir(), t.TempDir()
	openSchedd(t, dir, Options{Wanted: true}).close()
	openSchedd(t, other, Options{Wanted: true}).close()
	if err := errors.Join(os.RemoveAll(filepath.Join(dir, LogName)), os.CopyFS(filepath.Join(dir, LogName),
		os.DirFS(filepath.Join(other, LogName)))); err != nil {
		t.Fatal(err)
	}
	s := openSchedd(t, dir, Options{Wanted: true})
	defer s.close()
	if b, err := s.Read(context.Background(), 2, 10); err != nil || !b.Gap {
		t.Errorf("got %+v, %v", b, err)
	}
	if _, err := os.Stat(filepath.Join(dir, DamagedName)); err != nil {
		t.Error(err)
	}
}
