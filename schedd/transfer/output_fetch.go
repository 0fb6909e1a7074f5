package transfer

import (
	"context"
	"errors"
	"fmt"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/mutant"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/userfiles"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/schedd/codec"
	"github.com/roost-batch/roost/schedd/queue"
)

// What a node says of an attempt's output is a claim of its own. First the list is
// compared with what the job asked for, then what comes with the list; nothing has its
// name in the user's directory before all of it is there and was found to be right. A
// node of which something else came has spoiled the attempt.

// defaultOutput is how much the output of an attempt may be that asked for no disk.
const defaultOutput = 1 << 40

// fetchAll moves everything. The node keeps the output until it is acknowledged; where
// the spool has no room that is waited for, too.
func (c *OutputFetch) fetchAll(ctx context.Context) error {
	if err := c.CheckManifest(); err != nil {
		return err
	}
	if err := retryUntilReachable(ctx, func() error { return c.tryFetch(ctx) }); err != nil {
		return err
	}
	return c.storeObjects(ctx)
}

// tryFetch moves everything once.
func (c *OutputFetch) tryFetch(ctx context.Context) error {
	progress, done := c.progress.begin(c.Attempt, outputTransfer, c.outputSize())
	defer done()
	slot, err := c.slots.acquire(ctx, c.UID)
	if err != nil {
		return err
	}
	defer slot.release()
	pace, end := newPacedStream(ctx, slot)
	defer end()
	c.stream, c.received, c.stored, pace.progress = pace, nil, queue.StoredOutput{}, progress
	defer func() {
		for _, stage := range c.received {
			stage.Close()
		}
	}()
	if err := c.transferFiles(pace.ctx); err != nil {
		return pace.stopCause(err)
	}
	for _, stage := range c.received {
		if err := stage.Commit(pace.ctx); err != nil {
			return c.wireError(err)
		}
	}
	return nil
}

func (c *OutputFetch) transferFiles(ctx context.Context) error {
	if err := c.storeStream(ctx, false); err != nil {
		return err
	}
	if !c.JoinErr {
		if err := c.storeStream(ctx, true); err != nil {
			return err
		}
	}
	if err := c.removeUnwanted(ctx); err != nil {
		return err
	}
	list := c.requestedFiles()
	if len(list) == 0 {
		return nil
	}
	names := make([]string, 0, len(list))
	for _, e := range list {
		names = append(names, e.GetName())
	}
	from, err := c.Peer.Client.Fetch(ctx,
		&wire.FetchRequest{Schedd: c.host, Attempt: codec.AttemptRef(c.Attempt), Names: names, Holes: true})
	if err != nil {
		return rpc.FromStatus(err)
	}
	if isStored(c.TaskProgram) {
		return c.storeFiles(ctx, c.stream.receivePaced(from.Recv), list)
	}
	agent, err := c.users.Agent(c.UID, c.GID)
	if err != nil {
		return err
	}
	stage, err := userfiles.ReceiveStaged(ctx, c.stream.receivePaced(from.Recv), agent, c.Iwd, c.expectedFiles(list))
	if err != nil {
		return c.wireError(err)
	}
	c.received = append(c.received, stage)
	return nil
}

// CheckManifest compares what the node says it has with what the job asked for.
func (c *OutputFetch) CheckManifest() error {
	if mutant.Active(mutant.OutputUnchecked) {
		return nil
	}
	for name, n := range map[string][2]int64{
		"stdout": {c.Exited.GetStdoutSize(), int64(len(c.Exited.GetStdout()))},
		"stderr": {c.Exited.GetStderrSize(), int64(len(c.Exited.GetStderr()))},
	} {
		if n[0] < n[1] {
			return &userfiles.MismatchError{Name: name,
				Cause: fmt.Sprintf("%d bytes were announced, and %d came", n[0], n[1])}
		}
	}
	list := c.Exited.GetOutputs()
	if !c.scratch && len(list) > 0 {
		return &userfiles.MismatchError{Name: list[0].GetName(),
			Cause: "nobody has asked for it: the task ran where its files are"}
	}
	asked := userfiles.TransferManifest{IsAsked: userfiles.TopLevelFilter}
	if len(c.Outputs) > 0 {
		asked.IsAsked = userfiles.AskedFilter(c.Outputs)
	}
	if err := asked.Compare(list); err != nil {
		return err
	}
	most, sum := c.diskLimit, roost.Bytes(0)
	if most == 0 {
		most = defaultOutput
	}
	for _, e := range list {
		if sum += allocatedBytes(e); sum > most {
			return fmt.Errorf("%w: its files have more than the %v of disk that it may use; %.200q alone has %v",
				roost.Exhausted, most, e.GetName(), allocatedBytes(e))
		}
	}
	return nil
}

// allocatedBytes is how many bytes of a file are no hole, as far as the node has said.
func allocatedBytes(e *wire.FileEntry) roost.Bytes {
	if e.Stored == nil || e.GetStored() < 0 {
		return roost.Bytes(e.GetSize())
	}
	return roost.Bytes(min(e.GetStored(), e.GetSize()))
}

// requestedFiles are the files to be fetched. Where the job has named none, hidden ones
// stay behind: a node of the last version lists them, too.
func (c *OutputFetch) requestedFiles() (list []*wire.FileEntry) {
	for _, e := range c.Exited.GetOutputs() {
		if isObjectEntry(e) && len(c.objectOutputs) > 0 {
			continue
		}
		if len(c.Outputs) > 0 || !userfiles.IsHidden(e.GetName()) {
			list = append(list, e)
		}
	}
	return list
}

// expectedFiles is what is to come of a list that was found to be right.
func (c *OutputFetch) expectedFiles(list []*wire.FileEntry) *userfiles.TransferManifest {
	if mutant.Active(mutant.OutputUnchecked) {
		return &userfiles.TransferManifest{}
	}
	return &userfiles.TransferManifest{Entries: list}
}

// repeatedStallError says that a node has let a transfer stand still too often.
type repeatedStallError struct{ stalledError }

func (e repeatedStallError) Error() string {
	return fmt.Sprintf("%v, %d times", e.stalledError, maxStalls)
}

// isNodeFault reports whether it is the node's fault that there is no output, and at
// which file it was found.
func isNodeFault(err error) (file string, ok bool) {
	if wrong, ok := errors.AsType[*userfiles.MismatchError](err); ok {
		return wrong.Name, true
	}
	_, ok = errors.AsType[repeatedStallError](err)
	return "", ok
}

// badOutputStatus is the exit status of an attempt whose node sent other output than was
// requested. The outcome is unknown, whatever the node says.
func badOutputStatus(status *wire.ExitStatus, node string, err error) *wire.ExitStatus {
	status = proto.CloneOf(status)
	if status == nil {
		status = &wire.ExitStatus{}
	}
	status.Cause, status.Code, status.Signal, status.Core = wire.Cause_CAUSE_MACHINE, 0, 0, false
	status.Reason = fmt.Sprintf("node %s did not send the output that was asked for: %v", node, err)
	return status
}

// recordBadOutput is finish for an attempt of which its node has told what is not so. How
// long it ran is nothing that speaks for the node.
func (t *FileTransfers) recordBadOutput(a roost.AttemptID, status *wire.ExitStatus, now time.Time) {
	t.loop.RecordEndedWithRuntime(a, codec.QueueExit(status), false, 0, now)
}

// AbandonOutput ends, for a task that was removed, what is on its way home of an attempt
// that has ended. Nobody waits for that any more.
func (t *FileTransfers) AbandonOutput(a roost.AttemptID) {
	if !t.queue.IsRemoving(a) {
		return
	}
	c, pl := t.outputFetches[a], t.imageFetches[a]
	switch {
	case c != nil:
		t.loop.PostLater(func(now time.Time) {
			if t.outputFetches[a] == c {
				t.StopTransfer(a)
				t.loop.RecordEnded(a, abandonedStatus(c.Exited.GetStatus()), now)
			}
		})
	case pl != nil && pl.exit != nil:
		t.loop.PostLater(func(now time.Time) {
			if t.imageFetches[a] == pl {
				t.cancelImageFetch(a)
				t.loop.RecordEnded(a, abandonedStatus(pl.exit.GetStatus()), now)
			}
		})
	default:
		t.StopTransfer(a) // of its input
	}
}

// abandonedStatus is how an attempt ended whose output was left behind.
func abandonedStatus(status *wire.ExitStatus) *wire.ExitStatus {
	status = proto.CloneOf(status)
	if status == nil {
		status = &wire.ExitStatus{}
	}
	status.Cause, status.Reason = wire.Cause_CAUSE_REMOVED, "it was removed while its output was on its way"
	return status
}

// FetchOutputThenFinish brings the output of an attempt home that has ended, and then
// records its end.
func (t *FileTransfers) FetchOutputThenFinish(p *StartdNode, a roost.AttemptID, e *wire.Exited, now time.Time) {
	if t.collectOutput(p, a, e) && !mutant.Active(mutant.EndBeforeOutput) {
		return // OutputStored follows
	}
	t.loop.RecordEnded(a, e.GetStatus(), now)
}
