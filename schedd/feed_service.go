package schedd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"google.golang.org/grpc"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/failpoint"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/schedd/admission"
	"github.com/roost-batch/roost/schedd/feed"
	"github.com/roost-batch/roost/schedd/queue"
)

// Bounds of what an accountant is sent before it answers.
const (
	feedBatchSize = 1000 // entries
	feedWindow    = 8 * feedBatchSize
	// an accountant that has all is told so as often
	feedIdle = time.Second
)

// feedService implements wire.FeedServer.
type feedService struct {
	wire.UnimplementedFeedServer
	schedd *Schedd
}

// greeting is the first message of both calls.
func (v feedService) greeting() *wire.FeedBatch {
	source := v.schedd.feed.Source()
	return &wire.FeedBatch{Source: source[:], Host: v.schedd.node.Name}
}

// Pull sends the feed. A schedd that had none begins one.
func (v feedService) Pull(stream grpc.BidiStreamingServer[wire.FeedRequest, wire.FeedBatch]) error {
	ctx, cancel := v.callContext(stream.Context())
	defer cancel(nil)
	first, err := stream.Recv()
	if err != nil {
		return err
	}
	if first.GetHello() == nil {
		return fmt.Errorf("feed: %w: the first message is a hello", roost.Invalid)
	}
	if err := v.schedd.feed.Enable(ctx); err != nil {
		return err
	}
	v.schedd.accountantAt.Store(new(first.GetHello().GetAddress()))
	if err := stream.Send(v.greeting()); err != nil {
		return err
	}
	begin, err := stream.Recv()
	if err != nil {
		return err
	}
	acks := make(chan uint64, 1)
	go func() { cancel(v.receiveAcks(ctx, stream, acks)) }()
	err = v.sendFeed(ctx, stream, max(begin.GetNext(), 1), acks)
	if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, context.Canceled) {
		err = cause
	}
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// callContext returns a context that also ends with the daemon.
func (v feedService) callContext(ctx context.Context) (context.Context, context.CancelCauseFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(v.schedd.daemonContext, func() { cancel(roost.Unavailable) })
	return ctx, func(err error) { stop(); cancel(err) }
}

// receiveAcks passes on what the accountant has stored, until the stream ends. Budgets
// that are spent may come along.
func (v feedService) receiveAcks(ctx context.Context,
	stream grpc.BidiStreamingServer[wire.FeedRequest, wire.FeedBatch],
	acks chan<- uint64) error {
	for {
		m, err := stream.Recv()
		if err != nil {
			return err
		}
		if m.GetBudgets() != nil {
			v.schedd.spentBudgets.Store(new(admission.NewSpentBudgets(m.GetBudgets())))
		}
		if m.GetNext() == 0 {
			continue
		}
		select {
		case acks <- m.GetNext():
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// sendFeed sends entries from a number on. At most feedWindow of them are sent before the
// accountant says what it has stored.
func (v feedService) sendFeed(ctx context.Context, stream grpc.BidiStreamingServer[wire.FeedRequest, wire.FeedBatch],
	next uint64, acks <-chan uint64) error {
	f := v.schedd.feed
	stored := next
	f.Acknowledge(next)
	for {
		for next-stored >= feedWindow { // never negative: an acknowledgement of more is refused
			select {
			case n := <-acks:
				if n > next {
					return fmt.Errorf("feed: %w: entry %d is acknowledged and was not sent", roost.Invalid, n)
				}
				stored = max(stored, n)
				f.Acknowledge(stored)
				continue
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		m, after, err := v.nextBatch(ctx, next)
		if err != nil {
			return err
		}
		if err := stream.Send(m); err != nil {
			return err
		}
		failpoint.Point(failpoint.FeedAfterSend)
		next = after
		for taken := true; taken; {
			select {
			case n := <-acks:
				if n > next {
					return fmt.Errorf("feed: %w: entry %d is acknowledged and was not sent", roost.Invalid, n)
				}
				stored = max(stored, n)
				f.Acknowledge(stored)
			default:
				taken = false
			}
		}
	}
}

// nextBatch waits for entries. After feedIdle it returns an empty batch, which says that
// there is nothing more.
func (v feedService) nextBatch(ctx context.Context, next uint64) (m *wire.FeedBatch, after uint64, err error) {
	asked := time.Now()
	short, cancel := context.WithTimeout(ctx, feedIdle)
	defer cancel()
	b, err := v.schedd.feed.Read(short, next, feedBatchSize)
	switch {
	case err == nil:
		m = &wire.FeedBatch{First: b.First, Entries: b.Entries, Gap: b.Gap}
		if b.Last && !b.Gap { // a busy feed is never idle
			m.Complete = completeUntil(asked)
		}
		return m, b.Next(), nil
	case ctx.Err() == nil && short.Err() != nil:
		return &wire.FeedBatch{First: next, Complete: completeUntil(asked)}, next, nil
	}
	return nil, 0, err
}

// completeUntil returns up to when a feed is complete that has been read to its end. What
// happened before it was asked is in it, but for what the loop has not handed over yet.
func completeUntil(asked time.Time) int64 { return asked.Add(-feedDelay).UnixMilli() }

// feedDelay is how long an entry takes at most from its event to the feed. A schedd that
// is stuck takes longer.
const feedDelay = 10 * time.Second

// Walk sends entries of all jobs.
func (v feedService) Walk(req *wire.FeedWalk, stream grpc.ServerStreamingServer[wire.FeedBatch]) error {
	ctx, cancel := v.callContext(stream.Context())
	defer cancel(nil)
	if err := stream.Send(v.greeting()); err != nil {
		return err
	}
	w := feed.NewJobWalk(v.schedd.feed, func(entries [][]byte) error {
		return stream.Send(&wire.FeedBatch{Entries: entries})
	})
	if err := v.walkQueue(ctx, w); err != nil {
		return err
	}
	// a job that has left the queue since is in the history now
	if err := v.walkHistory(ctx, w, time.Unix(0, req.GetSince())); err != nil {
		return err
	}
	return w.Flush()
}

// Running sends the jobs that have live attempts, and these. The loop only gathers them.
func (v feedService) Running(req *wire.FeedRunning, stream grpc.ServerStreamingServer[wire.FeedBatch]) error {
	ctx, cancel := v.callContext(stream.Context())
	defer cancel(nil)
	if err := stream.Send(v.greeting()); err != nil {
		return err
	}
	w := feed.NewJobWalk(v.schedd.feed, func(entries [][]byte) error {
		return stream.Send(&wire.FeedBatch{Entries: entries})
	})
	seqs, err := v.queuedJobs(ctx)
	if err != nil {
		return err
	}
	options := feed.RunningOptions{WithIdle: req.GetWaiting()}
	for part := range slices.Chunk(seqs, walkJobs) {
		var drafts []feed.Draft
		if err := v.schedd.callLoop(ctx, func(now time.Time) {
			if req.GetProgress() {
				options.Now = now
			}
			for _, seq := range part {
				drafts = append(drafts, w.RunningDrafts(v.schedd.queue, seq, options)...)
			}
		}); err != nil {
			return err
		}
		if err := w.AddDrafts(drafts); err != nil {
			return err
		}
	}
	return w.Flush()
}

// walkJobs is how many jobs of the queue are read at once.
const walkJobs = 256

// queuedJobs returns the jobs of the queue, when what it says of them is on disk.
func (v feedService) queuedJobs(ctx context.Context) (seqs []uint64, err error) {
	s := v.schedd
	committed := make(chan struct{})
	if err := s.callLoop(ctx, func(time.Time) {
		for _, id := range s.queue.MatchingJobs(queue.JobFilter{}) {
			seqs = append(seqs, id.Seq)
		}
		s.afterCommit(func() { close(committed) })
	}); err != nil {
		return nil, err
	}
	select {
	case <-committed:
		return seqs, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (v feedService) walkQueue(ctx context.Context, w *feed.JobWalk) error {
	s := v.schedd
	seqs, err := v.queuedJobs(ctx) // what the queue says is compared with the events on disk
	if err != nil {
		return err
	}
	for len(seqs) > 0 {
		part := seqs[:min(len(seqs), walkJobs)]
		seqs = seqs[len(part):]
		var snapshots [][]byte
		if err := s.callLoop(ctx, func(time.Time) {
			for _, seq := range part {
				if snapshot, there := s.queue.Snapshot(seq); there {
					snapshots = append(snapshots, snapshot)
				}
			}
		}); err != nil {
			return err
		}
		events, err := s.journal.Events(part...)
		if err != nil {
			return err
		}
		for _, snapshot := range snapshots {
			if err := w.AddSnapshot(snapshot, events); err != nil {
				return err
			}
		}
	}
	return nil
}

func (v feedService) walkHistory(ctx context.Context, w *feed.JobWalk, since time.Time) error {
	seqs, err := v.schedd.history.Recent(since)
	if err != nil {
		return err
	}
	for _, seq := range seqs {
		if err := ctx.Err(); err != nil {
			return err
		}
		past, events, err := v.schedd.history.Job(seq)
		if errors.Is(err, roost.NotFound) { // forgotten, or run again
			continue
		}
		if err != nil {
			return err
		}
		if err := w.Add(past, seq, events); err != nil {
			return err
		}
	}
	return nil
}
