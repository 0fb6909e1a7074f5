package schedd

import (
	"context"
	"path/filepath"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/document"
	"github.com/roost-batch/roost/schedd/codec"
	"github.com/roost-batch/roost/schedd/dispatch"
	"github.com/roost-batch/roost/schedd/jobhooks"
	"github.com/roost-batch/roost/schedd/queue"
)

// heldStart is an attempt that is assigned, and waits for the start hook. Its node knows
// nothing of it yet.
type heldStart struct {
	activation dispatch.ActivateClaim
	cancel     context.CancelFunc // ends the hook
}

// openJobHooks opens the hooks of the site, nil for none.
func openJobHooks(s *Schedd) (*jobhooks.Runner, error) {
	return jobhooks.Open(s.node.Name, s.node.Schedd.Hooks, filepath.Join(s.stateDir(), "hook-ends"), s.scripts,
		s.log)
}

// holdForHook has an attempt wait for the start hook, and reports whether it has to. The
// hook is run when the assignment is on disk. Then its verdict comes back as an event.
func holdForHook(s *Schedd, e dispatch.ActivateClaim) bool {
	if !s.hooks.HasStart() {
		return false
	}
	about, ok := hookAttempt(s, e.Attempt, e.Node)
	if !ok {
		return false
	}
	ctx, cancel := context.WithCancel(s.daemonContext)
	held := &heldStart{e, cancel}
	if s.heldStarts == nil {
		s.heldStarts = make(map[roost.AttemptID]*heldStart)
	}
	s.heldStarts[e.Attempt] = held
	ad := s.queue.PackedAd(e.Attempt.Task.Job.Seq)
	s.afterCommit(func() {
		s.hooks.Start(ctx, about, ad.String, func(v jobhooks.Verdict) {
			s.postEvent(ctx, loopCall(func(now time.Time) { onHookVerdict(s, held, v, now) }))
		})
	})
	return true
}

// hookAttempt is what a hook is told of an attempt.
func hookAttempt(s *Schedd, a roost.AttemptID, node string) (about jobhooks.Attempt, ok bool) {
	r, ok := s.queue.RequestOf(a.Task)
	if !ok {
		return about, false
	}
	st, ok := s.queue.TaskStatus(a.Task)
	if !ok {
		return about, false
	}
	task := a.Task.Job.String()
	if st.Array || st.Tasks > 1 {
		task = s.queue.TaskName(a.Task)
	}
	return jobhooks.Attempt{
		Task: task, Attempt: int(a.Attempt), Job: a.Task.Job.String(), Index: a.Task.Index,
		Name: st.Name, Queue: st.Queue, Account: st.Group, User: r.Owner, UID: r.UID, GID: r.GID, Machine: node,
	}, true
}

// onHookVerdict starts an attempt, or ends it, as its start hook has said. An attempt
// that was lost meanwhile is not held any more.
func onHookVerdict(s *Schedd, held *heldStart, v jobhooks.Verdict, now time.Time) {
	e := held.activation
	held.cancel()
	if s.heldStarts[e.Attempt] != held {
		return
	}
	delete(s.heldStarts, e.Attempt)
	switch v.Decision {
	case jobhooks.Accept:
		s.activate(e, now)
	case jobhooks.Refuse:
		endUnstarted(s, e.Attempt, &queue.AttemptExit{Cause: queue.CausePrologue, Code: 1, Reason: v.Reason}, now)
	case jobhooks.Hold:
		if held, ok := s.queue.HoldTask(now, e.Attempt.Task, v.Reason); ok {
			s.commitEvents(held)
		}
		endUnstarted(s, e.Attempt, &queue.AttemptExit{Cause: queue.CauseVacate, Reason: v.Reason}, now)
	default:
		endUnstarted(s, e.Attempt, &queue.AttemptExit{Cause: queue.CauseMachine, Reason: v.Reason}, now)
	}
}

// endHeldStart ends an attempt that is to be vacated while it waits for the start hook.
// It reports whether there is one. The node is told nothing, because it was told nothing.
func endHeldStart(s *Schedd, e dispatch.VacateAttempt, now time.Time) bool {
	held := s.heldStarts[e.Attempt]
	if held == nil {
		return false
	}
	held.cancel()
	delete(s.heldStarts, e.Attempt)
	x := &queue.AttemptExit{Cause: queue.CauseVacate, Reason: e.Order.Reason}
	if !s.queue.IsRerunnable(e.Attempt.Task.Job.Seq) {
		x.Cause = queue.CauseMachine // nothing of it has run, so it is not run twice
	}
	endUnstarted(s, e.Attempt, x, now)
	return true
}

// endUnstarted ends an attempt of which its node knows nothing. It says nothing about the
// node, and the claim goes on.
func endUnstarted(s *Schedd, a roost.AttemptID, x *queue.AttemptExit, now time.Time) {
	e, err := s.queue.RecordEnded(now, a, x)
	if err != nil {
		s.log.Warn("the end of an attempt came too late", "attempt", a, "error", err)
		return
	}
	s.commitEvents(e)
	s.dispatch.Finished(s.clock.boot, a)
}

// endingNode returns the node of an attempt that an event is about to end, for the end
// hook.
func endingNode(s *Schedd, e *queue.JobEvent) string {
	if !s.hooks.HasEnd() || e.Type != queue.Ended && e.Type != queue.Lost {
		return ""
	}
	return s.queue.NodeOf(eventAttempt(s, e))
}

func eventAttempt(s *Schedd, e *queue.JobEvent) roost.AttemptID {
	return roost.AttemptID{Task: roost.JobID{Seq: e.Job, Host: s.node.Name}.Task(e.Index), Attempt: e.Attempt}
}

// noteHookEnd notes the end of an attempt after its event was applied.
func noteHookEnd(s *Schedd, e *queue.JobEvent, node string) {
	if s.hooks == nil || e.Type != queue.Ended && e.Type != queue.Lost {
		return
	}
	a := eventAttempt(s, e)
	if held := s.heldStarts[a]; held != nil { // it was lost
		held.cancel()
		delete(s.heldStarts, a)
	}
	if !s.hooks.HasEnd() {
		return
	}
	about, ok := hookAttempt(s, a, node)
	if !ok {
		return
	}
	end := jobhooks.Ended{Attempt: about, Time: document.Timestamp(e.Time)}
	if e.Type == queue.Lost {
		end.Lost = e.Reason
	} else if end.Exit = document.ExitOf(codec.WireExitStatus(e.Exit)); end.Exit != nil {
		end.Exit.Steps = nil
	}
	if st, ok := s.queue.TaskStatus(a.Task); ok && st.Task != nil {
		end.State = st.Task.State.String()
	}
	s.pending.hookEnds = append(s.pending.hookEnds, end)
}
