package accountant

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
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

// follower pulls the feed of one schedd into the store.
type follower struct {
	host     string // node of the schedd
	address  string
	own      string // address at which the accountant takes reports
	identity *rpc.Identity
	store    Store
	log      *slog.Logger
	state    *sourceState
	budgets  *spentBudgets
	metrics  *metrics.Accountant

	progressed bool          // since the last attempt to follow the schedd
	advancedAt time.Time     // when the store was last told that the feed is complete
	advance    time.Duration // how often it is told so
}

// The follower tries again after that long, each time longer.
const (
	minRetry = 500 * time.Millisecond
	maxRetry = 30 * time.Second
	// a feed that is complete is noted as often, if the ledger is not sampled more often
	maxAdvance = time.Minute
)

// run follows the schedd until ctx ends.
func (f *follower) run(ctx context.Context) {
	retry := minRetry
	for ctx.Err() == nil {
		began := time.Now()
		err := rpc.FromStatus(f.pull(ctx))
		if ctx.Err() != nil {
			return
		}
		if f.state.setError(err) {
			f.log.Warn("the feed of a schedd cannot be read; jobs are not affected", "schedd", f.host, "error", err)
		}
		if f.progressed || time.Since(began) > maxRetry { // a schedd that is restarted is soon back
			retry = minRetry
		}
		f.progressed = false
		select {
		case <-ctx.Done():
		case <-time.After(retry):
		}
		retry = min(2*retry, maxRetry)
	}
}

// feedSession is one conversation with a schedd.
type feedSession struct {
	*follower
	conn   *grpc.ClientConn
	stream grpc.BidiStreamingClient[wire.FeedRequest, wire.FeedBatch]
	origin codec.Origin
	sent   *wire.SpentBudgets // that the schedd has been told
}

// pull follows the feed until something fails.
func (f *follower) pull(ctx context.Context) error {
	conn, err := rpc.DialNode(f.address, f.identity, peer.Schedd, f.host)
	if err != nil {
		return err
	}
	defer conn.Close()
	var ahead feedAhead
	defer ahead.wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s := feedSession{follower: f, conn: conn}
	if s.stream, err = wire.NewFeedClient(conn).Pull(ctx); err != nil {
		return err
	}
	if err := s.stream.Send(&wire.FeedRequest{Hello: &wire.FeedHello{Address: f.own}}); err != nil {
		return err
	}
	greeting, err := s.stream.Recv()
	if err == nil {
		s.origin, err = f.originOf(greeting)
	}
	if err != nil {
		return err
	}
	if err := s.acknowledge(); err != nil {
		return err
	}
	ahead.start(ctx, s.stream)
	for {
		m, err := ahead.next(ctx)
		if err != nil {
			return err
		}
		if err := s.take(ctx, m); err != nil {
			return err
		}
		if err := s.sendBudgets(); err != nil {
			return err
		}
		f.state.setError(nil)
		f.progressed = true
	}
}

// originOf reads the first message of a schedd, which says whose entries follow.
func (f *follower) originOf(m *wire.FeedBatch) (o codec.Origin, err error) {
	if len(m.GetSource()) != len(o.Source) {
		return o, fmt.Errorf("schedd %s: %w: its feed has an id of %d bytes", f.host, roost.Invalid, len(m.GetSource()))
	}
	if m.GetHost() != f.host {
		return o, fmt.Errorf("schedd %s: %w: another one answers, %.80q", f.host, roost.PermissionDenied, m.GetHost())
	}
	return codec.Origin{Source: accounting.SourceID(m.GetSource()), Host: f.host}, nil
}

// acknowledge tells the schedd which entry comes next.
func (s *feedSession) acknowledge() error {
	return s.stream.Send(&wire.FeedRequest{Next: s.store.NextNumber(s.origin.Source)})
}

// sendBudgets tells the schedd which budgets are spent, when that has changed.
func (s *feedSession) sendBudgets() error {
	now := s.budgets.load()
	if now == nil || now == s.sent {
		return nil
	}
	s.sent = now
	return s.stream.Send(&wire.FeedRequest{Budgets: now})
}

// take stores one message of the schedd, and acknowledges it.
func (s *feedSession) take(ctx context.Context, m *wire.FeedBatch) error {
	if m.GetComplete() > 0 && len(m.GetEntries()) == 0 {
		s.state.noteStored(time.Now().UnixMilli())
	}
	switch entries := m.GetEntries(); {
	case m.GetGap():
		if err := s.fillGap(ctx, m.GetFirst()); err != nil {
			return err
		}
	case len(entries) > 0:
		if err := s.ingest(ctx, m.GetFirst(), entries); err != nil {
			return err
		}
	default:
		return s.advanceTo(ctx, m.GetComplete())
	}
	if err := s.acknowledge(); err != nil {
		return err
	}
	return s.advanceTo(ctx, m.GetComplete())
}

// advanceTo notes now and then up to when the feed is complete. 0: it is not known.
func (s *feedSession) advanceTo(ctx context.Context, complete int64) error {
	if complete <= 0 || time.Since(s.advancedAt) < s.advance {
		return nil
	}
	err := s.store.Advance(ctx, s.origin.Source, s.host, accounting.Millis(complete))
	if err == nil {
		s.advancedAt = time.Now()
	}
	return err
}

// decode reads entries. One that makes no sense is left out: it would stop the feed for
// ever. One of a newer version of Roost stops it until the accountant is newer, too.
func (s *feedSession) decode(first uint64, entries [][]byte) ([]accounting.FeedEntry, error) {
	list := make([]accounting.FeedEntry, 0, len(entries))
	for i, body := range entries {
		e, err := codec.DecodeEntry(body, first+uint64(i), s.origin)
		if errors.Is(err, roost.BadConfig) {
			return nil, err
		}
		if err != nil {
			s.log.Error("an entry of a schedd makes no sense and is left out", "schedd", s.host, "error", err)
			s.state.refused.Add(1)
			continue
		}
		list = append(list, e)
	}
	return list, nil
}

// ingest stores entries of the feed.
func (s *feedSession) ingest(ctx context.Context, first uint64, entries [][]byte) error {
	list, err := s.decode(first, entries)
	if err != nil {
		return err
	}
	expected := s.store.NextNumber(s.origin.Source)
	if err := s.ingestValid(ctx, list); err != nil {
		return err
	}
	// entries at the end that were left out have numbers, too
	if next := first + uint64(len(entries)); s.store.NextNumber(s.origin.Source) < next {
		if err := s.store.SkipTo(ctx, s.origin.Source, s.host, next); err != nil {
			return err
		}
	}
	s.countEntries(list, expected)
	s.state.noteStored(int64(newestTime(list)))
	s.state.ingested.Add(int64(len(list)))
	s.state.at.Store(time.Now().UnixMilli())
	return nil
}

// newestTime returns the time of the last event in entries; 0: none has one.
func newestTime(list []accounting.FeedEntry) (newest accounting.Millis) {
	for i := range list {
		switch e := &list[i]; {
		case e.Job != nil:
			newest = max(newest, e.Job.Submitted, e.Job.Ended)
		case e.Attempt != nil:
			newest = max(newest, e.Attempt.Assigned, e.Attempt.Started, e.Attempt.Ended)
		case e.Action != nil:
			newest = max(newest, e.Action.Time)
		}
	}
	return newest
}

// countEntries counts entries that are stored. Those before the expected number came
// again.
func (s *feedSession) countEntries(list []accounting.FeedEntry, expected uint64) {
	var kinds [metrics.MachineEntry]int
	again := 0
	for i := range list {
		switch e := &list[i]; {
		case e.Number < expected:
			again++
		case e.Job != nil:
			kinds[metrics.JobEntry]++
		case e.Attempt != nil:
			kinds[metrics.AttemptEntry]++
		case e.Action != nil:
			kinds[metrics.ActionEntry]++
		default:
			kinds[metrics.UsageEntry]++
		}
	}
	for kind, n := range kinds {
		s.metrics.Ingested.Add(float64(n), kind)
	}
	s.metrics.Duplicates.Add(float64(again))
}

// ingestValid stores entries, and leaves out those that the store refuses.
func (s *feedSession) ingestValid(ctx context.Context, list []accounting.FeedEntry) error {
	err := s.store.Ingest(ctx, s.origin.Source, s.host, list)
	if err == nil || !errors.Is(err, roost.Invalid) {
		return err
	}
	for i := range list {
		err := s.store.Ingest(ctx, s.origin.Source, s.host, list[i:i+1])
		if errors.Is(err, roost.Invalid) {
			s.log.Error("an entry of a schedd is refused and left out", "schedd", s.host, "error", err)
			s.state.refused.Add(1)
			err = nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// fillGap reads all jobs of the schedd, in place of the entries before a gap.
func (s *feedSession) fillGap(ctx context.Context, gap uint64) error {
	s.log.Info("the feed of a schedd has a gap: all its jobs are read", "schedd", s.host, "number", gap)
	s.state.gaps.Add(1)
	s.state.gapOpen.Store(true)
	stream, err := wire.NewFeedClient(s.conn).Walk(ctx, &wire.FeedWalk{})
	if err != nil {
		return err
	}
	greeting, err := stream.Recv()
	if err != nil {
		return err
	}
	if from, err := s.originOf(greeting); err != nil || from != s.origin {
		return errors.Join(err, fmt.Errorf("schedd %s: %w: its feed has become another", s.host, roost.Stale))
	}
	for {
		m, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			err := s.store.SkipTo(ctx, s.origin.Source, s.host, gap+1)
			s.state.gapOpen.Store(err != nil)
			return err
		}
		if err != nil {
			return err
		}
		list, err := s.decode(0, m.GetEntries())
		if err != nil {
			return err
		}
		if err := s.restoreValid(ctx, gap+1, list); err != nil {
			return err
		}
		s.state.at.Store(time.Now().UnixMilli())
	}
}

// restoreValid stores entries of a walk, and leaves out those that the store refuses.
func (s *feedSession) restoreValid(ctx context.Context, next uint64, list []accounting.FeedEntry) error {
	err := s.store.Restore(ctx, s.origin.Source, s.host, next, list)
	if err == nil || !errors.Is(err, roost.Invalid) {
		return err
	}
	for i := range list {
		err := s.store.Restore(ctx, s.origin.Source, s.host, next, list[i:i+1])
		if errors.Is(err, roost.Invalid) {
			s.log.Error("an entry of a schedd's jobs is refused and left out", "schedd", s.host, "error", err)
			s.state.refused.Add(1)
			err = nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}
