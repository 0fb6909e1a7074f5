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

// A checkpoint comes home like this: the node says that it has taken one; the schedd fetches the image into its spool; when it lies there whole,
// that is recorded; when that is on disk, the node is told that it need not keep it. An image that nobody will go on from any more is deleted when
// that is on disk. So what the log names is there, and what a crash leaves lying about is swept away at the next start.
//
// An attempt that has ended is not recorded as ended while an image of it is on its way: the next one is to go on from that.

// imageStored tells the loop what became of an image on its way home.
type imageStored struct {
	node    string
	attempt roost.AttemptID
	pull    *pull
	err     error
}

// pull is an image on its way home.
type pull struct {
	taken  *wire.CheckpointTaken
	next   *wire.CheckpointTaken // a newer one that waits for it
	cancel context.CancelFunc
	exited *wire.Exited // the end of the attempt, which waits for it
}

// maxImages bounds how many images are on their way at once. They are large, and outputs are not to wait for them. The slots are shared among users, as those
// of files are.
const maxImages = 4

// openImages opens the spool of images and sweeps away what the log does not name.
func (s *Schedd) openImages() (err error) {
	if s.images, err = store.Open(filepath.Join(s.dir(), "checkpoints"), 0); err != nil {
		return err
	}
	named := make(map[store.Key]bool)
	s.queue.Images(func(m queue.Stored) { named[imageKey(m.Task, m.Attempt, m.Sequence)] = true })
	n, err := s.images.Sweep(func(k store.Key) bool { return named[k] })
	if n > 0 {
		s.log.Info("checkpoints that nobody wants were deleted", "count", n)
	}
	return err
}

func imageKey(t roost.TaskID, a roost.Attempt, sequence uint64) store.Key {
	return store.Key{Job: t.Job.Seq, Index: t.Index, Attempt: a, Sequence: sequence}
}

// taken takes in a node's word on a checkpoint.
func (s *Schedd) taken(p *peerNode, m *wire.CheckpointTaken, now time.Time) {
	a := s.attempt(m.GetAttempt())
	image := m.GetImage()
	sequence := image.GetSequence()
	if !s.dispatch.Has(p.name, a) && s.queue.Live(a) {
		s.log.Warn("a node speaks of a checkpoint of a task that it does not have", "node", p.name, "attempt", a)
		return
	}
	switch {
	case !s.queue.Live(a):
		s.unwanted(a, m)
		s.kept(p.name, a, sequence, "the attempt is over")
	case m.GetError() != "":
		s.unkept(a, m, m.GetError(), now)
	case roost.Attempt(image.GetAttempt()) != a.Attempt:
		s.unkept(a, m, "the node says that it is of another attempt", now)
		s.kept(p.name, a, sequence, "it is of another attempt")
	case s.queue.Kept(a.Task, sequence): // said again, because the node did not hear that it is
		s.kept(p.name, a, sequence, "")
	case image.GetServer() != "":
		s.keep(p.name, a, m, now)
	case s.pulls[a] == nil:
		s.pull(p, a, m)
	case s.pulls[a].taken.GetImage().GetSequence() < sequence:
		if old := s.pulls[a].next; old != nil {
			s.kept(p.name, a, old.GetImage().GetSequence(), "there is a newer one")
		}
		s.pulls[a].next = m
	}
}

// pull begins to fetch an image.
func (s *Schedd) pull(p *peerNode, a roost.AttemptID, m *wire.CheckpointTaken) {
	ctx, cancel := context.WithCancel(s.life)
	pl := &pull{taken: m, cancel: cancel}
	s.pulls[a] = pl
	var uid uint32
	if r, ok := s.queue.RequestOf(a.Task); ok {
		uid = r.UID
	}
	go func() {
		defer cancel()
		err := untilReached(ctx, func() error { return s.fetchImage(ctx, p, a, uid, m.GetImage()) })
		s.post(s.life, imageStored{p.name, a, pl, err})
	}()
}

// stopPull gives up an image on its way; imageStored follows, with context.Canceled.
func (s *Schedd) stopPull(a roost.AttemptID) {
	if pl := s.pulls[a]; pl != nil {
		pl.cancel()
		delete(s.pulls, a)
	}
}

// fetchImage tries once to bring an image home. A try has a slot; between two nothing is held, so that nodes which are away keep nobody waiting.
func (s *Schedd) fetchImage(ctx context.Context, p *peerNode, a roost.AttemptID, uid uint32, m *wire.Image) error {
	slot, err := s.imageSlots.acquire(ctx, uid)
	if err != nil {
		return err
	}
	defer slot.release()
	pace, end := newPacedStream(ctx, slot)
	defer end()
	from, err := p.client.FetchImage(pace.ctx, &wire.FetchImageRequest{Schedd: s.node.Name, Attempt: ref(a), Sequence: m.GetSequence()})
	if err != nil {
		return rpc.FromStatus(err)
	}
	return pace.why(s.images.Receive(imageKey(a.Task, a.Attempt, m.GetSequence()), m.GetSize(), pace.recv(chunks(from))))
}

// chunks receives chunks, and turns errors of the wire back into what they were.
func chunks(from grpc.ServerStreamingClient[wire.FileChunk]) func() (*wire.FileChunk, error) {
	return func() (*wire.FileChunk, error) {
		chunk, err := from.Recv()
		if err != nil {
			err = rpc.FromStatus(err)
		}
		return chunk, err
	}
}

// imageStored records an image that has come home, or says why it never will.
func (s *Schedd) imageStored(n imageStored, now time.Time) {
	pl := n.pull
	if s.pulls[n.attempt] != pl { // it was given up
		if n.err == nil {
			s.forgetImage(n.attempt, pl.taken)
		}
		return
	}
	delete(s.pulls, n.attempt)
	p := s.peers[n.node]
	switch {
	case errors.Is(n.err, context.Canceled) && p != nil && s.queue.Live(n.attempt) && s.life.Err() == nil: // the node has moved, and is reached in another way
		s.pull(p, n.attempt, pl.taken)
		s.pulls[n.attempt].next, s.pulls[n.attempt].exited = pl.next, pl.exited
		return
	case n.err == nil:
		s.keep(n.node, n.attempt, pl.taken, now)
	default:
		s.log.Warn("checkpoint not kept", "attempt", n.attempt, "node", n.node, "error", n.err)
		s.unkept(n.attempt, pl.taken, "it cannot be kept: "+n.err.Error(), now)
		s.kept(n.node, n.attempt, pl.taken.GetImage().GetSequence(), n.err.Error())
	}
	if pl.next != nil && p != nil {
		s.taken(p, pl.next, now)
		if again := s.pulls[n.attempt]; again != nil {
			again.exited = pl.exited
			return
		}
	}
	if pl.exited != nil && s.queue.Live(n.attempt) && p != nil {
		s.ending(p, n.attempt, pl.exited, now)
	}
}

// keep records an image that is safe. The word to the node rides on the same batch.
func (s *Schedd) keep(node string, a roost.AttemptID, m *wire.CheckpointTaken, now time.Time) {
	image := queueImage(m.GetImage())
	image.Frozen = m.GetFrozenNs()
	image.Node = node // whatever it says: who has made it is what its session says
	e, err := s.queue.Keep(now, a, image)
	if err != nil {
		s.forgetImage(a, m)
		s.kept(node, a, image.Sequence, err.Error())
		return
	}
	s.decide(e)
	s.kept(node, a, image.Sequence, "")
}

// forgetImage deletes an image that came home and was not recorded.
func (s *Schedd) forgetImage(a roost.AttemptID, m *wire.CheckpointTaken) {
	image := queueImage(m.GetImage())
	image.Attempt = a.Attempt
	s.removeImage(queue.Stored{Task: a.Task, Image: image})
}

// unkept records that there will be no image of a checkpoint.
func (s *Schedd) unkept(a roost.AttemptID, m *wire.CheckpointTaken, why string, now time.Time) {
	if e, ok := s.queue.Unkept(now, a, why, m.GetReason() == asked); ok {
		s.decide(e)
	}
}

// asked is the reason of a checkpoint that a user wanted.
const asked = "asked"

// kept tells a node what became of an image.
func (s *Schedd) kept(node string, a roost.AttemptID, sequence uint64, why string) {
	s.say(node, &wire.ToStartd{Of: &wire.ToStartd_Kept{Kept: &wire.CheckpointKept{Attempt: ref(a), Sequence: sequence, Error: why}}})
}

// waitForImage reports whether the end of an attempt has to wait for an image on its way. A task that has succeeded needs none.
func (s *Schedd) waitForImage(p *peerNode, a roost.AttemptID, e *wire.Exited, now time.Time) bool {
	if exitStatus(e.GetStatus()).Success() {
		s.stopPull(a)
		s.unwanted(a, e.GetUnkept())
		return false
	}
	if m := e.GetUnkept(); m != nil && m.GetError() == "" {
		s.taken(p, m, now)
	}
	if pl := s.pulls[a]; pl != nil {
		pl.exited = e
		return true
	}
	return false
}

// unwanted deletes an image that a checkpoint server has and that was not recorded. One on a node goes there by itself.
func (s *Schedd) unwanted(a roost.AttemptID, m *wire.CheckpointTaken) {
	if image := m.GetImage(); image.GetServer() != "" && !s.queue.Kept(a.Task, image.GetSequence()) {
		s.forgetImage(a, m)
	}
}

// letGo deletes the images that no attempt goes on from any more, when that is on disk.
func (s *Schedd) letGo() {
	dropped := s.queue.TakeDropped()
	if len(dropped) == 0 {
		return
	}
	s.then(func() {
		for _, m := range dropped {
			s.removeImage(m)
		}
	})
}

// removeImage deletes one image, wherever it is.
func (s *Schedd) removeImage(m queue.Stored) {
	if m.Server != "" {
		s.removeThere(m.Server, &wire.FetchImageRequest{
			Schedd: s.node.Name, Attempt: ref(roost.AttemptID{Task: m.Task, Attempt: m.Attempt}), Sequence: m.Sequence,
		})
		return
	}
	if _, err := s.images.Remove(imageKey(m.Task, m.Attempt, m.Sequence)); err != nil {
		s.log.Warn("checkpoint not deleted", "task", m.Task, "error", err)
	}
}

// sendImage sends the image that an attempt goes on from to its node.
func (s *Schedd) sendImage(ctx context.Context, p *peerNode, a roost.AttemptID, uid uint32, m *queue.Image) error {
	slot, err := s.imageSlots.acquire(ctx, uid)
	if err != nil {
		return err
	}
	defer slot.release()
	pace, end := newPacedStream(ctx, slot) // one that is broken off must not keep the attempt there
	defer end()
	key := imageKey(a.Task, m.Attempt, m.Sequence)
	if size, err := s.images.Size(key); err != nil {
		return spoiledImage{m.Sequence, err.Error()}
	} else if size != m.Size {
		return spoiledImage{m.Sequence, fmt.Sprintf("it is not as it was kept: it has %d bytes, and had %d", size, m.Size)}
	}
	put, err := p.client.PutImage(pace.ctx)
	if err != nil {
		return rpc.FromStatus(err)
	}
	err = put.Send(&wire.FileChunk{Schedd: s.node.Name, Attempt: ref(a)})
	if err == nil {
		err = s.images.Send(key, pace.send(put.Send))
	}
	if err != nil && rpc.KindOf(err) == roost.NotFound {
		return spoiledImage{m.Sequence, err.Error()}
	}
	_, err = put.CloseAndRecv() // it tells also why sending ended
	if err = pace.why(rpc.FromStatus(err)); errors.Is(err, roost.Exhausted) {
		return fmt.Errorf("%w: %v", roost.NoOutput, err) // the node has no room for it: that bound is the machine's, and none that the job is beyond
	}
	return err
}

// spoiledImage is an image that was kept and cannot be used.
type spoiledImage struct {
	sequence uint64
	why      string
}

func (e spoiledImage) Error() string {
	return fmt.Sprintf("checkpoint %d cannot be used: %s", e.sequence, e.why)
}

// queueImage turns the wire's form of an image into the queue's.
func queueImage(m *wire.Image) queue.Image {
	return queue.Image{
		Sequence: m.GetSequence(), Attempt: roost.Attempt(m.GetAttempt()), Time: m.GetTime(), Size: m.GetSize(), Raw: m.GetRawSize(), MAC: m.GetMac(),
		Work: queue.Work{Wall: m.GetWall(), User: m.GetUserCpu(), System: m.GetSystemCpu()}, Server: m.GetServer(), Node: m.GetNode(),
		Self: m.GetMethod() == wire.CheckpointPolicy_METHOD_SELF, Slot: m.GetSlotUser(),
	}
}

// wireImage is the way back.
func wireImage(m *queue.Image, key []byte) *wire.Image {
	if m == nil {
		return nil
	}
	return &wire.Image{
		Sequence: m.Sequence, Attempt: uint32(m.Attempt), Time: m.Time, Size: m.Size, RawSize: m.Raw, Mac: m.MAC, Wall: m.Wall, UserCpu: m.User,
		SystemCpu: m.System, Server: m.Server, Node: m.Node, Method: method(m.Self), Key: key, SlotUser: m.Slot,
	}
}

func method(self bool) wire.CheckpointPolicy_Method {
	if self {
		return wire.CheckpointPolicy_METHOD_SELF
	}
	return wire.CheckpointPolicy_METHOD_IMAGE
}

// wirePolicy is what a node is told of checkpoints.
func wirePolicy(p *queue.Policy, scratch bool) *wire.CheckpointPolicy {
	if p == nil {
		return nil
	}
	w := &wire.CheckpointPolicy{
		Method: method(p.Self), IntervalNs: int64(p.Interval), OnVacate: p.OnVacate, BeforeWalltime: p.AtLimit, Signal: p.Signal, ExitCode: p.ExitCode,
		Key: p.Key, Next: p.Next,
	}
	if scratch {
		w.Files = p.Files // without one they are where the next attempt finds them
	}
	return w
}
