package api

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"google.golang.org/grpc"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/schedd/codec"
	"github.com/roost-batch/roost/schedd/queue"
	"github.com/roost-batch/roost/schedd/transfer"
)

// maxTerminals limits how many terminals of interactive jobs all users may have at a
// time. It counts the terminals in use and those that wait for their job to start.
const maxTerminals = 4096

// The node is asked again when it has said that the job's processes are not there yet, or
// stand still.
const (
	minTerminalRetry = 20 * time.Millisecond
	maxTerminalRetry = time.Second
)

// interactiveTerminal is that of an interactive job, as its user's side of the
// conversation sees it.
type interactiveTerminal struct {
	*Service
	stream   grpc.BidiStreamingServer[wire.ShellInput, wire.ShellOutput]
	first    *wire.ShellInput
	user     queue.CallerIdentity
	task     roost.TaskID
	watch    *jobWatch
	jobEnded bool // the job is over on its node, and the news is on its way
}

// runTerminal waits until an interactive job runs, and carries its terminal. Without its
// user the job has nothing to do: when he has gone, before the start or after it, the job
// is removed. What ends only because this schedd does is left to the user's side, which
// comes back, and to the node.
func (s *Service) runTerminal(up grpc.BidiStreamingServer[wire.ShellInput, wire.ShellOutput],
	who queue.CallerIdentity, first *wire.ShellInput) error {
	if s.interactiveTerminals.Add(1) > maxTerminals {
		s.interactiveTerminals.Add(-1)
		return fmt.Errorf("terminal: %w: %d are open already", roost.Exhausted, maxTerminals)
	}
	defer s.interactiveTerminals.Add(-1)
	t := &interactiveTerminal{Service: s, stream: up, first: first, user: who}
	ctx, cancel := context.WithCancel(up.Context())
	defer cancel()
	if err := t.findJob(ctx); err != nil {
		return err
	}
	defer s.loop.PostCall(context.WithoutCancel(ctx), func(time.Time) { s.stopWatch(t.watch) })
	err := up.SendHeader(nil) // from now on the job is gone when the user is
	if err == nil {
		err = t.serveJob(ctx)
	}
	if err != nil && !t.jobEnded && s.daemonContext.Err() == nil {
		t.removeJob()
	}
	return err
}

// findJob finds the job, if it is one that has a terminal and whose owner asks.
func (t *interactiveTerminal) findJob(ctx context.Context) (err error) {
	aerr := t.loop.CallLoop(ctx, func(time.Time) {
		if t.task, err = t.taskID(t.first.GetTask(), t.user); err != nil {
			return
		}
		var o queue.TaskOutput
		if o, err = t.queue.TaskOutput(t.task); err != nil {
			return
		}
		switch {
		case t.user.UID != o.UID:
			err = fmt.Errorf("job %v: %w: it belongs to %s, and only its owner has its terminal", t.task.Job,
				roost.PermissionDenied, o.Owner)
		case !o.Interactive:
			err = fmt.Errorf("job %v: %w: it is no interactive job", t.task.Job, roost.Invalid)
		default:
			t.watch = t.startWatch([]roost.JobID{t.task.Job})
		}
	})
	return errors.Join(aerr, err)
}

// serveJob waits for the start, holds the conversation, and waits for the job to end as
// its terminal did.
func (t *interactiveTerminal) serveJob(ctx context.Context) error {
	var end *wire.ShellOutput // what is said last, when the job's end is recorded
	for retryWait := minTerminalRetry; ; {
		o, p, err := t.runningNode(ctx)
		if err != nil && end != nil && !errors.Is(err, roost.Unavailable) {
			return t.stream.Send(end)
		}
		if err != nil {
			return err
		}
		var again <-chan time.Time
		if p != nil && end == nil && !t.jobEnded {
			if end, err = t.openSession(ctx, o, p); err != nil && !errors.Is(err, errNotRunning) {
				return err
			}
			again = time.After(retryWait)
			retryWait = min(2*retryWait, maxTerminalRetry)
		}
		select {
		case <-t.watch.signal:
		case <-again:
		case <-ctx.Done():
			return ctx.Err()
		case <-t.daemonContext.Done():
			return t.loop.StoppingError(ctx)
		}
	}
}

// runningNode is where the job runs now; no node while it waits.
func (t *interactiveTerminal) runningNode(ctx context.Context) (o queue.TaskOutput, p *transfer.StartdNode, err error) {
	aerr := t.loop.CallLoop(ctx, func(time.Time) {
		delete(t.watch.changed, t.task.Job)
		if o, err = t.queue.TaskOutput(t.task); errors.Is(err, roost.NotFound) || err == nil && o.State.IsFinal() {
			err = fmt.Errorf("job %v: %w", t.task.Job, roost.Finished)
		}
		if err != nil {
			return
		}
		// its start failed, or its node was lost: it is not run again
		if o.State == roost.Held && o.Attempt.Attempt > 0 {
			st, _ := t.queue.TaskStatus(t.task)
			err, t.jobEnded = fmt.Errorf("job %v: %w: %s", t.task.Job, roost.Invalid, cmp.Or(st.Reason, "it is held")),
				false
			return
		}
		if near := t.loop.Node(o.Node); o.State == roost.Running && o.Running && t.loop.HasSession(o.Node) {
			p = near
		}
	})
	return o, p, errors.Join(aerr, err)
}

// errNotRunning says that the job's processes are not there yet, or stand still.
var errNotRunning = errors.New("not yet")

// openSession asks the node to begin the session, and relays the session until it ends.
// It does not yet send on the final message of the session.
func (t *interactiveTerminal) openSession(ctx context.Context, o queue.TaskOutput,
	p *transfer.StartdNode) (end *wire.ShellOutput, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	down, err := p.Client.Shell(ctx)
	if err == nil {
		err = down.Send(&wire.ShellInput{
			Schedd: t.node.Name, Attempt: codec.AttemptRef(o.Attempt), Command: o.Command, Login: len(o.Command) == 0,
			Terminal: true, Term: t.first.GetTerm(),
			Rows: t.first.GetRows(), Columns: t.first.GetColumns(), Session: true,
		})
	}
	var out *wire.ShellOutput
	if err == nil || errors.Is(err, io.EOF) { // the cause of EOF comes with Recv
		out, err = down.Recv()
	}
	if err != nil {
		return nil, t.classifyRefusal(ctx, shellSessionError(t.task.Job.String(), p, err))
	}
	t.log.Info("terminal", "attempt", o.Attempt, "node", p.Name, "user", t.user.User, "uid", t.user.UID)
	go func() {
		defer cancel()
		relayInput(t.stream.Recv, down)
	}()
	for !out.GetEnded() {
		if err := t.stream.Send(out); err != nil {
			return nil, err
		}
		if out, err = down.Recv(); err != nil {
			if err = shellSessionError(t.task.Job.String(), p, err); errors.Is(err, roost.Finished) {
				t.jobEnded = true
				return nil, nil
			}
			return nil, err
		}
	}
	t.jobEnded = true
	return out, nil
}

// classifyRefusal sorts what a node says instead of beginning a session.
func (t *interactiveTerminal) classifyRefusal(ctx context.Context, err error) error {
	switch {
	case errors.Is(err, roost.Finished):
		t.jobEnded = true
		return nil
	case errors.Is(err, roost.Conflict), errors.Is(err, roost.Unavailable) && ctx.Err() == nil:
		return errNotRunning
	}
	return err
}

// removeJob ends the job, unless it has ended.
func (t *interactiveTerminal) removeJob() {
	t.loop.PostCall(context.WithoutCancel(t.stream.Context()), func(now time.Time) {
		events, err := t.queue.RemoveTasks(now, t.user, queue.TaskSelector{Job: t.task.Job},
			"its terminal is gone", false)
		if err != nil {
			if rpc.KindOf(err) != roost.Finished && rpc.KindOf(err) != roost.NotFound {
				t.log.Warn("a job without a terminal is not removed", "job", t.task.Job, "err", err)
			}
			return
		}
		t.loop.CommitEvents(events...)
	})
}
