package schedd

import (
	"context"
	"errors"
	"fmt"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/files"
	"github.com/roost-batch/roost/internal/plant"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/wire"
)

// What a node says of an attempt's output is a claim of its own. First the list is compared with what the job asked for, then what comes with the list; nothing
// has its name in the user's directory before all of it is there and was found to be right. A node of which something else came has spoiled the attempt.

// defaultOutput is how much the output of an attempt may be that asked for no disk.
const defaultOutput = 1 << 40

// run moves everything. The node keeps the output until it is acknowledged; where the spool has no room that is waited for, too.
func (c *collection) run(ctx context.Context) error {
	if err := c.announced(); err != nil {
		return err
	}
	return untilReached(ctx, func() error { return c.try(ctx) })
}

// try moves everything once.
func (c *collection) try(ctx context.Context) error {
	slot, err := c.slots.acquire(ctx, c.UID)
	if err != nil {
		return err
	}
	defer slot.release()
	pace, end := newPacedStream(ctx, slot)
	defer end()
	c.pace, c.ready = pace, nil
	defer func() {
		for _, stage := range c.ready {
			stage.Close()
		}
	}()
	if err := c.move(pace.ctx); err != nil {
		return pace.why(err)
	}
	for _, stage := range c.ready {
		if err := stage.Commit(pace.ctx); err != nil {
			return c.told(err)
		}
	}
	return nil
}

func (c *collection) move(ctx context.Context) error {
	if err := c.stream(ctx, false); err != nil {
		return err
	}
	if !c.Join {
		if err := c.stream(ctx, true); err != nil {
			return err
		}
	}
	if err := c.remove(ctx); err != nil {
		return err
	}
	list := c.wanted()
	if len(list) == 0 {
		return nil
	}
	agent, err := c.users.agent(c.UID, c.GID)
	if err != nil {
		return err
	}
	names := make([]string, 0, len(list))
	for _, e := range list {
		names = append(names, e.GetName())
	}
	from, err := c.peer.client.Fetch(ctx, &wire.FetchRequest{Schedd: c.node.Name, Attempt: ref(c.attempt), Names: names, Holes: true})
	if err != nil {
		return rpc.FromStatus(err)
	}
	stage, err := files.ReceiveStaged(ctx, c.pace.recv(from.Recv), agent, c.Iwd, c.manifest(list))
	if err != nil {
		return c.told(err)
	}
	c.ready = append(c.ready, stage)
	return nil
}

// announced compares what the node says it has with what the job asked for.
func (c *collection) announced() error {
	if plant.Is(plant.AnyOutput) {
		return nil
	}
	for name, n := range map[string][2]int64{
		"stdout": {c.exited.GetStdoutSize(), int64(len(c.exited.GetStdout()))}, "stderr": {c.exited.GetStderrSize(), int64(len(c.exited.GetStderr()))},
	} {
		if n[0] < n[1] {
			return &files.MismatchError{Name: name, Cause: fmt.Sprintf("%d bytes were announced, and %d came", n[0], n[1])}
		}
	}
	list := c.exited.GetOutputs()
	if !c.scratch && len(list) > 0 {
		return &files.MismatchError{Name: list[0].GetName(), Cause: "nobody has asked for it: the task ran where its files are"}
	}
	asked := files.Manifest{Asked: files.AtTop}
	if len(c.Outputs) > 0 {
		asked.Asked = files.Asked(c.Outputs)
	}
	if err := asked.Compare(list); err != nil {
		return err
	}
	most, sum := c.disk, roost.Bytes(0)
	if most == 0 {
		most = defaultOutput
	}
	for _, e := range list {
		if sum += stored(e); sum > most {
			return fmt.Errorf("%w: its files have more than the %v of disk that it may use; %.200q alone has %v", roost.Exhausted, most, e.GetName(), stored(e))
		}
	}
	return nil
}

// stored is how many bytes of a file are no hole, as far as the node has said.
func stored(e *wire.FileEntry) roost.Bytes {
	if e.Stored == nil || e.GetStored() < 0 {
		return roost.Bytes(e.GetSize())
	}
	return roost.Bytes(min(e.GetStored(), e.GetSize()))
}

// wanted are the files to be fetched. Where the job has named none, hidden ones stay behind: a node of the last version lists them, too.
func (c *collection) wanted() (list []*wire.FileEntry) {
	for _, e := range c.exited.GetOutputs() {
		if len(c.Outputs) > 0 || !files.Hidden(e.GetName()) {
			list = append(list, e)
		}
	}
	return list
}

// manifest is what is to come of a list that was found to be right.
func (c *collection) manifest(list []*wire.FileEntry) *files.Manifest {
	if plant.Is(plant.AnyOutput) {
		return &files.Manifest{}
	}
	return &files.Manifest{Entries: list}
}

// standstillError says that a node has let a transfer stand still too often.
type standstillError struct{ stalledError }

func (e standstillError) Error() string {
	return fmt.Sprintf("%v, %d times", e.stalledError, maxStalls)
}

// faultOfNode reports whether it is the node's fault that there is no output, and at which file it was found.
func faultOfNode(err error) (file string, ok bool) {
	if wrong, ok := errors.AsType[*files.MismatchError](err); ok {
		return wrong.Name, true
	}
	_, ok = errors.AsType[standstillError](err)
	return "", ok
}

// spoiledStatus is how an attempt ended of which something else came than what was asked for: whatever the node says, nobody knows.
func spoiledStatus(status *wire.ExitStatus, node string, err error) *wire.ExitStatus {
	status = proto.CloneOf(status)
	if status == nil {
		status = &wire.ExitStatus{}
	}
	status.Cause, status.Code, status.Signal, status.Core = wire.Cause_CAUSE_MACHINE, 0, 0, false
	status.Reason = fmt.Sprintf("node %s did not send the output that was asked for: %v", node, err)
	return status
}

// finishSpoiled is finish for an attempt of which its node has told what is not so. How long it ran is nothing that speaks for the node.
func (s *Schedd) finishSpoiled(a roost.AttemptID, status *wire.ExitStatus, now time.Time) {
	s.finishAs(a, exitStatus(status), false, 0, now)
}

// leaveOutput ends, for a task that was removed, what is on its way home of an attempt that has ended. Nobody waits for that any more.
func (s *Schedd) leaveOutput(a roost.AttemptID) {
	if !s.queue.Removing(a) {
		return
	}
	c, pl := s.collections[a], s.pulls[a]
	switch {
	case c != nil:
		s.outside.again(func(now time.Time) {
			if s.collections[a] == c {
				s.stopTransfer(a)
				s.finish(a, leftStatus(c.exited.GetStatus()), now)
			}
		})
	case pl != nil && pl.exited != nil:
		s.outside.again(func(now time.Time) {
			if s.pulls[a] == pl {
				s.stopPull(a)
				s.finish(a, leftStatus(pl.exited.GetStatus()), now)
			}
		})
	default:
		s.stopTransfer(a) // of its input
	}
}

// leftStatus is how an attempt ended whose output was left behind.
func leftStatus(status *wire.ExitStatus) *wire.ExitStatus {
	status = proto.CloneOf(status)
	if status == nil {
		status = &wire.ExitStatus{}
	}
	status.Cause, status.Reason = wire.Cause_CAUSE_REMOVED, "it was removed while its output was on its way"
	return status
}
