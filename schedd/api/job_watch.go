package api

import (
	"context"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/schedd/queue"
)

// jobWatch follows some jobs for one call. The loop notes what has changed and gives one
// signal; the call comes and takes it, at its own pace, so a slow reader gets fewer and
// later news and never holds up the loop.
type jobWatch struct {
	jobs    []roost.JobID
	isNamed map[roost.JobID]bool // of each of jobs; it never changes
	changed map[roost.JobID]bool // owned by the loop
	signal  chan struct{}        // holds one token while something has changed
	final   map[roost.JobID]bool // owned by the loop: jobs that were final once
	ended   chan struct{}        // closed when all jobs are in it: nobody waits for more news
}

// startWatch registers a watch with the loop; the jobs count as changed at first.
func (v *jobView) startWatch(jobs []roost.JobID) *jobWatch {
	w := &jobWatch{jobs: jobs, isNamed: make(map[roost.JobID]bool, len(jobs)),
		changed: make(map[roost.JobID]bool, len(jobs)), signal: make(chan struct{}, 1),
		final: make(map[roost.JobID]bool), ended: make(chan struct{})}
	for _, id := range jobs {
		if v.watches[id] == nil {
			v.watches[id] = make(map[*jobWatch]bool)
		}
		v.watches[id][w] = true
		w.isNamed[id] = true
		w.changed[id] = true
	}
	w.signal <- struct{}{}
	return w
}

func (v *jobView) stopWatch(w *jobWatch) {
	for _, id := range w.jobs {
		delete(v.watches[id], w)
		if len(v.watches[id]) == 0 {
			delete(v.watches, id)
		}
	}
}

// SignalWatches signals the watches of the jobs that have changed, and has the lists tell
// of them anew.
func (v *jobView) SignalWatches() {
	for _, id := range v.queue.TakeChanged() {
		v.jobTable.markChanged(id.Seq)
		for w := range v.watches[id] {
			w.changed[id] = true
			if st, known := v.queue.Status(id.Seq); known && isFinal(&st) {
				w.markFinal(id)
			}
			select {
			case w.signal <- struct{}{}:
			default:
			}
		}
	}
}

func (w *jobWatch) markFinal(id roost.JobID) {
	if w.final[id] {
		return
	}
	if w.final[id] = true; len(w.final) == len(w.jobs) {
		close(w.ended)
	}
}

// Watch tells how the selected jobs fare until all are final.
func (s *Service) Watch(req *wire.WatchRequest, stream grpc.ServerStreamingServer[wire.WatchEvent]) error {
	who, err := s.callerOf(stream.Context())
	if err != nil {
		return err
	}
	if sel := req.GetSelection(); sel != nil {
		if sel.Selectors, err = resolveJobWords(stream.Context(), s, who, sel.Selectors, false); err != nil {
			return err
		}
	}
	local, remote := splitWatch(s, req)
	if remote == nil {
		return SendWatch(stream.Context(), s, req, who, stream.Send)
	}
	var sending sync.Mutex // a stream is sent to by one at a time
	send := func(e *wire.WatchEvent) error {
		sending.Lock()
		defer sending.Unlock()
		return stream.Send(e)
	}
	group, ctx := errgroup.WithContext(stream.Context())
	group.Go(func() error {
		return s.peerSchedds.WatchPeer(ctx, s.node.CellQueueName(), &wire.NeighbourWatch{User: who.User, Uid: who.UID,
			Request: remote}, send)
	})
	if local != nil {
		group.Go(func() error { return SendWatch(ctx, s, local, who, send) })
	}
	return group.Wait()
}

// splitWatch parts a watch by where its jobs are: here, or in the queue of the cell. A
// part without jobs is nil. A watch that names no jobs is of this schedd.
func splitWatch(s *Service, req *wire.WatchRequest) (local, remote *wire.WatchRequest) {
	part := func(words []string) *wire.WatchRequest {
		if len(words) == 0 {
			return nil
		}
		m := proto.CloneOf(req)
		m.Selection.Selectors = words
		return m
	}
	here, there := splitWords(s, req.GetSelection().GetSelectors())
	return part(here), part(there)
}

// SendWatch is Watch for a user whom this schedd or another one knows.
func SendWatch(ctx context.Context, s *Service, req *wire.WatchRequest, who queue.CallerIdentity,
	send func(*wire.WatchEvent) error) (err error) {
	var w *jobWatch
	var past []*wire.JobStatus
	if aerr := s.loop.CallLoop(ctx, func(time.Time) {
		var ids []roost.JobID
		if ids, past, err = s.watchedJobs(req.GetSelection(), who); err == nil {
			w = s.startWatch(ids)
		}
	}); aerr != nil {
		return aerr
	}
	if err != nil {
		return err
	}
	defer s.loop.PostCall(context.WithoutCancel(ctx), func(time.Time) { s.stopWatch(w) })
	for _, status := range past {
		if err := send(&wire.WatchEvent{Status: status}); err != nil {
			return err
		}
	}
	return s.sendChanges(ctx, w, time.Duration(req.GetIntervalMs())*time.Millisecond, send)
}

// sendChanges sends the state of changed jobs until all of them are final.
func (s *Service) sendChanges(ctx context.Context, w *jobWatch, every time.Duration,
	send func(*wire.WatchEvent) error) error {
	open := len(w.jobs)
	tick := time.NewTicker(transferInterval)
	defer tick.Stop()
	for open > 0 {
		select {
		case <-w.signal:
		case <-tick.C:
			if jobs := s.transferringJobs(w); len(jobs) > 0 {
				s.loop.PostCall(ctx, func(time.Time) { s.signalWatch(w, jobs) })
			}
			continue
		case <-ctx.Done():
			return ctx.Err()
		case <-s.daemonContext.Done():
			return s.loop.StoppingError(ctx)
		}
		var events []*wire.WatchEvent
		var closed int
		if err := s.callLoopDurable(ctx, func(time.Time) { events, closed = s.takeChanges(w) }); err != nil {
			return err
		}
		for _, e := range events {
			if err := send(e); err != nil {
				return err
			}
		}
		if open -= closed; open > 0 && every > 0 {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-w.ended:
			case <-time.After(every):
			}
		}
	}
	return nil
}

// transferInterval is how often a watch is told of transfers that go on. A transfer
// changes nothing in the queue, so that nothing else signals it.
const transferInterval = time.Second

// transferringJobs returns the jobs of a watch that have files on their way. It asks the
// loop for nothing: most of the time there are none.
func (v *jobView) transferringJobs(w *jobWatch) (jobs []roost.JobID) {
	v.transfers.ActiveJobs(func(id roost.JobID) bool {
		if w.isNamed[id] && !slices.Contains(jobs, id) {
			jobs = append(jobs, id)
		}
		return true
	})
	return jobs
}

// signalWatch signals a watch that jobs have changed, if it still follows them. Only a
// row of a single task shows its transfers.
func (v *jobView) signalWatch(w *jobWatch, jobs []roost.JobID) {
	for _, id := range jobs {
		if !v.watches[id][w] {
			continue
		}
		w.changed[id] = true
		select {
		case w.signal <- struct{}{}:
		default:
		}
	}
}

// takeChanges takes what has changed for a watch. Jobs that are final are not watched
// further.
func (v *jobView) takeChanges(w *jobWatch) (events []*wire.WatchEvent, closed int) {
	for _, id := range w.jobs {
		if !w.changed[id] {
			continue
		}
		delete(w.changed, id)
		status, final := v.jobStatus(id)
		if status == nil {
			continue
		}
		events = append(events, &wire.WatchEvent{Status: status, Failed: v.failedTaskSample(id)})
		if final && v.watches[id][w] {
			closed++
			w.markFinal(id)
			delete(v.watches[id], w)
		}
	}
	return events, closed
}
