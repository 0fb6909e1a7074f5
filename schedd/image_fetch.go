package schedd

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"google.golang.org/grpc"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/checkpoint/store"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/wire"
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

// imageStored tells the loop what became of an image on its way home.
type imageStored struct {
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

// openImages opens the spool of images and sweeps away what the log does not name.
func (s *Schedd) openImages() (err error) {
	if s.images, err = store.Open(filepath.Join(s.stateDir(), "checkpoints"), 0); err != nil {
		return err
	}
	named := make(map[store.ImageKey]bool)
	s.queue.EachImage(func(m queue.StoredImage) { named[imageKey(m.Task, m.Attempt, m.Sequence)] = true })
	n, err := s.images.Sweep(func(k store.ImageKey) bool { return named[k] })
	if n > 0 {
		s.log.Info("checkpoints that nobody wants were deleted", "count", n)
	}
	return err
}

func imageKey(t roost.TaskID, a roost.AttemptNumber, sequence uint64) store.ImageKey {
	return store.ImageKey{Job: t.Job.Seq, Index: t.Index, Attempt: a, Sequence: sequence}
}

// onCheckpointTaken takes in a node's word on a checkpoint.
func (s *Schedd) onCheckpointTaken(p *nodeConn, m *wire.CheckpointTaken, now time.Time) {
	a := s.attemptID(m.GetAttempt())
	image := m.GetImage()
	sequence := image.GetSequence()
	if !s.dispatch.HasAttempt(p.name, a) && s.queue.IsLive(a) {
		s.log.Warn("a node speaks of a checkpoint of a task that it does not have", "node", p.name, "attempt", a)
		return
	}
	switch {
	case !s.queue.IsLive(a):
		s.deleteServerImage(a, m)
		s.sendImageResult(p.name, a, sequence, "the attempt is over")
	case m.GetError() != "":
		s.recordImageLost(a, m, m.GetError(), now)
	case roost.AttemptNumber(image.GetAttempt()) != a.Attempt:
		s.recordImageLost(a, m, "the node says that it is of another attempt", now)
		s.sendImageResult(p.name, a, sequence, "it is of another attempt")
	case s.queue.HasCheckpoint(a.Task, sequence): // said again, because the node did not hear that it is
		s.sendImageResult(p.name, a, sequence, "")
	case image.GetServer() != "":
		s.recordImage(p.name, a, m, now)
	case s.imageFetches[a] == nil:
		s.startImageFetch(p, a, m)
	case s.imageFetches[a].checkpoint.GetImage().GetSequence() < sequence:
		if old := s.imageFetches[a].next; old != nil {
			s.sendImageResult(p.name, a, old.GetImage().GetSequence(), "there is a newer one")
		}
		s.imageFetches[a].next = m
	}
}

// startImageFetch begins to fetch an image.
func (s *Schedd) startImageFetch(p *nodeConn, a roost.AttemptID, m *wire.CheckpointTaken) {
	ctx, cancel := context.WithCancel(s.daemonContext)
	pl := &imageFetch{checkpoint: m, cancel: cancel}
	s.imageFetches[a] = pl
	var uid uint32
	if r, ok := s.queue.RequestOf(a.Task); ok {
		uid = r.UID
	}
	go func() {
		defer cancel()
		err := retryUntilReachable(ctx, func() error { return s.fetchImage(ctx, p, a, uid, m.GetImage()) })
		s.postEvent(s.daemonContext, imageStored{p.name, a, pl, err})
	}()
}

// cancelImageFetch gives up an image on its way; imageStored follows, with
// context.Canceled.
func (s *Schedd) cancelImageFetch(a roost.AttemptID) {
	if pl := s.imageFetches[a]; pl != nil {
		pl.cancel()
		delete(s.imageFetches, a)
	}
}

// fetchImage tries once to bring an image home. A try has a slot; between two nothing is
// held, so that nodes which are away keep nobody waiting.
func (s *Schedd) fetchImage(ctx context.Context, p *nodeConn, a roost.AttemptID, uid uint32, m *wire.Image) error {
	slot, err := s.imageSlots.acquire(ctx, uid)
	if err != nil {
		return err
	}
	defer slot.release()
	pace, end := newPacedStream(ctx, slot)
	defer end()
	from, err := p.client.FetchImage(pace.ctx,
		&wire.FetchImageRequest{Schedd: s.node.Name, Attempt: attemptRef(a), Sequence: m.GetSequence()})
	if err != nil {
		return rpc.FromStatus(err)
	}
	return pace.stopCause(s.images.Receive(imageKey(a.Task, a.Attempt, m.GetSequence()), m.GetSize(),
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

// onImageStored records an image that has come home, or says why it never will.
func (s *Schedd) onImageStored(n imageStored, now time.Time) {
	pl := n.pull
	if s.imageFetches[n.attempt] != pl { // it was given up
		if n.err == nil {
			s.deleteUnrecordedImage(n.attempt, pl.checkpoint)
		}
		return
	}
	delete(s.imageFetches, n.attempt)
	p := s.peers[n.node]
	switch {
	// the node has moved, and is reached in another way
	case errors.Is(n.err, context.Canceled) && p != nil && s.queue.IsLive(n.attempt) && s.daemonContext.Err() == nil:
		s.startImageFetch(p, n.attempt, pl.checkpoint)
		s.imageFetches[n.attempt].next, s.imageFetches[n.attempt].exit = pl.next, pl.exit
		return
	case n.err == nil:
		s.recordImage(n.node, n.attempt, pl.checkpoint, now)
	default:
		s.log.Warn("checkpoint not kept", "attempt", n.attempt, "node", n.node, "error", n.err)
		s.recordImageLost(n.attempt, pl.checkpoint, "it cannot be kept: "+n.err.Error(), now)
		s.sendImageResult(n.node, n.attempt, pl.checkpoint.GetImage().GetSequence(), n.err.Error())
	}
	if pl.next != nil && p != nil {
		s.onCheckpointTaken(p, pl.next, now)
		if again := s.imageFetches[n.attempt]; again != nil {
			again.exit = pl.exit
			return
		}
	}
	if pl.exit != nil && s.queue.IsLive(n.attempt) && p != nil {
		s.fetchOutputThenFinish(p, n.attempt, pl.exit, now)
	}
}

// recordImage records an image that is safe. The word to the node rides on the same
// batch.
func (s *Schedd) recordImage(node string, a roost.AttemptID, m *wire.CheckpointTaken, now time.Time) {
	image := queueImage(m.GetImage())
	image.Frozen = m.GetFrozenNs()
	image.Node = node // whatever it says: who has made it is what its session says
	e, err := s.queue.RecordCheckpoint(now, a, image)
	if err != nil {
		s.deleteUnrecordedImage(a, m)
		s.sendImageResult(node, a, image.Sequence, err.Error())
		return
	}
	s.commitEvents(e)
	s.sendImageResult(node, a, image.Sequence, "")
}

// deleteUnrecordedImage deletes an image that came home and was not recorded.
func (s *Schedd) deleteUnrecordedImage(a roost.AttemptID, m *wire.CheckpointTaken) {
	image := queueImage(m.GetImage())
	image.Attempt = a.Attempt
	s.deleteImage(queue.StoredImage{Task: a.Task, CheckpointImage: image})
}

// recordImageLost records that there will be no image of a checkpoint.
func (s *Schedd) recordImageLost(a roost.AttemptID, m *wire.CheckpointTaken, why string, now time.Time) {
	if e, ok := s.queue.RecordCheckpointFailure(now, a, why, m.GetReason() == checkpointRequested); ok {
		s.commitEvents(e)
	}
}

// checkpointRequested is the reason of a checkpoint that a user wanted.
const checkpointRequested = "asked"

// sendImageResult tells a node what became of an image.
func (s *Schedd) sendImageResult(node string, a roost.AttemptID, sequence uint64, why string) {
	s.sendTo(node, &wire.ToStartd{Of: &wire.ToStartd_Kept{Kept: &wire.CheckpointKept{Attempt: attemptRef(a),
		Sequence: sequence, Error: why}}})
}

// endWaitsForImage reports whether the end of an attempt has to wait for an image on its
// way. A task that has succeeded needs none.
func (s *Schedd) endWaitsForImage(p *nodeConn, a roost.AttemptID, e *wire.Exited, now time.Time) bool {
	if exitStatus(e.GetStatus()).IsSuccess() {
		s.cancelImageFetch(a)
		s.deleteServerImage(a, e.GetUnkept())
		return false
	}
	if m := e.GetUnkept(); m != nil && m.GetError() == "" {
		s.onCheckpointTaken(p, m, now)
	}
	if pl := s.imageFetches[a]; pl != nil {
		pl.exit = e
		return true
	}
	return false
}

// deleteServerImage deletes an image that a checkpoint server has and that was not
// recorded. One on a node goes there by itself.
func (s *Schedd) deleteServerImage(a roost.AttemptID, m *wire.CheckpointTaken) {
	if image := m.GetImage(); image.GetServer() != "" && !s.queue.HasCheckpoint(a.Task, image.GetSequence()) {
		s.deleteUnrecordedImage(a, m)
	}
}

// removeUnusedImages deletes the images that no attempt goes on from any more, when that
// is on disk.
func (s *Schedd) removeUnusedImages() {
	dropped := s.queue.TakeDroppedImages()
	if len(dropped) == 0 {
		return
	}
	s.afterCommit(func() {
		for _, m := range dropped {
			s.deleteImage(m)
		}
	})
}

// deleteImage deletes one image, wherever it is.
func (s *Schedd) deleteImage(m queue.StoredImage) {
	if m.Server != "" {
		s.enqueueImageRemoval(m.Server, &wire.FetchImageRequest{
			Schedd: s.node.Name, Attempt: attemptRef(roost.AttemptID{Task: m.Task, Attempt: m.Attempt}),
			Sequence: m.Sequence,
		})
		return
	}
	if _, err := s.images.Remove(imageKey(m.Task, m.Attempt, m.Sequence)); err != nil {
		s.log.Warn("checkpoint not deleted", "task", m.Task, "error", err)
	}
}

// sendImage sends the image that an attempt goes on from to its node.
func (s *Schedd) sendImage(ctx context.Context, p *nodeConn, a roost.AttemptID, uid uint32,
	m *queue.CheckpointImage) error {
	slot, err := s.imageSlots.acquire(ctx, uid)
	if err != nil {
		return err
	}
	defer slot.release()
	pace, end := newPacedStream(ctx, slot) // one that is broken off must not keep the attempt there
	defer end()
	key := imageKey(a.Task, m.Attempt, m.Sequence)
	if size, err := s.images.Size(key); err != nil {
		return badImageError{m.Sequence, err.Error()}
	} else if size != m.Size {
		return badImageError{m.Sequence, fmt.Sprintf("it is not as it was kept: it has %d bytes, and had %d",
			size, m.Size)}
	}
	put, err := p.client.PutImage(pace.ctx)
	if err != nil {
		return rpc.FromStatus(err)
	}
	err = put.Send(&wire.FileChunk{Schedd: s.node.Name, Attempt: attemptRef(a)})
	if err == nil {
		err = s.images.Send(key, pace.sendPaced(put.Send))
	}
	if err != nil && rpc.KindOf(err) == roost.NotFound {
		return badImageError{m.Sequence, err.Error()}
	}
	_, err = put.CloseAndRecv() // it tells also why sending ended
	if err = pace.stopCause(rpc.FromStatus(err)); errors.Is(err, roost.Exhausted) {
		// the node has no room for it: that bound is the machine's, and none that the job
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

// queueImage turns the wire's form of an image into the queue's.
func queueImage(m *wire.Image) queue.CheckpointImage {
	return queue.CheckpointImage{
		Sequence: m.GetSequence(), Attempt: roost.AttemptNumber(m.GetAttempt()), Time: m.GetTime(), Size: m.GetSize(),
		RawSize: m.GetRawSize(), MAC: m.GetMac(),
		CPUUsage: queue.CPUUsage{Wall: m.GetWall(), User: m.GetUserCpu(), System: m.GetSystemCpu()},
		Server:   m.GetServer(), Node: m.GetNode(),
		SelfCheckpoint: m.GetMethod() == wire.CheckpointPolicy_METHOD_SELF, SlotUser: m.GetSlotUser(),
	}
}

// wireImage is the way back.
func wireImage(m *queue.CheckpointImage, key []byte) *wire.Image {
	if m == nil {
		return nil
	}
	return &wire.Image{
		Sequence: m.Sequence, Attempt: uint32(m.Attempt), Time: m.Time, Size: m.Size, RawSize: m.RawSize, Mac: m.MAC,
		Wall: m.Wall, UserCpu: m.User,
		SystemCpu: m.System, Server: m.Server, Node: m.Node, Method: checkpointMethod(m.SelfCheckpoint), Key: key,
		SlotUser: m.SlotUser,
	}
}

func checkpointMethod(self bool) wire.CheckpointPolicy_Method {
	if self {
		return wire.CheckpointPolicy_METHOD_SELF
	}
	return wire.CheckpointPolicy_METHOD_IMAGE
}

// wireCheckpointPolicy is what a node is told of checkpoints.
func wireCheckpointPolicy(p *queue.CheckpointPolicy, scratch bool) *wire.CheckpointPolicy {
	if p == nil {
		return nil
	}
	w := &wire.CheckpointPolicy{
		Method: checkpointMethod(p.Self), IntervalNs: int64(p.Interval), OnVacate: p.OnVacate,
		BeforeWalltime: p.AtLimit, Signal: p.Signal, ExitCode: p.ExitCode,
		Key: p.Key, Next: p.Next,
	}
	if scratch {
		w.Files = p.Files // without one they are where the next attempt finds them
	}
	return w
}
