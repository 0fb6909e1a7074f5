package transfer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/userfiles"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/schedd/codec"
)

// OnInputRequest sends an attempt's input files to the scratch directory that its node
// has made.
func (t *FileTransfers) OnInputRequest(p *StartdNode, m *wire.InputReady, _ time.Time) {
	a := codec.AttemptID(t.host, m.GetAttempt())
	if !t.queue.IsLive(a) {
		return
	}
	if m.GetError() != "" {
		t.log.Warn("no scratch directory", "attempt", a, "node", p.Name, "error", m.GetError())
		return // the node reports the end of the attempt too
	}
	program, err := t.queue.Program(a)
	if err != nil {
		return
	}
	pl := t.filesFor(program, p.Name)
	ctx, digest := t.startTransfer(a), t.secretsDigest
	go func() {
		err := t.sendInput(ctx, p, a, pl, m)
		if err == nil {
			err = objectInputs{t, p, a, pl}.send(ctx, m)
		}
		var secrets []*wire.SecretText
		if err == nil && len(pl.Secrets) > 0 {
			reader := newSecretReader(t)
			secrets, err = reader.fetch(ctx, secretsRequest(pl.TaskProgram, nil))
			reader.close()
		}
		t.loop.PostEvent(t.daemonContext, InputSent{p.Name, a, secrets, digest, err})
	}()
}

// startTransfer returns the context of an attempt's transfers, which ends with the
// attempt.
func (t *FileTransfers) startTransfer(a roost.AttemptID) context.Context {
	t.StopTransfer(a)
	ctx, cancel := context.WithCancel(t.daemonContext)
	t.transfers[a] = cancel
	return ctx
}

// StopTransfer ends what is on its way of an attempt, but for images.
func (t *FileTransfers) StopTransfer(a roost.AttemptID) {
	delete(t.outputFetches, a)
	if cancel := t.transfers[a]; cancel != nil {
		cancel()
		delete(t.transfers, a)
	}
}

// sendInput sends what an attempt needs before it starts, in the way that its node wants.
func (t *FileTransfers) sendInput(ctx context.Context, p *StartdNode, a roost.AttemptID, pl sandboxFiles,
	ready *wire.InputReady) (err error) {
	if m := pl.Restore; m != nil && m.Server == "" {
		if err := t.sendImage(ctx, p, a, pl.UID, m); err != nil {
			return err
		}
	}
	if len(pl.inputs) == 0 && pl.ScriptFile == "" {
		return nil
	}
	var first *firstSend
	if len(pl.inputs) > 0 && pl.JobTasks > 1 && ready.GetInputCache() {
		if first, err = t.inputCaches.beginFirst(ctx, p.Name, a.Task.Job); err != nil {
			return err
		}
		defer func() { first.end(err == nil) }()
	}
	slot, err := t.slots.acquire(ctx, pl.UID)
	if err != nil {
		return err
	}
	defer slot.release()
	pace, end := newPacedStream(ctx, slot) // a transfer that is broken off must not keep the attempt's files there
	defer end()
	ctx = pace.ctx
	if pl.ScriptFile != "" {
		if err := t.sendScript(ctx, p, a, pl, pace); err != nil || len(pl.inputs) == 0 {
			return pace.stopCause(err)
		}
	}
	send := inputSend{FileTransfers: t, node: p, attempt: a, files: pl, pace: pace}
	if isStored(pl.TaskProgram) {
		return pace.stopCause(send.sendCached(ready, send.sendStored))
	}
	agent, err := t.users.Agent(pl.UID, pl.GID)
	if err != nil {
		return err
	}
	entries, err := agent.Expand(ctx, pl.Iwd, pl.inputs)
	if errors.Is(err, roost.Unavailable) {
		t.users.DropAgent(pl.UID, pl.GID) // it has died, and another is started for the next attempt
	}
	if err != nil {
		return err
	}
	send.agent, send.entries = agent, entries
	isCached := func(e userfiles.TransferEntry) bool { return e.Size >= userfiles.MinCachedBytes }
	if !slices.ContainsFunc(entries, isCached) {
		first.end(true) // nobody need wait for them
		_, err = send.sendEntries(userfiles.SendOptions{SendHoles: ready.GetHoles(), MayGrow: true})
		return err
	}
	return send.sendCached(ready, send.sendEntries)
}

// inputSend sends the input files of an attempt.
type inputSend struct {
	*FileTransfers
	node    *StartdNode
	attempt roost.AttemptID
	files   sandboxFiles
	pace    *pacedStream
	agent   *userfiles.Agent // nil: the files are stored ones
	entries []userfiles.TransferEntry
}

// sendCached sends the files that the node does not have. One that no longer has what it
// had gets all.
func (s inputSend) sendCached(ready *wire.InputReady,
	send func(userfiles.SendOptions) (*wire.PutReply, error)) error {
	opts := userfiles.SendOptions{SendHoles: ready.GetHoles(), MayGrow: true}
	for tries := 0; ; tries++ {
		view := s.inputCaches.view(s.node.Name, s.files.UID, s.files.JobTasks > 1)
		if ready.GetInputCache() {
			opts.Cache = view
		}
		reply, err := send(opts)
		if err != nil {
			return err
		}
		if !reply.GetMissing() {
			view.commit()
			return nil
		}
		if tries > 0 {
			return fmt.Errorf("%w: node %s lacks files of its input cache that were not left out", roost.Unavailable,
				s.node.Name)
		}
		s.inputCaches.forget(s.node.Name)
	}
}

// sendEntries sends the files in one stream.
func (s inputSend) sendEntries(opts userfiles.SendOptions) (*wire.PutReply, error) {
	put, err := s.node.Client.Put(s.pace.ctx)
	if err != nil {
		return nil, err
	}
	totals := userfiles.Totals(s.entries)
	progress, done := s.progress.begin(s.attempt, inputTransfer, totals.GetBytes())
	defer done()
	s.pace.progress = progress
	send := s.pace.sendPaced(put.Send)
	err = send(&wire.FileChunk{Schedd: s.host, Attempt: codec.AttemptRef(s.attempt), Totals: totals})
	if err == nil {
		err = userfiles.SendEntries(s.pace.ctx, send, s.agent, s.files.Iwd, s.entries, opts)
	}
	if err != nil && !errors.Is(err, io.EOF) { // which says that the node has answered already
		return nil, err
	}
	reply, err := put.CloseAndRecv()
	return reply, s.pace.stopCause(rpc.FromStatus(err))
}

// OnInputSent lets the attempt start, or ends it. A missing file is the job's fault, all
// else the machine's. A transfer that was overtaken by another one, because the node
// asked again on a new session, has nothing to say: the attempt may run already.
func (t *FileTransfers) OnInputSent(n InputSent, now time.Time) {
	_, refusedObject := errors.AsType[objectError](n.err)
	overtaken := !refusedObject && (errors.Is(n.err, context.Canceled) || errors.Is(n.err, roost.Conflict) ||
		errors.Is(n.err, roost.NotFound) || errors.Is(n.err, roost.Finished))
	if !t.queue.IsLive(n.attempt) || overtaken {
		return
	}
	if n.err == nil {
		sendSecrets(t, n)
		t.loop.SendTo(n.node,
			&wire.ToStartd{Of: &wire.ToStartd_Launch{Launch: &wire.Launch{Attempt: codec.AttemptRef(n.attempt)}}})
		return
	}
	var spoiled badImageError
	if errors.As(n.err, &spoiled) {
		t.dropBadImage(n, spoiled, now)
		return
	}
	var refused secretError
	if errors.As(n.err, &refused) {
		if e, ok := t.queue.HoldTask(now, n.attempt.Task, "it cannot have its secrets: "+refused.Error()); ok {
			t.loop.CommitEvents(e)
		}
		return // the hold ends the attempt
	}
	if refusedObject {
		if e, ok := t.queue.HoldTask(now, n.attempt.Task, "objects: "+n.err.Error()); ok {
			t.loop.CommitEvents(e)
		}
		return // the hold ends the attempt
	}
	t.log.Warn("input not sent", "attempt", n.attempt, "node", n.node, "error", n.err)
	if errors.Is(n.err, roost.NoInput) || errors.Is(n.err, roost.Invalid) || errors.Is(n.err, roost.Exhausted) {
		if e, ok := t.queue.HoldTask(now, n.attempt.Task, "its input cannot be sent: "+n.err.Error()); ok {
			t.loop.CommitEvents(e)
		}
		return // the hold ends the attempt
	}
	cause := wire.Cause_CAUSE_MACHINE
	if errors.Is(n.err, roost.Unavailable) {
		cause = wire.Cause_CAUSE_VACATED // the way there is broken, and the machine is as good as it was
	}
	t.loop.SendTo(n.node, &wire.ToStartd{Of: &wire.ToStartd_Vacate{Vacate: &wire.Vacate{
		Attempt: codec.AttemptRef(n.attempt), Cause: cause, Fast: true,
		Reason: "its input could not be sent: " + n.err.Error(),
	}}})
}
