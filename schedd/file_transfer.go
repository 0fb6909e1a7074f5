package schedd

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/failpoint"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/userfiles"
	"github.com/roost-batch/roost/internal/wire"
)

// What transfers tell the loop.
type (
	inputSent struct {
		node    string
		attempt roost.AttemptID
		err     error
	}
	outputStored struct {
		node        string
		attempt     roost.AttemptID
		exited      *wire.Exited
		err         error
		spoolReason error // why output is in the spool, and not where the job wants it
	}
)

// onInputRequest sends an attempt's input files to the scratch directory that its node
// has made.
func (t *fileTransfers) onInputRequest(p *startdNode, m *wire.InputReady, _ time.Time) {
	a := attemptID(t.host, m.GetAttempt())
	if !t.queue.IsLive(a) {
		return
	}
	if m.GetError() != "" {
		t.log.Warn("no scratch directory", "attempt", a, "node", p.name, "error", m.GetError())
		return // the node reports the end of the attempt too
	}
	program, err := t.queue.Program(a)
	if err != nil {
		return
	}
	pl := t.filesFor(program, p.name)
	ctx := t.startTransfer(a)
	go func() {
		err := t.sendInput(ctx, p, a, pl, m.GetHoles())
		t.loop.PostEvent(t.daemonContext, inputSent{p.name, a, err})
	}()
}

// startTransfer returns the context of an attempt's transfers, which ends with the
// attempt.
func (t *fileTransfers) startTransfer(a roost.AttemptID) context.Context {
	t.stopTransfer(a)
	ctx, cancel := context.WithCancel(t.daemonContext)
	t.transfers[a] = cancel
	return ctx
}

func (t *fileTransfers) stopTransfer(a roost.AttemptID) {
	delete(t.outputFetches, a)
	if cancel := t.transfers[a]; cancel != nil {
		cancel()
		delete(t.transfers, a)
	}
}

// sendInput sends what an attempt needs before it starts. With holes the node takes files
// without those that they have.
func (t *fileTransfers) sendInput(ctx context.Context, p *startdNode, a roost.AttemptID, pl sandboxFiles, holes bool) error {
	if m := pl.Restore; m != nil && m.Server == "" {
		if err := t.sendImage(ctx, p, a, pl.UID, m); err != nil {
			return err
		}
	}
	if len(pl.inputs) == 0 && pl.ScriptFile == "" {
		return nil
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
	agent, err := t.users.agent(pl.UID, pl.GID)
	if err != nil {
		return err
	}
	entries, err := agent.Expand(ctx, pl.Iwd, pl.inputs)
	if errors.Is(err, roost.Unavailable) {
		t.users.removeAgent(pl.UID, pl.GID) // it has died, and another is started for the next attempt
	}
	if err != nil {
		return err
	}
	put, err := p.client.Put(ctx)
	if err != nil {
		return err
	}
	send := pace.sendPaced(put.Send)
	err = send(&wire.FileChunk{Schedd: t.host, Attempt: attemptRef(a), Totals: userfiles.Totals(entries)})
	if err == nil {
		err = userfiles.SendEntries(ctx, send, agent, pl.Iwd, entries,
			userfiles.SendOptions{SendHoles: holes, MayGrow: true})
	}
	if err != nil && !errors.Is(err, io.EOF) { // which says that the node has answered already
		return err
	}
	_, err = put.CloseAndRecv()
	return pace.stopCause(rpc.FromStatus(err))
}

// onInputSent lets the attempt start, or ends it: a file that is not there is the job's
// fault, all else the machine's. A transfer that was overtaken by another one, because
// the node asked again on a new session, has nothing to say: the attempt may run already.
func (t *fileTransfers) onInputSent(n inputSent, now time.Time) {
	overtaken := errors.Is(n.err, context.Canceled) || errors.Is(n.err, roost.Conflict) ||
		errors.Is(n.err, roost.NotFound) || errors.Is(n.err, roost.Finished)
	if !t.queue.IsLive(n.attempt) || overtaken {
		return
	}
	if n.err == nil {
		t.loop.SendTo(n.node,
			&wire.ToStartd{Of: &wire.ToStartd_Launch{Launch: &wire.Launch{Attempt: attemptRef(n.attempt)}}})
		return
	}
	var spoiled badImageError
	if errors.As(n.err, &spoiled) {
		t.dropBadImage(n, spoiled, now)
		return
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
		Attempt: attemptRef(n.attempt), Cause: cause, Fast: true,
		Reason: "its input could not be sent: " + n.err.Error(),
	}}})
}

// collectOutput brings an attempt's output home, and reports whether there is any:
// outputStored follows then.
func (t *fileTransfers) collectOutput(p *startdNode, a roost.AttemptID, e *wire.Exited) bool {
	program, err := t.queue.Program(a)
	if err != nil {
		return false
	}
	pl := t.filesFor(program, p.name)
	c := &outputFetch{fileTransfers: t, peer: p, attempt: a, exited: e, sandboxFiles: pl}
	if r, ok := t.queue.RequestOf(a.Task); ok {
		c.diskLimit = r.Resources.Disk
	}
	if !c.isNeeded() {
		return false
	}
	t.outputFetches[a] = c
	t.fetcher.FetchOutput(c)
	return true
}

// onOutputStored records the end of the attempt. What could not be stored is not lost:
// the task is held, and its next attempt makes it anew.
func (t *fileTransfers) onOutputStored(n outputStored, now time.Time) {
	if !t.queue.IsLive(n.attempt) || t.daemonContext.Err() != nil {
		return
	}
	// the transfer was stopped, or the node has moved and is reached in another way
	if errors.Is(n.err, context.Canceled) {
		if p := t.loop.Node(n.node); p != nil && t.transfers[n.attempt] != nil {
			t.collectOutput(p, n.attempt, n.exited)
		}
		return
	}
	delete(t.transfers, n.attempt)
	delete(t.outputFetches, n.attempt)
	failpoint.Point(failpoint.ScheddAfterOutputCopied)
	status := n.exited.GetStatus()
	switch file, bad := isNodeFault(n.err); {
	case n.spoolReason != nil && n.err == nil:
		status = spooledStatus(status, n.spoolReason)
	case bad:
		t.log.Warn("a node did not send the output that was asked for", "node", n.node, "job", n.attempt.Task.Job,
			"attempt", n.attempt, "file", file, "error", n.err)
		t.recordBadOutput(n.attempt, badOutputStatus(status, n.node, n.err), now)
		return
	case n.err != nil:
		t.log.Warn("output not stored", "attempt", n.attempt, "error", n.err)
		status = &wire.ExitStatus{Cause: wire.Cause_CAUSE_LAUNCH,
			Reason: "its output cannot be stored: " + n.err.Error()}
	}
	t.loop.RecordEnded(n.attempt, status, now)
}

// outputFetch is the way home of one attempt's output.
type outputFetch struct {
	*fileTransfers
	sandboxFiles
	peer           *startdNode
	attempt        roost.AttemptID
	exited         *wire.Exited
	diskLimit      roost.Bytes // that the job asked for; 0: none
	spoolReason    error       // why something is in the spool that was to go elsewhere
	waitedForSpool bool        // for room in the spool

	// Of one try:
	stream   *pacedStream
	received []*userfiles.RemoteStage // what came, complete and checked, without its name
}

// The names under which a startd gives captured streams.
const (
	capturedOut = "\x00stdout"
	capturedErr = "\x00stderr"
)

func (c *outputFetch) isNeeded() bool {
	return !c.IsSecondary && (c.exited.GetStdoutSize() > 0 || c.exited.GetStderrSize() > 0 ||
		len(c.exited.GetOutputs()) > 0 || c.scratch && (c.Out != "" || c.Err != "") || c.discardOnSuccess("oe"))
}

// wireError turns an error of the wire back into what it was; the agent's own are left as
// they are.
func (c *outputFetch) wireError(err error) error {
	err = c.stream.stopCause(err)
	if _, stalled := errors.AsType[stalledError](err); stalled {
		return err
	}
	if errors.Is(err, roost.Unavailable) {
		c.users.removeAgent(c.UID, c.GID) // if it was the agent that has died, another is started
	}
	return rpc.FromStatus(err)
}

// storeStream puts one captured stream where it belongs: the file that the job names, or
// the spool.
func (c *outputFetch) storeStream(ctx context.Context, stderr bool) error {
	size, target, suffix := c.exited.GetStdoutSize(), c.Out, "o"
	if stderr {
		size, target, suffix = c.exited.GetStderrSize(), c.Err, "e"
	}
	if !c.scratch {
		target = "" // the task wrote it itself, in place
	} else if target == os.DevNull || c.discardOnSuccess(suffix) {
		return nil
	}
	if size == 0 && target == "" {
		return nil
	}
	from, err := c.streamReader(ctx, stderr)
	if err != nil {
		return err
	}
	if target == "" {
		return c.spoolStream(stderr, from)
	}
	if err = c.writeFile(ctx, target, from); c.shouldSpool(ctx, err) {
		return c.spool(ctx, stderr, err)
	}
	return err
}

// writeFile writes a file with the rights of the job's owner, whole or not at all.
func (c *outputFetch) writeFile(ctx context.Context, target string, from io.Reader) error {
	agent, err := c.users.agent(c.UID, c.GID)
	if err != nil {
		return err
	}
	path := absolutePath(c.Iwd, target)
	stage, err := agent.BeginStage(ctx, filepath.Dir(path))
	if err != nil {
		return err
	}
	if err := c.fillFile(ctx, stage, filepath.Base(path), from); err != nil {
		stage.Close()
		return err
	}
	c.received = append(c.received, stage)
	return nil
}

// fillFile makes the file of a set that has one.
func (c *outputFetch) fillFile(ctx context.Context, stage *userfiles.RemoteStage, name string, from io.Reader) error {
	w, err := stage.Create(ctx, name, userfiles.CreateOptions{})
	if err != nil {
		return err
	}
	defer w.Close()
	if _, err := io.Copy(w, from); err != nil {
		return c.wireError(err)
	}
	return w.Commit()
}

// fetchStream asks the node for a captured stream that was too large to come along.
func (c *outputFetch) fetchStream(ctx context.Context, stderr bool) (io.Reader, error) {
	name, size := capturedOut, c.exited.GetStdoutSize()
	if stderr {
		name, size = capturedErr, c.exited.GetStderrSize()
	}
	from, err := c.peer.client.Fetch(ctx,
		&wire.FetchRequest{Schedd: c.host, Attempt: attemptRef(c.attempt), Names: []string{name}})
	if err != nil {
		return nil, rpc.FromStatus(err)
	}
	return &chunkReader{recv: c.stream.receivePaced(from.Recv), name: name, size: size, sum: sha256.New()}, nil
}

// chunkReader reads the data of one captured stream as it comes, and compares it with
// what was announced.
type chunkReader struct {
	recv func() (*wire.FileChunk, error)
	name string
	size int64
	sum  hash.Hash
	read int64
	rest []byte
	done bool
}

func (r *chunkReader) Read(p []byte) (int, error) {
	for len(r.rest) == 0 {
		if r.done {
			return 0, io.EOF
		}
		chunk, err := r.recv()
		if errors.Is(err, io.EOF) {
			return 0, fmt.Errorf("%w: the stream ended in the middle", roost.Unavailable)
		}
		if err != nil {
			return 0, rpc.FromStatus(err)
		}
		if err := r.checkChunk(chunk); err != nil {
			return 0, err
		}
		r.rest, r.done = chunk.GetData(), chunk.GetEof()
	}
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

// checkChunk compares a chunk with what was to come.
func (r *chunkReader) checkChunk(chunk *wire.FileChunk) error {
	r.sum.Write(chunk.GetData())
	r.read += int64(len(chunk.GetData()))
	wrong := func(format string, args ...any) error {
		return &userfiles.MismatchError{Name: strings.TrimPrefix(r.name, "\x00"), Cause: fmt.Sprintf(format, args...)}
	}
	switch e := chunk.GetEntry(); {
	case e != nil && (e.GetName() != r.name || e.GetDir()):
		return wrong("%.200q came in its place", e.GetName())
	case r.read > r.size:
		return wrong("%d bytes were announced, and more came", r.size)
	case chunk.GetEof() && r.read < r.size:
		return wrong("%d bytes were announced, and %d came", r.size, r.read)
	case chunk.GetEof() && !bytes.Equal(r.sum.Sum(nil), chunk.GetSha256()):
		return wrong("what came of it does not have its digest")
	}
	return nil
}

func itoa(n uint64) string { return strconv.FormatUint(n, 10) }
