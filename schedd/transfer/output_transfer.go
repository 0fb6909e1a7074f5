package transfer

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/failpoint"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/userfiles"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/schedd/codec"
	"github.com/roost-batch/roost/schedd/queue"
	"github.com/roost-batch/roost/schedd/queue/jobad"
)

// What transfers tell the loop.
type (
	InputSent struct {
		node    string
		attempt roost.AttemptID
		secrets []*wire.SecretText // that the attempt gets
		digest  uint64             // of the cell policy before they were read
		err     error
	}
	OutputStored struct {
		Node        string
		Attempt     roost.AttemptID
		Exited      *wire.Exited
		Err         error
		SpoolReason error // why output is in the spool, and not where the job wants it
		Stored      queue.StoredOutput
	}
)

// collectOutput brings an attempt's output home, and reports whether there is any:
// OutputStored follows then.
func (t *FileTransfers) collectOutput(p *StartdNode, a roost.AttemptID, e *wire.Exited) bool {
	if !t.mayHaveOutput(p.Name, a, e) {
		return false
	}
	program, err := t.queue.Program(a)
	if err != nil {
		return false
	}
	pl := t.filesFor(program, p.Name)
	c := &OutputFetch{FileTransfers: t, Peer: p, Attempt: a, Exited: e, sandboxFiles: pl}
	if r, ok := t.queue.RequestOf(a.Task); ok {
		c.diskLimit = r.Resources.Disk
	}
	if program.Service != nil {
		c.logs = &program.Service.Logs
	}
	if !c.isNeeded() {
		return false
	}
	t.outputFetches[a] = c
	t.fetcher.FetchOutput(c)
	return true
}

// mayHaveOutput is false for an attempt that certainly left no output to bring home. Most
// attempts are such ones, and it costs much less than their programs, which tell exactly.
func (t *FileTransfers) mayHaveOutput(node string, a roost.AttemptID, e *wire.Exited) bool {
	if e.GetStdoutSize() > 0 || e.GetStderrSize() > 0 || len(e.GetOutputs()) > 0 {
		return true
	}
	o, ok := t.queue.OutputSettings(a.Task)
	return ok && (o.RemovesFiles || o.NamesFiles && t.usesScratch(o.Transfer, o.Domain, node))
}

// OnOutputStored records the end of the attempt. What could not be stored is not lost:
// the task is held, and its next attempt makes it anew.
func (t *FileTransfers) OnOutputStored(n OutputStored, now time.Time) {
	if !t.queue.IsLive(n.Attempt) || t.daemonContext.Err() != nil {
		return
	}
	// the transfer was stopped, or the node has moved and is reached in another way
	if errors.Is(n.Err, context.Canceled) {
		if p := t.loop.Node(n.Node); p != nil && t.transfers[n.Attempt] != nil {
			t.collectOutput(p, n.Attempt, n.Exited)
		}
		return
	}
	delete(t.transfers, n.Attempt)
	delete(t.outputFetches, n.Attempt)
	failpoint.Point(failpoint.ScheddAfterOutputCopied)
	status := n.Exited.GetStatus()
	switch file, bad := isNodeFault(n.Err); {
	case n.SpoolReason != nil && n.Err == nil:
		status = spooledStatus(status, n.SpoolReason)
	case bad:
		t.log.Warn("a node did not send the output that was asked for", "node", n.Node, "job", n.Attempt.Task.Job,
			"attempt", n.Attempt, "file", file, "error", n.Err)
		t.recordBadOutput(n.Attempt, badOutputStatus(status, n.Node, n.Err), now)
		return
	case n.Err != nil:
		t.log.Warn("output not stored", "attempt", n.Attempt, "error", n.Err)
		status = &wire.ExitStatus{Cause: wire.Cause_CAUSE_LAUNCH,
			Reason: "its output cannot be stored: " + n.Err.Error()}
	}
	if n.Err == nil && n.Stored != (queue.StoredOutput{}) {
		x := codec.QueueExit(status)
		x.Stored = n.Stored
		t.loop.RecordEndedWithRuntime(n.Attempt, x, status.GetOwnFiles(), x.Wall, now)
		return
	}
	t.loop.RecordEnded(n.Attempt, status, now)
}

// OutputFetch is the way home of one attempt's output.
type OutputFetch struct {
	*FileTransfers
	sandboxFiles
	Peer           *StartdNode
	Attempt        roost.AttemptID
	Exited         *wire.Exited
	diskLimit      roost.Bytes // that the job asked for; 0: none
	spoolReason    error       // why something is in the spool that was to go elsewhere
	waitedForSpool bool        // for room in the spool
	appended       [2]int64    // bytes of its streams that files have which it appends to

	logs *jobad.LogSpec // how much of the output is kept, of a service; nil: all

	// Of one try:
	stream   *pacedStream
	received []*userfiles.RemoteStage // what came, complete and checked, without its name
	stored   queue.StoredOutput       // what came, and is on the checkpoint server
}

// The names under which a startd gives captured streams.
const (
	capturedOut = "\x00stdout"
	capturedErr = "\x00stderr"
)

func (c *OutputFetch) isNeeded() bool {
	return !c.IsSecondary && (c.Exited.GetStdoutSize() > 0 || c.Exited.GetStderrSize() > 0 ||
		len(c.Exited.GetOutputs()) > 0 || c.scratch && (c.Out != "" || c.Err != "") || c.discardOnSuccess("oe"))
}

// wireError turns an error of the wire back into what it was; the agent's own are left as
// they are.
func (c *OutputFetch) wireError(err error) error {
	err = c.stream.stopCause(err)
	if _, stalled := errors.AsType[stalledError](err); stalled {
		return err
	}
	if errors.Is(err, roost.Unavailable) {
		c.users.DropAgent(c.UID, c.GID) // if it was the agent that has died, another is started
	}
	return rpc.FromStatus(err)
}

// storeStream puts one captured stream where it belongs: the file that the job names, or
// the spool.
func (c *OutputFetch) storeStream(ctx context.Context, stderr bool) error {
	size, target, suffix := c.Exited.GetStdoutSize(), c.Out, "o"
	if stderr {
		size, target, suffix = c.Exited.GetStderrSize(), c.Err, "e"
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
	if isStored(c.TaskProgram) {
		return c.spoolAndStore(ctx, stderr, from)
	}
	if target == "" {
		return c.spoolStream(stderr, from)
	}
	if c.Slurm != nil && c.Slurm.Append {
		err = c.appendFile(ctx, target, stderr, from)
	} else {
		err = c.writeFile(ctx, target, from)
	}
	if c.shouldSpool(ctx, err) {
		return c.spool(ctx, stderr, err)
	}
	return err
}

// writeFile writes a file with the rights of the job's owner, whole or not at all.
func (c *OutputFetch) writeFile(ctx context.Context, target string, from io.Reader) error {
	agent, err := c.users.Agent(c.UID, c.GID)
	if err != nil {
		return err
	}
	path := AbsolutePath(c.Iwd, target)
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
func (c *OutputFetch) fillFile(ctx context.Context, stage *userfiles.RemoteStage, name string, from io.Reader) error {
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
