package api

import (
	"context"
	"fmt"
	"strings"
	"time"

	"google.golang.org/grpc"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/schedd/codec"
	"github.com/roost-batch/roost/schedd/queue"
)

// Events tells what has happened to a job, or to one task of it.
func (s *Service) Events(req *wire.EventsRequest, stream grpc.ServerStreamingServer[wire.JobEvent]) error {
	who, err := s.callerOf(stream.Context())
	if err != nil {
		return err
	}
	if req.Id, err = resolveJobWord(stream.Context(), s, who, req.GetId()); err != nil {
		return err
	}
	if host, there := s.peerSchedds.RemoteHost(req.GetId()); there {
		return s.peerSchedds.PeerEvents(stream.Context(), host, req, stream.Send)
	}
	return s.ListEvents(stream.Context(), req.GetId(), who, stream.Send)
}

// ListEvents tells to what has happened to a job of this schedd.
func (s *Service) ListEvents(ctx context.Context, id string, who queue.CallerIdentity,
	to func(*wire.JobEvent) error) error {
	var found []selectionTarget
	var names queue.TaskNames
	owner := ""
	if err := s.callLoopDurable(ctx, func(time.Time) {
		found = s.wordTargets(id, selectionFilter{}, who, false) // what is decided by now is to be told
		if len(found) == 1 {
			names, owner = s.queue.TaskNames(found[0].Job.Seq), s.queue.JobOwner(found[0].Job.Seq)
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
	t := found[0].TaskSelector
	known, err := s.journal.Events(t.Job.Seq)
	if err != nil {
		return err
	}
	events, err := s.history.CompleteEvents(t.Job.Seq, known[t.Job.Seq])
	if err != nil {
		return err
	}
	if len(events) == 0 || owner == "" { // it has left the queue
		past, all, err := s.history.Job(t.Job.Seq)
		switch {
		case err == nil && t.Job.Host == s.node.Name:
			if t, err = past.LocateTasks(t); err != nil {
				return err
			}
			names, owner = past.TaskNames(t.Job.Seq), past.JobOwner(t.Job.Seq)
		case len(events) == 0:
			return s.mustBeQueued(t)
		}
		if len(events) == 0 {
			events = all
		}
	}
	for i := range events {
		e := &events[i]
		if !concernsTarget(e, t) {
			continue
		}
		m := s.formatEvent(uint64(i+1), e, names)
		m.Text = requesterText(m.GetText(), e.RequestedBy, owner)
		if err := to(m); err != nil {
			return err
		}
	}
	return nil
}

// requesterText adds to the text of an event who asked for it. It adds nothing for the
// owner of the job, or if the text says it.
func requesterText(text, by, owner string) string {
	if by == "" || by == owner || owner == "" || text == "by "+by || strings.HasSuffix(text, " by "+by) {
		return text
	}
	return strings.TrimSpace(text + " by " + by)
}

// concernsTarget reports whether an event is about a target.
func concernsTarget(e *queue.JobEvent, t queue.TaskSelector) bool {
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

// formatEvent turns a fact of the log into the line that tells it.
func (v *jobView) formatEvent(sequence uint64, e *queue.JobEvent, names queue.TaskNames) *wire.JobEvent {
	job := roost.JobID{Seq: e.Job, Host: v.node.Name}
	m := &wire.JobEvent{
		Sequence: sequence, Time: e.Time, Id: job.String(), Attempt: uint32(e.Attempt), What: e.Type.String(),
		Node: e.Node,
		Text: e.Reason, Exit: codec.WireExitStatus(e.Exit), Image: codec.EventImage(e.Image),
		Displaced: wire.FromParties(e.Displaced),
	}
	if e.Attempt != 0 {
		m.Id, m.Chunk = names.TaskName(job.Task(e.Index)), uint32(names.GangPart(e.Index))
	} else if len(e.Ranges) > 0 {
		m.Id = names.Tasks(job, e.Ranges)
	}
	switch {
	case e.Type == queue.UpdateChanged && e.Update != nil:
		m.Text = strings.TrimSuffix(e.Update.State.String()+": "+e.Update.Reason, ": ")
	case e.Type == queue.FlowAdvanced:
		m.Text = names.FlowEvents(e)
	case e.Type == queue.Checkpointed && e.Image != nil && e.Image.Epoch != 0: // it counts with the rest of its gang
		m.What, m.Text = "staged", fmt.Sprintf("%s, for epoch %d of its gang", imageText(e), e.Image.Epoch)
	case e.Type == queue.BackoffEnded:
		m.Id = names.TaskName(job.Task(e.Index))
	case e.Type == queue.Ended:
		m.What, m.Text = endReason(e.Exit)
	case e.Type == queue.BecameReady || e.Type == queue.BecameUnready:
		m.What = e.ServiceState.String()
		if e.ServiceState == roost.ServiceLost { // "lost" is the end of an attempt
			m.What = "silent"
		}
		if e.HealthCheck != "" && !e.Force {
			m.Text = strings.TrimSuffix("check "+e.HealthCheck+": "+e.Reason, ": ")
		}
	case e.Image != nil:
		m.Text = imageText(e)
	case e.AllocAttempt != 0:
		m.Text = fmt.Sprintf("inside alloc %d", e.AllocIndex)
	}
	return m
}

// imageText says what an event has to do with an image.
func imageText(e *queue.JobEvent) string {
	m := e.Image
	switch e.Type {
	case queue.Assigned:
		return "to go on from " + m.Describe() + epochText(m)
	case queue.Started:
		return "from " + m.Describe() + epochText(m)
	case queue.Checkpointed:
		return fmt.Sprintf("%s: %v, stood still for %v", m.Describe(), roost.Bytes(m.Size),
			time.Duration(m.Frozen).Round(time.Millisecond))
	default:
		return m.Describe() + ": " + e.Reason
	}
}

// epochText says which epoch of its gang an image is a part of; empty for none.
func epochText(m *queue.CheckpointImage) string {
	if m.Epoch == 0 {
		return ""
	}
	return fmt.Sprintf(", epoch %d of its gang", m.Epoch)
}

// endReason names the way in which an attempt ended. An attempt is completed when its
// program ran to its own end or to its limit. Otherwise it was vacated, preempted, ended
// (by a removal), unlaunched or unrestored.
func endReason(x *queue.AttemptExit) (what, text string) {
	switch x.Cause {
	case queue.CauseExited, queue.CauseWalltime:
		return "completed", x.Describe()
	case queue.CauseMemory, queue.CauseGPUMemory, queue.CauseDisk, queue.CauseCPUTime, queue.CauseVirtualMemory,
		queue.CausePrologue:
		return "completed", x.Describe()
	case queue.CauseRestore:
		return "unrestored", x.Describe()
	case queue.CauseRemoval:
		return "ended", x.Describe()
	case queue.CauseLaunch:
		return "unlaunched", x.Describe()
	case queue.CausePreemption:
		return "preempted", x.Describe()
	default:
		return "vacated", x.Describe()
	}
}
