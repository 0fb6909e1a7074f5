package schedd

import (
	"context"
	"fmt"
	"time"

	"google.golang.org/grpc"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/schedd/queue"
)

// Events tells what has happened to a job, or to one task of it.
func (s *service) Events(req *wire.EventsRequest, stream grpc.ServerStreamingServer[wire.JobEvent]) error {
	who, err := s.caller(stream.Context())
	if err != nil {
		return err
	}
	if host, there := s.elsewhere(req.GetId()); there {
		return s.eventsThere(stream.Context(), host, req, stream.Send)
	}
	return s.eventsOf(stream.Context(), req.GetId(), who, stream.Send)
}

// eventsOf tells to what has happened to a job of this schedd.
func (s *Schedd) eventsOf(ctx context.Context, id string, who queue.Submitter, to func(*wire.JobEvent) error) error {
	var found []target
	var names queue.Names
	if err := s.askSettled(ctx, func(time.Time) {
		found = s.selected(id, filter{}, who, false) // what is decided by now is to be told
		if len(found) == 1 {
			names = s.queue.Names(found[0].Job.Seq)
		}
	}); err != nil {
		return err
	}
	if len(found) != 1 || found[0].err != nil {
		if len(found) == 1 {
			return found[0].err
		}
		return fmt.Errorf("%q: %w: it names several jobs; ask about one", id, roost.Invalid)
	}
	t := found[0].Target
	known, err := s.journal.Events(t.Job.Seq)
	if err != nil {
		return err
	}
	events, err := s.wholeStory(t.Job.Seq, known[t.Job.Seq])
	if err != nil {
		return err
	}
	if len(events) == 0 {
		var past *queue.Queue
		if past, events, err = s.history.Job(t.Job.Seq); err != nil || t.Job.Host != s.node.Name {
			return s.present(t)
		}
		if t, err = past.Locate(t); err != nil {
			return err
		}
		names = past.Names(t.Job.Seq)
	}
	for i := range events {
		if touches(&events[i], t) {
			if err := to(s.event(uint64(i+1), &events[i], names)); err != nil {
				return err
			}
		}
	}
	return nil
}

// touches reports whether an event is about a target.
func touches(e *queue.Event, t queue.Target) bool {
	if len(t.Ranges) == 0 || e.Attempt == 0 && len(e.Ranges) == 0 {
		return true
	}
	in := func(i int) bool {
		for _, r := range t.Ranges {
			if r.First <= i && i <= r.Last {
				return true
			}
		}
		return false
	}
	if e.Attempt != 0 {
		return in(e.Index)
	}
	for _, r := range e.Ranges {
		for i := r.First; i <= r.Last; i++ {
			if in(i) {
				return true
			}
		}
	}
	return false
}

// event turns a fact of the log into the line that tells it.
func (s *Schedd) event(sequence uint64, e *queue.Event, names queue.Names) *wire.JobEvent {
	job := roost.JobID{Seq: e.Job, Host: s.node.Name}
	m := &wire.JobEvent{
		Sequence: sequence, Time: e.Time, Id: job.String(), Attempt: uint32(e.Attempt), What: e.What.String(), Node: e.Node,
		Text: e.Reason, Exit: wireExit(e.Exit),
	}
	if e.Attempt != 0 {
		m.Id, m.Chunk = names.Task(job.Task(e.Index)), uint32(names.Chunk(e.Index))
	} else if len(e.Ranges) > 0 {
		m.Id = names.All(job, e.Ranges)
	}
	switch {
	case e.What == queue.Ended:
		m.What, m.Text = ended(e.Exit)
	case e.Image != nil:
		m.Text = imageText(e)
	}
	return m
}

// imageText says what an event has to do with an image.
func imageText(e *queue.Event) string {
	m := e.Image
	switch e.What {
	case queue.Assigned:
		return "to go on from " + m.Text()
	case queue.Started:
		return "from " + m.Text()
	case queue.Checkpointed:
		return fmt.Sprintf("%s: %v, stood still for %v", m.Text(), roost.Bytes(m.Size), time.Duration(m.Frozen).Round(time.Millisecond))
	default:
		return m.Text() + ": " + e.Reason
	}
}

// ended names the way in which an attempt ended: completed, when its program ran to its own end or to its limit; vacated, preempted, removed or failed when
// it did not.
func ended(x *queue.Exit) (what, text string) {
	switch x.Cause {
	case queue.ByItself, queue.ByWalltime:
		return "completed", x.Text()
	case queue.ByMemory, queue.ByGPUMemory, queue.ByDisk, queue.ByCPUTime, queue.ByVirtual, queue.ByRefusal:
		return "completed", x.Text()
	case queue.ByRestore:
		return "unrestored", x.Text()
	case queue.ByRemoval:
		return "ended", x.Text()
	case queue.ByLaunch:
		return "unlaunched", x.Text()
	case queue.ByPreemption:
		return "preempted", x.Text()
	default:
		return "vacated", x.Text()
	}
}
