package transfer

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"google.golang.org/grpc"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/checkpoint/store"
	"github.com/roost-batch/roost/internal/identity/peer"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/schedd/codec"
	"github.com/roost-batch/roost/schedd/queue"
)

// A checkpoint comes home like this: the node says that it has taken one; the schedd
// fetches the image into its spool; when it lies there whole, that is recorded; when that
// is on disk, the node is told that it need not keep it. An image that nobody will go on
// from any more is deleted when that is on disk. So what the log names is there, and what
// a crash leaves lying about is swept away at the next start.
//
// An attempt that has ended is not recorded as ended while an image of it is on its way:
// the next one is to go on from that.

// ImageStored tells the loop what became of an image on its way home.
type ImageStored struct {
	node    string
	attempt roost.AttemptID
	pull    *imageFetch
	err     error
}

// imageFetch is an image on its way home.
type imageFetch struct {
	checkpoint *wire.CheckpointTaken
	next       *wire.CheckpointTaken // a newer one that waits for it
	cancel     context.CancelFunc
	exit       *wire.Exited // the end of the attempt, which waits for it
}

// maxImages bounds how many images are on their way at once. They are large, and outputs
// are not to wait for them. The slots are shared among users, as those of files are.
const maxImages = 4

// OpenImages opens the spool of images and sweeps away what the log does not name.
func (t *FileTransfers) OpenImages() (err error) {
	if t.images, err = store.Open(filepath.Join(t.stateDir, "checkpoints"), 0); err != nil {
		return err
	}
	named := make(map[store.ImageKey]bool)
	t.queue.EachImage(func(m queue.StoredImage) { named[imageKey(m.Task, m.Attempt, m.Sequence)] = true })
	n, err := t.images.Sweep(func(k store.ImageKey) bool { return named[k] })
	if n > 0 {
		t.log.Info("checkpoints that nobody wants were deleted", "count", n)
	}
	return err
}

func imageKey(t roost.TaskID, a roost.AttemptNumber, sequence uint64) store.ImageKey {
	return store.ImageKey{Job: t.Job.Seq, Index: t.Index, Attempt: a, Sequence: sequence}
}

// OnCheckpointTaken takes in a node's word on a checkpoint.
func (t *FileTransfers) OnCheckpointTaken(p *StartdNode, m *wire.CheckpointTaken, now time.Time) {
	a := codec.AttemptID(t.host, m.GetAttempt())
	image := m.GetImage()
	sequence := image.GetSequence()
	if !t.dispatch.HasAttempt(p.Name, a) && t.queue.IsLive(a) {
		t.log.Warn("a node speaks of a checkpoint of a task that it does not have", "node", p.Name, "attempt", a)
		return
	}
	switch {
	case !t.queue.IsLive(a):
		t.deleteServerImage(a, m)
		t.sendImageResult(p.Name, a, sequence, "the attempt is over")
	case m.GetError() != "":
		t.recordImageLost(a, m, m.GetError(), now)
	case roost.AttemptNumber(image.GetAttempt()) != a.Attempt:
		t.recordImageLost(a, m, "the node says that it is of another attempt", now)
		t.sendImageResult(p.Name, a, sequence, "it is of another attempt")
	case t.queue.HasCheckpoint(a.Task, sequence): // said again, because the node did not hear that it is
		t.sendImageResult(p.Name, a, sequence, "")
	case image.GetServer() != "" && !queue.SavesTogether(t.queue, a.Task):
		t.recordImage(p.Name, a, m, now)
	case t.imageFetches[a] == nil:
		t.startImageFetch(p, a, m)
	case t.imageFetches[a].checkpoint.GetImage().GetSequence() < sequence:
		if old := t.imageFetches[a].next; old != nil {
			t.sendImageResult(p.Name, a, old.GetImage().GetSequence(), "there is a newer one")
		}
		t.imageFetches[a].next = m
	}
}

// startImageFetch begins to fetch an image.
func (t *FileTransfers) startImageFetch(p *StartdNode, a roost.AttemptID, m *wire.CheckpointTaken) {
	ctx, cancel := context.WithCancel(t.daemonContext)
	pl := &imageFetch{checkpoint: m, cancel: cancel}
	t.imageFetches[a] = pl
	var uid uint32
	if r, ok := t.queue.RequestOf(a.Task); ok {
		uid = r.UID
	}
	go func() {
		defer cancel()
		fetch := func() error { return t.fetchImage(ctx, p, a, uid, m.GetImage()) }
		if m.GetImage().GetServer() != "" {
			limited, end := context.WithTimeout(ctx, serverImageTimeout)
			defer end()
			fetch = func() error { return confirmServerImage(limited, t, a, m.GetImage()) }
		}
		err := retryUntilReachable(ctx, fetch)
		t.loop.PostEvent(t.daemonContext, ImageStored{p.Name, a, pl, err})
	}()
}

// serverImageTimeout bounds how long a schedd asks a checkpoint server for an image.
const serverImageTimeout = 5 * time.Minute

// confirmServerImage asks a checkpoint server whether it has the image of a task of a
// gang. The word of the task's node is not enough: with the last image of a gang the
// epoch before is deleted. A server has an image as a whole or not at all.
func confirmServerImage(ctx context.Context, t *FileTransfers, a roost.AttemptID, m *wire.Image) error {
	conn, err := rpc.Dial(m.GetServer(), t.identity, peer.CheckpointServer)
	if err != nil {
		return err
	}
	defer conn.Close()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	from, err := wire.NewCheckpointServerClient(conn).Get(ctx, &wire.FetchImageRequest{Schedd: t.host,
		Attempt: codec.AttemptRef(a), Sequence: m.GetSequence()})
	if err == nil {
		_, err = from.Recv()
	}
	if err = rpc.FromStatus(err); ctx.Err() != nil {
		return fmt.Errorf("%s did not confirm it: %w", m.GetServer(), roost.NoInput)
	}
	return err
}

// cancelImageFetch gives up an image on its way; ImageStored follows, with
// context.Canceled.
func (t *FileTransfers) cancelImageFetch(a roost.AttemptID) {
	if pl := t.imageFetches[a]; pl != nil {
		pl.cancel()
		delete(t.imageFetches, a)
	}
}

// fetchImage tries once to bring an image home. A try has a slot; between two nothing is
// held, so that nodes which are away keep nobody waiting.
func (t *FileTransfers) fetchImage(ctx context.Context, p *StartdNode, a roost.AttemptID, uid uint32,
	m *wire.Image) error {
	progress, done := t.progress.begin(a, checkpointTransfer, m.GetSize())
	defer done()
	slot, err := t.imageSlots.acquire(ctx, uid)
	if err != nil {
		return err
	}
	defer slot.release()
	pace, end := newPacedStream(ctx, slot)
	defer end()
	pace.progress = progress
	from, err := p.Client.FetchImage(pace.ctx,
		&wire.FetchImageRequest{Schedd: t.host, Attempt: codec.AttemptRef(a), Sequence: m.GetSequence()})
	if err != nil {
		return rpc.FromStatus(err)
	}
	return pace.stopCause(t.images.Receive(imageKey(a.Task, a.Attempt, m.GetSequence()), m.GetSize(),
		pace.receivePaced(chunkStream(from))))
}

// chunkStream receives chunks, and turns errors of the wire back into what they were.
func chunkStream(from grpc.ServerStreamingClient[wire.FileChunk]) func() (*wire.FileChunk, error) {
	return func() (*wire.FileChunk, error) {
		chunk, err := from.Recv()
		if err != nil {
			err = rpc.FromStatus(err)
		}
		return chunk, err
	}
}

// OnImageStored records an image that has come home, or says why it never will.
func (t *FileTransfers) OnImageStored(n ImageStored, now time.Time) {
	pl := n.pull
	if t.imageFetches[n.attempt] != pl { // it was given up
		if n.err == nil {
			t.deleteUnrecordedImage(n.attempt, pl.checkpoint)
		}
		return
	}
	delete(t.imageFetches, n.attempt)
	p := t.loop.Node(n.node)
	switch {
	// the node has moved, and is reached in another way
	case errors.Is(n.err, context.Canceled) && p != nil && t.queue.IsLive(n.attempt) && t.daemonContext.Err() == nil:
		t.startImageFetch(p, n.attempt, pl.checkpoint)
		t.imageFetches[n.attempt].next, t.imageFetches[n.attempt].exit = pl.next, pl.exit
		return
	case n.err == nil:
		t.recordImage(n.node, n.attempt, pl.checkpoint, now)
	default:
		t.log.Warn("checkpoint not kept", "attempt", n.attempt, "node", n.node, "error", n.err)
		t.recordImageLost(n.attempt, pl.checkpoint, "it cannot be kept: "+n.err.Error(), now)
		t.sendImageResult(n.node, n.attempt, pl.checkpoint.GetImage().GetSequence(), n.err.Error())
	}
	if pl.next != nil && p != nil {
		t.OnCheckpointTaken(p, pl.next, now)
		if again := t.imageFetches[n.attempt]; again != nil {
			again.exit = pl.exit
			return
		}
	}
	if pl.exit != nil && t.queue.IsLive(n.attempt) && p != nil {
		t.FetchOutputThenFinish(p, n.attempt, pl.exit, now)
	}
}

// recordImage records an image that is safe. The word to the node rides on the same
// batch.
func (t *FileTransfers) recordImage(node string, a roost.AttemptID, m *wire.CheckpointTaken, now time.Time) {
	image := codec.QueueImage(m.GetImage())
	image.Frozen = m.GetFrozenNs()
	image.Node = node // whatever it says: who has made it is what its session says
	e, err := t.queue.RecordCheckpoint(now, a, image)
	if err != nil {
		t.deleteUnrecordedImage(a, m)
		t.sendImageResult(node, a, image.Sequence, err.Error())
		return
	}
	t.loop.CommitEvents(e)
	t.sendImageResult(node, a, image.Sequence, "")
}

// deleteUnrecordedImage deletes an image that came home and was not recorded.
func (t *FileTransfers) deleteUnrecordedImage(a roost.AttemptID, m *wire.CheckpointTaken) {
	image := codec.QueueImage(m.GetImage())
	image.Attempt = a.Attempt
	t.deleteImage(queue.StoredImage{Task: a.Task, CheckpointImage: image})
}

// recordImageLost records that there will be no image of a checkpoint.
func (t *FileTransfers) recordImageLost(a roost.AttemptID, m *wire.CheckpointTaken, why string, now time.Time) {
	if e, ok := t.queue.RecordCheckpointFailure(now, a, why, m.GetReason() == CheckpointRequested); ok {
		t.loop.CommitEvents(e)
	}
}

// CheckpointRequested is the reason of a checkpoint that a user wanted.
const CheckpointRequested = "asked"

// sendImageResult tells a node what became of an image.
func (t *FileTransfers) sendImageResult(node string, a roost.AttemptID, sequence uint64, why string) {
	t.loop.SendTo(node, &wire.ToStartd{Of: &wire.ToStartd_Kept{Kept: &wire.CheckpointKept{Attempt: codec.AttemptRef(a),
		Sequence: sequence, Error: why}}})
}

// EndWaitsForImage reports whether the end of an attempt has to wait for an image on its
// way. A task that has succeeded needs none.
func (t *FileTransfers) EndWaitsForImage(p *StartdNode, a roost.AttemptID, e *wire.Exited, now time.Time) bool {
	if queue.WithSuccessCode(t.queue, a, codec.QueueExit(e.GetStatus())).IsSuccess() {
		t.cancelImageFetch(a)
		t.deleteServerImage(a, e.GetUnkept())
		return false
	}
	if m := e.GetUnkept(); m != nil && m.GetError() == "" {
		t.OnCheckpointTaken(p, m, now)
	}
	if pl := t.imageFetches[a]; pl != nil {
		pl.exit = e
		return true
	}
	return false
}

// deleteServerImage deletes an image that a checkpoint server has and that was not
// recorded. One on a node goes there by itself.
func (t *FileTransfers) deleteServerImage(a roost.AttemptID, m *wire.CheckpointTaken) {
	if image := m.GetImage(); image.GetServer() != "" && !t.queue.HasCheckpoint(a.Task, image.GetSequence()) {
		t.deleteUnrecordedImage(a, m)
	}
}

// RemoveUnusedImages deletes the images that no attempt goes on from any more, when that
// is on disk.
func (t *FileTransfers) RemoveUnusedImages() {
	dropped := t.queue.TakeDroppedImages()
	if len(dropped) == 0 {
		return
	}
	t.loop.AfterCommit(func() {
		for _, m := range dropped {
			t.deleteImage(m)
		}
	})
}

// deleteImage deletes one image, wherever it is.
func (t *FileTransfers) deleteImage(m queue.StoredImage) {
	if m.Server != "" {
		t.enqueueImageRemoval(m.Server, &wire.FetchImageRequest{
			Schedd: t.host, Attempt: codec.AttemptRef(roost.AttemptID{Task: m.Task, Attempt: m.Attempt}),
			Sequence: m.Sequence,
		})
		return
	}
	if _, err := t.images.Remove(imageKey(m.Task, m.Attempt, m.Sequence)); err != nil {
		t.log.Warn("checkpoint not deleted", "task", m.Task, "error", err)
	}
}

// sendImage sends the image that an attempt goes on from to its node.
func (t *FileTransfers) sendImage(ctx context.Context, p *StartdNode, a roost.AttemptID, uid uint32,
	m *queue.CheckpointImage) error {
	progress, done := t.progress.begin(a, restoreTransfer, m.Size)
	defer done()
	slot, err := t.imageSlots.acquire(ctx, uid)
	if err != nil {
		return err
	}
	defer slot.release()
	pace, end := newPacedStream(ctx, slot) // one that is broken off must not keep the attempt there
	defer end()
	pace.progress = progress
	key := imageKey(a.Task, m.Attempt, m.Sequence)
	if size, err := t.images.Size(key); err != nil {
		return badImageError{m.Sequence, err.Error()}
	} else if size != m.Size {
		return badImageError{m.Sequence, fmt.Sprintf("it is not as it was kept: it has %d bytes, and had %d",
			size, m.Size)}
	}
	put, err := p.Client.PutImage(pace.ctx)
	if err != nil {
		return rpc.FromStatus(err)
	}
	err = put.Send(&wire.FileChunk{Schedd: t.host, Attempt: codec.AttemptRef(a)})
	if err == nil {
		err = t.images.Send(key, pace.sendPaced(put.Send))
	}
	if err != nil && rpc.KindOf(err) == roost.NotFound {
		return badImageError{m.Sequence, err.Error()}
	}
	_, err = put.CloseAndRecv() // it tells also why sending ended
	if err = pace.stopCause(rpc.FromStatus(err)); errors.Is(err, roost.Exhausted) {
		// the node has no room for it: that bound is the machine't, and none that the job
		// is beyond
		return fmt.Errorf("%w: %v", roost.NoOutput, err)
	}
	return err
}

// badImageError is an image that was kept and cannot be used.
type badImageError struct {
	sequence uint64
	reason   string
}

func (e badImageError) Error() string {
	return fmt.Sprintf("checkpoint %d cannot be used: %s", e.sequence, e.reason)
}

// dropBadImage drops an image that was kept and cannot be sent. The attempt is given up,
// and the next one goes on from the image before.
func (t *FileTransfers) dropBadImage(n InputSent, bad badImageError, now time.Time) {
	t.log.Error("a kept checkpoint cannot be used", "attempt", n.attempt, "checkpoint", bad.sequence, "error",
		bad.reason)
	if e, ok := t.queue.RejectCheckpoint(now, n.attempt.Task, bad.sequence, bad.reason); ok {
		t.loop.CommitEvents(e)
	}
	t.loop.SendTo(n.node, &wire.ToStartd{Of: &wire.ToStartd_Vacate{Vacate: &wire.Vacate{
		Attempt: codec.AttemptRef(n.attempt), Cause: wire.Cause_CAUSE_VACATED, Fast: true, Reason: bad.Error(),
	}}})
}
