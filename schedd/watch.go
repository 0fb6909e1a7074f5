package schedd

import (
	"context"
	"time"

	"google.golang.org/grpc"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/wire"
)

// watch follows some jobs for one call. The loop notes what has changed and gives one signal; the call comes and takes it, at its own pace, so a
// slow reader gets fewer and later news and never holds up the loop.
type watch struct {
	jobs    []roost.JobID
	changed map[roost.JobID]bool // owned by the loop
	signal  chan struct{}        // holds one token while something has changed
}

// follow registers a watch with the loop; the jobs count as changed at first.
func (s *Schedd) beginWatch(jobs []roost.JobID) *watch {
	w := &watch{jobs: jobs, changed: make(map[roost.JobID]bool, len(jobs)), signal: make(chan struct{}, 1)}
	for _, id := range jobs {
		if s.watches[id] == nil {
			s.watches[id] = make(map[*watch]bool)
		}
		s.watches[id][w] = true
		w.changed[id] = true
	}
	w.signal <- struct{}{}
	return w
}

func (s *Schedd) endWatch(w *watch) {
	for _, id := range w.jobs {
		delete(s.watches[id], w)
		if len(s.watches[id]) == 0 {
			delete(s.watches, id)
		}
	}
}

// notify signals the watches of the jobs that have changed, and has the lists tell of them anew.
func (s *Schedd) notify() {
	for _, id := range s.queue.TakeChanged() {
		s.view.stale(id.Seq)
		for w := range s.watches[id] {
			w.changed[id] = true
			select {
			case w.signal <- struct{}{}:
			default:
			}
		}
	}
}

// Watch tells how the selected jobs fare until all are final.
func (s *service) Watch(req *wire.WatchRequest, stream grpc.ServerStreamingServer[wire.WatchEvent]) error {
	ctx := stream.Context()
	who, err := s.caller(ctx)
	if err != nil {
		return err
	}
	var w *watch
	var past []*wire.JobStatus
	if aerr := s.ask(ctx, func(time.Time) {
		var ids []roost.JobID
		if ids, past, err = s.watched(req.GetSelection(), who); err == nil {
			w = s.beginWatch(ids)
		}
	}); aerr != nil {
		return aerr
	}
	if err != nil {
		return err
	}
	defer s.post(context.WithoutCancel(ctx), op(func(time.Time) { s.endWatch(w) }))
	for _, status := range past {
		if err := stream.Send(&wire.WatchEvent{Status: status}); err != nil {
			return err
		}
	}
	return s.report(ctx, w, time.Duration(req.GetIntervalMs())*time.Millisecond, stream)
}

// report sends the state of changed jobs until all of them are final.
func (s *service) report(ctx context.Context, w *watch, every time.Duration, stream grpc.ServerStreamingServer[wire.WatchEvent]) error {
	open := len(w.jobs)
	for open > 0 {
		select {
		case <-w.signal:
		case <-ctx.Done():
			return ctx.Err()
		case <-s.life.Done():
			return s.gone(ctx)
		}
		var events []*wire.WatchEvent
		var closed int
		if err := s.askSettled(ctx, func(time.Time) { events, closed = s.collect(w) }); err != nil {
			return err
		}
		for _, e := range events {
			if err := stream.Send(e); err != nil {
				return err
			}
		}
		if open -= closed; open > 0 && every > 0 {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(every):
			}
		}
	}
	return nil
}

// collect takes what has changed for a watch. Jobs that are final are not watched further.
func (s *Schedd) collect(w *watch) (events []*wire.WatchEvent, closed int) {
	for _, id := range w.jobs {
		if !w.changed[id] {
			continue
		}
		delete(w.changed, id)
		status, final := s.statusOf(id)
		if status == nil {
			continue
		}
		events = append(events, &wire.WatchEvent{Status: status, Failed: s.failures(id)})
		if final && s.watches[id][w] {
			closed++
			delete(s.watches[id], w)
		}
	}
	return events, closed
}
