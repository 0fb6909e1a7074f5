package schedd

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
	"github.com/roost-batch/roost/schedd/queue"
)

// maxTerminals bounds the terminals of interactive jobs at a time, of all users: those that are in use, and those that wait for their job to start.
const maxTerminals = 4096

// The node is asked again when it has said that the job's processes are not there yet, or stand still.
const (
	firstKnock = 20 * time.Millisecond
	lastKnock  = time.Second
)

// terminal is that of an interactive job, as its user's side of the conversation sees it.
type terminal struct {
	*service
	up    grpc.BidiStreamingServer[wire.ShellInput, wire.ShellOutput]
	first *wire.ShellInput
	who   queue.Submitter
	task  roost.TaskID
	watch *watch
	over  bool // the job is over on its node, and the news is on its way
}

// attend waits until an interactive job runs, and carries its terminal. Without its user the job has nothing to do: when he has gone, before the start or after it,
// the job is removed. What ends only because this schedd does is left to the user's side, which comes back, and to the node.
func (s *service) attend(up grpc.BidiStreamingServer[wire.ShellInput, wire.ShellOutput], who queue.Submitter, first *wire.ShellInput) error {
	if s.terminals.Add(1) > maxTerminals {
		s.terminals.Add(-1)
		return fmt.Errorf("terminal: %w: %d are open already", roost.Exhausted, maxTerminals)
	}
	defer s.terminals.Add(-1)
	t := &terminal{service: s, up: up, first: first, who: who}
	ctx, cancel := context.WithCancel(up.Context())
	defer cancel()
	if err := t.begin(ctx); err != nil {
		return err
	}
	defer s.post(context.WithoutCancel(ctx), op(func(time.Time) { s.endWatch(t.watch) }))
	err := up.SendHeader(nil) // from now on the job is gone when the user is
	if err == nil {
		err = t.run(ctx)
	}
	if err != nil && !t.over && s.life.Err() == nil {
		t.remove()
	}
	return err
}

// begin finds the job, if it is one that has a terminal and whose owner asks.
func (t *terminal) begin(ctx context.Context) (err error) {
	aerr := t.ask(ctx, func(time.Time) {
		if t.task, err = t.oneTask(t.first.GetTask(), t.who); err != nil {
			return
		}
		var o queue.Output
		if o, err = t.queue.OutputOf(t.task); err != nil {
			return
		}
		switch {
		case t.who.UID != o.UID:
			err = fmt.Errorf("job %v: %w: it belongs to %s, and only its owner has its terminal", t.task.Job, roost.PermissionDenied, o.Owner)
		case !o.Interactive:
			err = fmt.Errorf("job %v: %w: it is no interactive job", t.task.Job, roost.Invalid)
		default:
			t.watch = t.beginWatch([]roost.JobID{t.task.Job})
		}
	})
	return errors.Join(aerr, err)
}

// run waits for the start, holds the conversation, and waits for the job to end as its terminal did.
func (t *terminal) run(ctx context.Context) error {
	var end *wire.ShellOutput // what is said last, when the job's end is recorded
	for knock := firstKnock; ; {
		o, p, err := t.place(ctx)
		if err != nil && end != nil && !errors.Is(err, roost.Unavailable) {
			return t.up.Send(end)
		}
		if err != nil {
			return err
		}
		var again <-chan time.Time
		if p != nil && end == nil && !t.over {
			if end, err = t.open(ctx, o, p); err != nil && !errors.Is(err, errNotYet) {
				return err
			}
			again = time.After(knock)
			knock = min(2*knock, lastKnock)
		}
		select {
		case <-t.watch.signal:
		case <-again:
		case <-ctx.Done():
			return ctx.Err()
		case <-t.life.Done():
			return t.gone(ctx)
		}
	}
}

// place is where the job runs now; no node while it waits.
func (t *terminal) place(ctx context.Context) (o queue.Output, p *peerNode, err error) {
	aerr := t.ask(ctx, func(time.Time) {
		delete(t.watch.changed, t.task.Job)
		if o, err = t.queue.OutputOf(t.task); errors.Is(err, roost.NotFound) || err == nil && o.State.Final() {
			err = fmt.Errorf("job %v: %w", t.task.Job, roost.Finished)
		}
		if err != nil {
			return
		}
		if o.State == roost.Held && o.Attempt.Attempt > 0 { // its start failed, or its node was lost: it is not run again
			st, _ := t.queue.TaskStatus(t.task)
			err, t.over = fmt.Errorf("job %v: %w: %s", t.task.Job, roost.Invalid, cmp.Or(st.Reason, "it is held")), false
			return
		}
		if near := t.peers[o.Node]; o.State == roost.Running && o.Running && near != nil && near.session != nil {
			p = near
		}
	})
	return o, p, errors.Join(aerr, err)
}

// errNotYet says that the job's processes are not there yet, or stand still.
var errNotYet = errors.New("not yet")

// open has the node begin the session, and carries it until it ends; what it ended with is not sent on yet.
func (t *terminal) open(ctx context.Context, o queue.Output, p *peerNode) (end *wire.ShellOutput, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	down, err := p.client.Shell(ctx)
	if err == nil {
		err = down.Send(&wire.ShellInput{
			Schedd: t.node.Name, Attempt: ref(o.Attempt), Command: o.Command, Login: len(o.Command) == 0, Terminal: true, Term: t.first.GetTerm(),
			Rows: t.first.GetRows(), Columns: t.first.GetColumns(), Session: true,
		})
	}
	var out *wire.ShellOutput
	if err == nil || errors.Is(err, io.EOF) { // the cause of EOF comes with Recv
		out, err = down.Recv()
	}
	if err != nil {
		return nil, t.refused(ctx, shellBroke(t.task.Job.String(), p, err))
	}
	t.log.Info("terminal", "attempt", o.Attempt, "node", p.name, "user", t.who.User, "uid", t.who.UID)
	go func() {
		defer cancel()
		relayInput(t.up, down)
	}()
	for !out.GetEnded() {
		if err := t.up.Send(out); err != nil {
			return nil, err
		}
		if out, err = down.Recv(); err != nil {
			if err = shellBroke(t.task.Job.String(), p, err); errors.Is(err, roost.Finished) {
				t.over = true
				return nil, nil
			}
			return nil, err
		}
	}
	t.over = true
	return out, nil
}

// refused sorts what a node says instead of beginning a session.
func (t *terminal) refused(ctx context.Context, err error) error {
	switch {
	case errors.Is(err, roost.Finished):
		t.over = true
		return nil
	case errors.Is(err, roost.Conflict), errors.Is(err, roost.Unavailable) && ctx.Err() == nil:
		return errNotYet
	}
	return err
}

// remove ends the job, unless it has ended.
func (t *terminal) remove() {
	t.post(context.WithoutCancel(t.up.Context()), op(func(now time.Time) {
		events, err := t.queue.Remove(now, t.who, queue.Target{Job: t.task.Job}, "its terminal is gone", false)
		if err != nil {
			if rpc.KindOf(err) != roost.Finished && rpc.KindOf(err) != roost.NotFound {
				t.log.Warn("a job without a terminal is not removed", "job", t.task.Job, "err", err)
			}
			return
		}
		t.decide(events...)
	}))
}
