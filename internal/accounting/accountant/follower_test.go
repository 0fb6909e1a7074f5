package accountant

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/accounting"
	"github.com/roost-batch/roost/internal/accounting/codec"
	"github.com/roost-batch/roost/internal/identity/peer"
	"github.com/roost-batch/roost/internal/metrics"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/wire"
)

var testSource = accounting.SourceID{9}

// memoryStore stores entries as a database does, and can fail in between.
type memoryStore struct {
	Store
	mu       sync.Mutex
	jobs     map[uint64]int // number of tasks by job, of the last entry
	next     uint64
	restored uint64            // the highest number that a gap was filled for
	failures int               // the next so many calls fail
	reached  func(next uint64) // is called with each number that is stored
}

func (m *memoryStore) NextNumber(accounting.SourceID) uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return max(m.next, 1)
}

func (m *memoryStore) fail() error {
	if m.failures > 0 {
		m.failures--
		return errors.New("the database has gone away")
	}
	return nil
}

func (m *memoryStore) Ingest(_ context.Context, _ accounting.SourceID, _ string, entries []accounting.FeedEntry) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.fail(); err != nil {
		return err
	}
	for _, e := range entries {
		if e.Job.Tasks == 13 {
			return fmt.Errorf("entry %d: %w: it is refused", e.Number, roost.Invalid)
		}
	}
	for _, e := range entries {
		m.jobs[e.Job.Seq], m.next = e.Job.Tasks, e.Number+1
	}
	m.reached(m.next)
	return nil
}

func (m *memoryStore) Restore(_ context.Context, _ accounting.SourceID, _ string, next uint64,
	entries []accounting.FeedEntry) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.fail(); err != nil {
		return err
	}
	for _, e := range entries {
		m.jobs[e.Job.Seq] = e.Job.Tasks
	}
	m.restored = next
	return nil
}

func (m *memoryStore) SkipTo(_ context.Context, _ accounting.SourceID, _ string, next uint64) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.fail(); err != nil {
		return err
	}
	m.next = max(m.next, next)
	m.reached(m.next)
	return nil
}

func (m *memoryStore) Advance(context.Context, accounting.SourceID, string, accounting.Millis) error {
	return nil
}

// fakeFeed is the feed of a schedd whose jobs have numbers as their entries have. Entries
// before first are gone.
type fakeFeed struct {
	wire.UnimplementedFeedServer
	host  string
	first uint64
	last  uint64
	every int // a stream breaks after so many batches; 0: never

	mu    sync.Mutex
	acked uint64
	spent *wire.SpentBudgets // that it was told last
}

func (f *fakeFeed) greeting() *wire.FeedBatch {
	return &wire.FeedBatch{Source: testSource[:], Host: f.host}
}

// tasksOf makes entry 50 one that the store refuses.
func tasksOf(number uint64) int {
	if number == 50 {
		return 13
	}
	return int(number%5) + 1
}

func entryOf(number uint64) []byte {
	if number == 60 {
		return []byte{1, 99} // makes no sense
	}
	return codec.AppendEntry(nil, &accounting.FeedEntry{Job: &accounting.JobEntry{
		JobKey: accounting.JobKey{Seq: number}, Tasks: tasksOf(number)}})
}

func (f *fakeFeed) Pull(stream grpc.BidiStreamingServer[wire.FeedRequest, wire.FeedBatch]) error {
	if m, err := stream.Recv(); err != nil || m.GetHello() == nil {
		return fmt.Errorf("no hello: %w", roost.Invalid)
	}
	if err := stream.Send(f.greeting()); err != nil {
		return err
	}
	m, err := stream.Recv()
	next := m.GetNext()
	for n := 1; err == nil; n++ {
		if n == f.every {
			return roost.Unavailable
		}
		b := &wire.FeedBatch{First: next}
		for ; next <= f.last && len(b.Entries) < 7 && next >= f.first; next++ {
			b.Entries = append(b.Entries, entryOf(next))
		}
		switch {
		case next < f.first:
			b.First, b.Gap, next = f.first-1, true, f.first
		case len(b.Entries) == 0:
			b.Complete = 1
		}
		if err = stream.Send(b); err != nil {
			break
		}
		if b.Complete != 0 {
			<-stream.Context().Done()
			break
		}
		for m, err = stream.Recv(); err == nil && m.GetBudgets() != nil; m, err = stream.Recv() {
			f.mu.Lock()
			f.spent = m.GetBudgets()
			f.mu.Unlock()
		}
		if err == nil {
			if m.GetNext() != next {
				return fmt.Errorf("%d is acknowledged, want %d: %w", m.GetNext(), next, roost.Invalid)
			}
			f.mu.Lock()
			f.acked = m.GetNext()
			f.mu.Unlock()
		}
	}
	return err
}

func (f *fakeFeed) Walk(_ *wire.FeedWalk, stream grpc.ServerStreamingServer[wire.FeedBatch]) error {
	if err := stream.Send(f.greeting()); err != nil {
		return err
	}
	for number := uint64(1); number <= f.last; number++ {
		if number == 50 || number == 60 {
			continue
		}
		if err := stream.Send(&wire.FeedBatch{Entries: [][]byte{entryOf(number)}}); err != nil {
			return err
		}
	}
	return nil
}

// TestFollow pulls a feed through broken streams and a store that fails. All entries are
// stored but for two that make no sense, and all are acknowledged.
func TestFollow(t *testing.T) {
	for name, f := range map[string]*fakeFeed{
		"whole": {first: 1}, "gap": {first: 40}, "broken": {first: 1, every: 3}, "broken gap": {first: 90, every: 2},
	} {
		f.host, f.last = "submit", 100
		path := filepath.Join(t.TempDir(), "s")
		l, err := net.Listen("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		server := rpc.NewServer(nil, peer.MethodAccess())
		wire.RegisterFeedServer(server, f)
		go server.Serve(l)
		m := &memoryStore{jobs: map[uint64]int{}, failures: 2}
		state := &sourceState{}
		w := follower{host: f.host, address: "unix:" + path, store: m, log: slog.New(slog.DiscardHandler), state: state,
			metrics: metrics.NewAccountant(nil, ""),
			budgets: &spentBudgets{last: &wire.SpentBudgets{Spent: []*wire.SpentBudget{{Owner: "ann"}}}}}
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		m.reached = func(next uint64) {
			if next > f.last {
				cancel()
			}
		}
		for ctx.Err() == nil {
			w.pull(ctx)
		}
		server.Stop()
		want := map[uint64]int{}
		for number := uint64(1); number <= f.last; number++ {
			if number != 50 && number != 60 {
				want[number] = tasksOf(number)
			}
		}
		if !maps.Equal(m.jobs, want) || m.next != f.last+1 {
			t.Errorf("%s: %d jobs are stored, up to %d", name, len(m.jobs), m.next)
		}
		if f.first == 1 && state.refused.Load() < 2 {
			t.Errorf("%s: %d entries were refused", name, state.refused.Load())
		}
		if f.every == 0 && f.spent.GetSpent()[0].GetOwner() != "ann" {
			t.Errorf("%s: it was told of the budgets %v", name, f.spent)
		}
		if state.gapOpen.Load() {
			t.Errorf("%s: a gap is still open", name)
		}
		if f.first > 1 && m.restored != f.first {
			t.Errorf("%s: a gap up to %d was filled", name, m.restored)
		}
	}
}

// TestStoredTime checks up to which time a feed counts as stored.
func TestStoredTime(t *testing.T) {
	state, now := &sourceState{}, time.Now().UnixMilli()
	list := []accounting.FeedEntry{
		{Job: &accounting.JobEntry{Submitted: 50}}, {Attempt: &accounting.AttemptEntry{Assigned: 60, Ended: 80}},
		{Usage: &accounting.UsageHour{Hour: 900}},
	}
	state.noteStored(int64(newestTime(list)))
	if got := state.complete.Load(); got != 80 {
		t.Errorf("stored up to %d, want 80", got)
	}
	state.noteStored(70)
	if got := state.complete.Load(); got != 80 {
		t.Errorf("an older entry: stored up to %d, want 80", got)
	}
	state.noteStored(now + time.Hour.Milliseconds())
	if got := state.complete.Load(); got < now || got > now+time.Minute.Milliseconds() {
		t.Errorf("a clock that is ahead: stored up to %d, want about %d", got, now)
	}
}

// TestOtherSchedd refuses a schedd that is another one than was wanted.
func TestOtherSchedd(t *testing.T) {
	f := follower{host: "a"}
	for _, m := range []*wire.FeedBatch{
		{Source: testSource[:], Host: "b"}, {Source: []byte("short"), Host: "a"},
	} {
		if _, err := f.originOf(m); err == nil {
			t.Errorf("%v is accepted", m)
		}
	}
}

// entryStream is a stream of messages that have arrived.
type entryStream struct {
	grpc.BidiStreamingClient[wire.FeedRequest, wire.FeedBatch]
	messages []*wire.FeedBatch
}

func (s *entryStream) Recv() (*wire.FeedBatch, error) {
	if len(s.messages) == 0 {
		return nil, roost.Unavailable
	}
	m := s.messages[0]
	s.messages = s.messages[1:]
	return m, nil
}

// TestReadAhead holds that messages which have arrived are stored together. There is a
// bound, gaps and other numbers are not joined, and nothing is lost or reordered.
func TestReadAhead(t *testing.T) {
	message := func(first uint64, n int) *wire.FeedBatch {
		return &wire.FeedBatch{First: first, Entries: make([][]byte, n)}
	}
	var a feedAhead
	a.start(t.Context(), &entryStream{messages: []*wire.FeedBatch{
		message(1, 1000), {First: 1001, Entries: make([][]byte, 2000), Complete: 3},
		message(3001, 1001), message(4002, 10), {First: 4020, Gap: true},
		message(4021, 5), message(4027, 5), {First: 4032, Complete: 7},
	}})
	a.wait()
	var got []string
	for {
		m, err := a.next(t.Context())
		if err != nil {
			if !errors.Is(err, roost.Unavailable) {
				t.Error(err)
			}
			break
		}
		got = append(got, fmt.Sprintf("%d+%d %t %d", m.GetFirst(), len(m.GetEntries()), m.GetGap(), m.GetComplete()))
	}
	want := []string{
		"1+3000 false 3", "3001+1011 false 0", "4020+0 true 0", "4021+5 false 0", "4027+5 false 0", "4032+0 false 7",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
