// Package server implements the checkpoint server. It stores the images of many submit
// nodes, so that these need neither their disks nor their networks for it. Execute nodes
// put and get the images for which a submit node has signed them a right; a submit node
// removes its own images only. The server does not judge images: they are encrypted and
// authenticated with a key that it never sees, and checked where they are used.
package server

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"time"

	"google.golang.org/grpc"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/checkpoint/packages"
	"github.com/roost-batch/roost/checkpoint/store"
	"github.com/roost-batch/roost/internal/identity/peer"
	"github.com/roost-batch/roost/internal/metrics"
	"github.com/roost-batch/roost/internal/rpc"
	blobstore "github.com/roost-batch/roost/internal/store"
	"github.com/roost-batch/roost/internal/wire"
)

// Service answers the calls of one server. Package auth decides who may make which call.
type Service struct {
	wire.UnimplementedCheckpointServerServer
	images    *store.Store
	blobs     *blobstore.Directory // nil: none, in tests of images
	planner   *chunkPlanner
	namesMu   sync.Mutex         // held while names of blobs, or charges for them, change
	packages  *packages.Register // nil: none, likewise
	identity  *rpc.Identity
	slots     chan struct{}
	transfers sync.WaitGroup
	metrics   *metrics.CheckpointServer

	maxBlobBytes int64 // of all blobs; 0: what the disk has room for
}

// maxTransfers bounds the image transfers in progress; others wait.
const maxTransfers = 16

// New returns a service for the images of a store. With the identity it verifies the
// signatures of rights; without one, only root of this machine may call.
func New(images *store.Store, id *rpc.Identity) *Service {
	return &Service{images: images, identity: id, slots: make(chan struct{}, maxTransfers),
		planner: newChunkPlanner(), metrics: metrics.NewCheckpointServer(nil, "")}
}

// stallTimeout is how long a transfer may make no progress before it is aborted, because
// others wait for its slot.
const stallTimeout = time.Minute

// runTransfer runs a transfer when a slot is free, and aborts it without progress. The
// stream ends with the call, and with it everything that move waits for.
func (s *Service) runTransfer(ctx context.Context, move func(moved func()) error) error {
	select {
	case s.slots <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	timer := time.NewTimer(stallTimeout)
	defer timer.Stop()
	done := make(chan error, 1)
	s.transfers.Go(func() {
		s.metrics.Transfers.Add(1)
		defer s.metrics.Transfers.Add(-1)
		defer func() { <-s.slots }()
		done <- move(func() { timer.Reset(stallTimeout) })
	})
	select {
	case err := <-done:
		return err
	case <-timer.C:
		return fmt.Errorf("%w: no data was transferred for %v", roost.Unavailable, stallTimeout)
	}
}

// runUpload is runTransfer for what the server receives.
func (s *Service) runUpload(ctx context.Context, move func(moved func()) error) error {
	return s.runTransfer(ctx, func(moved func()) error {
		s.metrics.Uploads.Add(1)
		defer s.metrics.Uploads.Add(-1)
		return move(moved)
	})
}

// callerRights returns the rights of a caller.
func (s *Service) callerRights(ctx context.Context, capability []byte) (store.PeerRights, error) {
	p, ok := peer.FromContext(ctx)
	if !ok {
		return store.PeerRights{}, fmt.Errorf("image: %w: the caller is unknown", roost.Unauthenticated)
	}
	return store.RightsOf(s.identity, p, capability)
}

// Put stores one image. When it answers, the image is complete and on the disk.
func (s *Service) Put(stream grpc.ClientStreamingServer[wire.FileChunk, wire.PutReply]) error {
	first, err := stream.Recv()
	if err != nil {
		return err
	}
	sequence, err := strconv.ParseUint(first.GetEntry().GetName(), 10, 64)
	if err != nil {
		return fmt.Errorf("image %q: %w: its name must be its number", first.GetEntry().GetName(), roost.Invalid)
	}
	k, err := imageKey(&wire.FetchImageRequest{Schedd: first.GetSchedd(), Attempt: first.GetAttempt(),
		Sequence: sequence})
	if err != nil {
		return err
	}
	rights, err := s.callerRights(stream.Context(), first.GetCapability())
	if err == nil {
		err = rights.MayPut(k)
	}
	if err != nil {
		return err
	}
	size := first.GetEntry().GetSize()
	err = s.runUpload(stream.Context(), func(moved func()) error {
		return s.images.ReceiveNew(k, size, func() (*wire.FileChunk, error) {
			chunk, err := stream.Recv()
			moved()
			return chunk, err
		})
	})
	if err != nil {
		return err
	}
	return stream.SendAndClose(&wire.PutReply{Files: 1, Bytes: size})
}

// Get sends one image.
func (s *Service) Get(req *wire.FetchImageRequest, stream grpc.ServerStreamingServer[wire.FileChunk]) error {
	k, err := imageKey(req)
	if err != nil {
		return err
	}
	rights, err := s.callerRights(stream.Context(), req.GetCapability())
	if err == nil {
		err = rights.MayGet(k)
	}
	if err != nil {
		return err
	}
	return s.runTransfer(stream.Context(), func(moved func()) error {
		return s.images.Send(k, func(chunk *wire.FileChunk) error {
			defer moved()
			return stream.Send(chunk)
		})
	})
}

// Remove deletes an image of the schedd that calls.
func (s *Service) Remove(ctx context.Context, req *wire.FetchImageRequest) (*wire.RemoveImageReply, error) {
	k, err := imageKey(req)
	if err != nil {
		return nil, err
	}
	if p, ok := peer.FromContext(ctx); !ok || !p.SpeaksFor(k.Schedd) {
		return nil, fmt.Errorf("%v: %w: it is another's", k, roost.PermissionDenied)
	}
	removed, err := s.images.Remove(k)
	return &wire.RemoveImageReply{Removed: removed}, err
}

// imageKey returns the key of the image in a request.
func imageKey(req *wire.FetchImageRequest) (store.ImageKey, error) {
	if req.GetSchedd() == "" {
		return store.ImageKey{}, fmt.Errorf("image: %w: it does not name its schedd", roost.Invalid)
	}
	a := req.GetAttempt()
	return store.ImageKey{
		Schedd: req.GetSchedd(), Job: a.GetJob(), Index: int(a.GetIndex()),
		Attempt: roost.AttemptNumber(a.GetAttempt()), Sequence: req.GetSequence(),
	}, nil
}
