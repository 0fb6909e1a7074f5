package claim

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/identity/peer"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/wire"
)

// Where the node file names a checkpoint server, images go there, and come from there.
// What the server is worth is not asked: an image is verified with the job's key, which
// the server never sees.

// How long an attempt waits for a checkpoint server that cannot be reached, and how often
// it asks.
const (
	imageFetchRetryTime = 5 * time.Minute
	imageFetchInterval  = 2 * time.Second
)

// uploadImage sends an image to the checkpoint server, if there is one. An image that
// does not get there stays here until the submit node has it.
func (m *Checkpoints) uploadImage(ctx context.Context, j *dumpRequest) {
	address := m.server
	if address == "" {
		return
	}
	if err := m.putImage(ctx, address, j); err != nil {
		m.log.Warn("the checkpoint server did not take an image, which goes to the submit node instead", "server",
			address, "image", j.takenAt, "err", err)
		return
	}
	j.taken.Image.Server = address
	if _, err := m.images.Remove(j.takenAt); err != nil {
		m.log.Warn("cannot remove a checkpoint", "err", err)
	}
}

func (m *Checkpoints) putImage(ctx context.Context, address string, j *dumpRequest) error {
	conn, err := rpc.Dial(address, m.identity, peer.CheckpointServer)
	if err != nil {
		return err
	}
	defer conn.Close()
	put, err := wire.NewCheckpointServerClient(conn).Put(ctx)
	if err != nil {
		return rpc.FromStatus(err)
	}
	first := &wire.FileChunk{Schedd: j.takenAt.Schedd, Attempt: j.taken.GetAttempt(), Capability: j.serverToken,
		Entry: &wire.FileEntry{
			Name: strconv.FormatUint(j.takenAt.Sequence, 10), Size: j.taken.GetImage().GetSize(), Mode: 0o600,
		}}
	if err = put.Send(first); err == nil {
		err = m.images.Send(j.takenAt, put.Send)
	}
	if _, closed := put.CloseAndRecv(); closed != nil { // it tells why sending ended
		return rpc.FromStatus(closed)
	}
	return err
}

// fetchImage brings the image that an attempt goes on from, if a checkpoint server has
// it.
func (h checkpointer) fetchImage(a *Attempt) {
	i := a.program.GetRestore()
	if i.GetServer() == "" || a.AcquireFiles() != nil {
		return
	}
	a.checkpoint.awaitsImage = true
	at := h.imageKey(a, i)
	go func() {
		defer a.ReleaseFiles()
		ctx, cancel := context.WithTimeout(a.ctx, imageFetchRetryTime)
		defer cancel()
		for {
			err := h.machine.checkpoints.getImage(ctx, at.Schedd, a, i)
			if err == nil || !errors.Is(err, roost.Unavailable) || ctx.Err() != nil {
				h.queue.Put(imageFetched{a.id, err})
				return
			}
			h.machine.log.Info("the checkpoint server does not answer", "server", i.GetServer(), "attempt", a.Label(),
				"err", err)
			select {
			case <-ctx.Done():
			case <-time.After(imageFetchInterval):
			}
		}
	}()
}

func (m *Checkpoints) getImage(ctx context.Context, schedd string, a *Attempt, i *wire.Image) error {
	conn, err := rpc.Dial(i.GetServer(), m.identity, peer.CheckpointServer)
	if err != nil {
		return err
	}
	defer conn.Close()
	of := wire.FromAttempt(a.id)
	of.Attempt = i.GetAttempt()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	from, err := wire.NewCheckpointServerClient(conn).Get(ctx, &wire.FetchImageRequest{
		Schedd: schedd, Attempt: of, Sequence: i.GetSequence(), Capability: a.program.GetCheckpoint().GetCapability(),
	})
	if err != nil {
		return rpc.FromStatus(err)
	}
	return m.images.Receive(imageKey(schedd, a, i), i.GetSize(), func() (*wire.FileChunk, error) {
		chunk, err := from.Recv()
		if err != nil {
			err = rpc.FromStatus(err)
		}
		return chunk, err
	})
}

// onImageFetched lets the attempt begin, if nothing else is awaited, or ends it. A server
// that does not answer says nothing about the image.
func (h checkpointer) onImageFetched(o imageFetched) {
	if !h.hasOpenAttempt(o.id) || !h.attempt.AwaitsInput() {
		return
	}
	a := h.attempt
	a.checkpoint.awaitsImage = false
	unreachable := errors.Is(o.err, roost.Unavailable) || errors.Is(o.err, context.DeadlineExceeded)
	switch {
	case o.err == nil && a.checkpoint.otherwiseReady && !a.container.awaited:
		h.startPrepared(a)
	case o.err == nil:
	case unreachable || errors.Is(o.err, roost.Exhausted):
		h.machine.log.Warn("no image to go on from", "attempt", a.Label(), "err", o.err)
		h.onExit(a, &wire.ExitStatus{
			Cause: wire.Cause_CAUSE_VACATED,
			Reason: fmt.Sprintf("its checkpoint could not be fetched from the server %s: %v",
				a.program.GetRestore().GetServer(), o.err),
		})
	default:
		h.failAttempt(a, fmt.Errorf("%w: from the server %s: %w", errRestore,
			a.program.GetRestore().GetServer(), o.err))
	}
}
