package api

import (
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

// maxShells bounds the shells that go through this schedd at a time, of all users.
const maxShells = 256

// Shell carries a shell between a user's terminal and a running task of theirs. Who may
// is the task's owner, and root of this host, who could go to the node; the schedd's own
// user may not, unless the pool is theirs alone and so are the tasks.
func (s *Service) Shell(up grpc.BidiStreamingServer[wire.ShellInput, wire.ShellOutput]) error {
	ctx := up.Context()
	who, err := s.callerOf(ctx)
	if err != nil {
		return err
	}
	first, err := up.Recv()
	if err != nil {
		return err
	}
	if first.GetSession() {
		return s.runTerminal(up, who, first)
	}
	if first.Task, err = resolveJobWord(ctx, s, who, first.GetTask()); err != nil {
		return err
	}
	if host, there := s.peerSchedds.RemoteHost(first.GetTask()); there && host == s.node.CellQueueName() {
		return s.peerSchedds.PeerShell(ctx, host, who, first, up.Recv, up.Send)
	}
	return RunShell(ctx, s, who, UserShell{first, up.Recv, up.Send})
}

// UserShell is the user's side of a shell. First is its first message.
type UserShell struct {
	First   *wire.ShellInput
	Receive func() (*wire.ShellInput, error)
	Send    func(*wire.ShellOutput) error
}

// RunShell is Shell for a user whom this schedd or another one knows.
func RunShell(ctx context.Context, s *Service, who queue.CallerIdentity, user UserShell) error {
	first := user.First
	if s.shells.Add(1) > maxShells {
		s.shells.Add(-1)
		return fmt.Errorf("shell: %w: %d are open already", roost.Exhausted, maxShells)
	}
	defer s.shells.Add(-1)
	task := first.GetTask()
	a, p, err := s.findShellAttempt(ctx, who, task)
	if err != nil {
		return err
	}
	s.log.Info("shell", "attempt", a, "node", p.Name, "user", who.User, "uid", who.UID)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	down, err := p.Client.Shell(ctx)
	if err == nil {
		err = down.Send(&wire.ShellInput{
			Schedd: s.node.Name, Attempt: codec.AttemptRef(a), Command: first.GetCommand(),
			Terminal: first.GetTerminal(),
			Term:     first.GetTerm(),
			Rows:     first.GetRows(), Columns: first.GetColumns(),
		})
	}
	if err != nil && !errors.Is(err, io.EOF) { // the cause of EOF comes with Recv
		return shellSessionError(task, p, err)
	}
	go func() {
		defer cancel()
		relayInput(user.Receive, down)
	}()
	return relayOutput(user.Send, down, func(err error) error { return shellSessionError(task, p, err) })
}

// findShellAttempt finds the running attempt of a task that a user may enter, and the
// node that it runs on.
func (s *Service) findShellAttempt(ctx context.Context, who queue.CallerIdentity,
	id string) (a roost.AttemptID, p *transfer.StartdNode, err error) {
	aerr := s.loop.CallLoop(ctx, func(time.Time) {
		var t roost.TaskID
		if t, err = s.taskID(id, who); err != nil {
			return
		}
		var o queue.TaskOutput
		if o, err = s.queue.TaskOutput(t); err != nil {
			if past, _, herr := s.history.Job(t.Job.Seq); herr == nil {
				err = fmt.Errorf("task %s: %w, so there is nothing to look into; its output: roost logs %s",
					past.TaskName(t), roost.Finished, past.TaskName(t))
			}
			return
		}
		a, p = o.Attempt, s.loop.Node(o.Node)
		err = checkShellAccess(who, s.queue.TaskName(t), o, s.loop.HasSession(o.Node))
	})
	if aerr != nil {
		return a, nil, aerr
	}
	return a, p, err
}

// checkShellAccess says why a user does not get a shell in a task.
func checkShellAccess(who queue.CallerIdentity, t string, o queue.TaskOutput, near bool) error {
	switch {
	case !who.Owns(o.Owner, o.UID) && (who.UID != 0 || who.Origin != ""):
		return fmt.Errorf("task %v: %w: it belongs to %s, and only its owner may enter it", t,
			roost.PermissionDenied, o.Owner)
	case o.State.IsFinal():
		return fmt.Errorf("task %v: %w, so there is nothing to look into; its output: roost logs %v", t,
			roost.Finished, t)
	case o.State == roost.Suspended:
		return fmt.Errorf("task %v: %w: it is suspended, and a shell in it would stand still as it does; let it "+
			"go on first: roost resume %v", t, roost.Conflict, t)
	case o.State != roost.Running || !o.Running:
		return fmt.Errorf("task %v: %w: it is %v, and only a running task can be entered", t, roost.Conflict, o.State)
	case !near:
		return fmt.Errorf("task %v: %w: node %s, where it runs, does not answer now", t, roost.Unavailable, o.Node)
	}
	return nil
}

// shellSessionError is how the end of the conversation with the node is told.
func shellSessionError(task string, p *transfer.StartdNode, err error) error {
	err = rpc.FromStatus(err)
	switch {
	case errors.Is(err, roost.NotFound): // it ended, and the news is on its way
		return fmt.Errorf("task %s: %w on node %s", task, roost.Finished, p.Name)
	case errors.Is(err, roost.Unavailable):
		return fmt.Errorf("node %s: %w", p.Name, err)
	}
	return err
}

// relayInput passes on what the user's side says, until it or the node has gone.
func relayInput(receive func() (*wire.ShellInput, error),
	down grpc.BidiStreamingClient[wire.ShellInput, wire.ShellOutput]) {
	for {
		in, err := receive()
		if err != nil {
			return
		}
		// Of what a user says, only what belongs to a shell that is open goes on.
		if down.Send(&wire.ShellInput{Data: in.GetData(), Eof: in.GetEof(), Rows: in.GetRows(),
			Columns: in.GetColumns()}) != nil {
			return
		}
	}
}

// relayOutput passes on what the node says, until the command has ended.
func relayOutput(send func(*wire.ShellOutput) error,
	down grpc.BidiStreamingClient[wire.ShellInput, wire.ShellOutput], broke func(error) error) error {
	for {
		out, err := down.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return broke(err)
		}
		if err := send(out); err != nil {
			return err
		}
	}
}
