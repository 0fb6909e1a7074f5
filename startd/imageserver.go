package startd

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/auth"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/wire"
)

// Where the node file names a checkpoint server, images go there, and come from there. What the server is worth is not asked: an image is
// verified with the job's key, which the server never sees.

// fetched tells a hand that the image which its attempt is to go on from is here, or why it is not.
type fetched struct {
	id  roost.AttemptID
	err error
}

// How long an attempt waits for a checkpoint server that cannot be reached, and how often it asks.
const (
	fetchPatience = 5 * time.Minute
	fetchPause    = 2 * time.Second
)

// ship sends an image to the checkpoint server, if there is one. An image that does not get there stays here until the submit node has it.
func (m *machine) ship(ctx context.Context, j *dumpJob) {
	address := m.node.ImageServer
	if address == "" {
		return
	}
	if err := m.putImage(ctx, address, j); err != nil {
		m.log.Warn("the checkpoint server did not take an image, which goes to the submit node instead", "server", address, "image", j.at, "err", err)
		return
	}
	j.taken.Image.Server = address
	if _, err := m.images.Remove(j.at); err != nil {
		m.log.Warn("cannot remove a checkpoint", "err", err)
	}
}

func (m *machine) putImage(ctx context.Context, address string, j *dumpJob) error {
	conn, err := rpc.Dial(address, m.identity, auth.CheckpointServer)
	if err != nil {
		return err
	}
	defer conn.Close()
	put, err := wire.NewCheckpointServerClient(conn).Put(ctx)
	if err != nil {
		return rpc.FromStatus(err)
	}
	first := &wire.FileChunk{Schedd: j.at.Schedd, Attempt: j.taken.GetAttempt(), Capability: j.capability, Entry: &wire.FileEntry{
		Name: strconv.FormatUint(j.at.Sequence, 10), Size: j.taken.GetImage().GetSize(), Mode: 0o600,
	}}
	if err = put.Send(first); err == nil {
		err = m.images.Send(j.at, put.Send)
	}
	if _, closed := put.CloseAndRecv(); closed != nil { // it tells why sending ended
		return rpc.FromStatus(closed)
	}
	return err
}

// fetch brings the image that an attempt goes on from, if a checkpoint server has it.
func (h *hand) fetch(a *attempt) {
	i := a.program.GetRestore()
	if i.GetServer() == "" || a.enter() != nil {
		return
	}
	a.saving.absent = true
	at := h.imageKey(a, i)
	go func() {
		defer a.leave()
		ctx, cancel := context.WithTimeout(a.ctx, fetchPatience)
		defer cancel()
		for {
			err := h.m.getImage(ctx, at.Schedd, a, i)
			if err == nil || !errors.Is(err, roost.Unavailable) || ctx.Err() != nil {
				h.box.put(fetched{a.id, err})
				return
			}
			h.m.log.Info("the checkpoint server does not answer", "server", i.GetServer(), "attempt", a.label(), "err", err)
			select {
			case <-ctx.Done():
			case <-time.After(fetchPause):
			}
		}
	}()
}

func (m *machine) getImage(ctx context.Context, schedd string, a *attempt, i *wire.Image) error {
	conn, err := rpc.Dial(i.GetServer(), m.identity, auth.CheckpointServer)
	if err != nil {
		return err
	}
	defer conn.Close()
	of := reference(a.id)
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

// fetched lets the attempt begin, if nothing else is awaited, or ends it. A server that does not answer says nothing about the image.
func (h *hand) fetched(o fetched) {
	if !h.is(o.id) || h.now.exited != nil || !h.now.waits() {
		return
	}
	a := h.now
	a.saving.absent = false
	unreachable := errors.Is(o.err, roost.Unavailable) || errors.Is(o.err, context.DeadlineExceeded)
	switch {
	case o.err == nil && a.saving.begun:
		h.begin(a)
	case o.err == nil:
	case unreachable || errors.Is(o.err, roost.Exhausted):
		h.m.log.Warn("no image to go on from", "attempt", a.label(), "err", o.err)
		h.exit(a, &wire.ExitStatus{
			Cause: wire.Cause_CAUSE_VACATED, Reason: fmt.Sprintf("its checkpoint could not be fetched from the server %s: %v", a.program.GetRestore().GetServer(), o.err),
		})
	default:
		h.cannot(a, fmt.Errorf("%w: from the server %s: %w", errRestore, a.program.GetRestore().GetServer(), o.err))
	}
}
