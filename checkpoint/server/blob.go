package server

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"google.golang.org/grpc"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/identity/peer"
	blobstore "github.com/roost-batch/roost/internal/store"
	"github.com/roost-batch/roost/internal/store/transfer"
	"github.com/roost-batch/roost/internal/wire"
)

// Blobs are container images and packages. Every machine may get them; a submit node puts
// them for its users, whose names are those of the node in its certificate. A user is
// charged for what was put for it.

// blobOwner returns the owner of what the caller puts for a user.
func blobOwner(ctx context.Context, uid uint32) (string, error) {
	p, ok := peer.FromContext(ctx)
	switch {
	case !ok:
		return "", fmt.Errorf("blob: %w: the caller is unknown", roost.Unauthenticated)
	case p.Local:
		return "uid " + strconv.FormatUint(uint64(uid), 10), nil
	}
	return fmt.Sprintf("uid %d of %s", uid, p.Name), nil
}

// blobDirectory returns the blobs of the server.
func (s *Service) blobDirectory() (*blobstore.Directory, error) {
	if s.blobs == nil {
		return nil, fmt.Errorf("blob: %w: this server has none", roost.NotFound)
	}
	return s.blobs, nil
}

// GetManifest returns the manifest of a blob.
func (s *Service) GetManifest(_ context.Context, req *wire.BlobRequest) (*wire.BlobManifest, error) {
	blobs, err := s.blobDirectory()
	if err != nil {
		return nil, err
	}
	digest, err := blobstore.ParseDigest(req.GetDigest())
	if err != nil {
		return nil, err
	}
	m, err := blobs.Manifest(digest)
	if err != nil {
		return nil, err
	}
	return &wire.BlobManifest{Manifest: m.Encode()}, nil
}

// GetChunks sends chunks of a blob.
func (s *Service) GetChunks(req *wire.BlobRequest, stream grpc.ServerStreamingServer[wire.BlobPart]) error {
	blobs, err := s.blobDirectory()
	if err != nil {
		return err
	}
	return s.runTransfer(stream.Context(), func(moved func()) error {
		return transfer.SendChunks(blobs, req, stream.Send, func(bytes int) {
			s.metrics.SentChunk(bytes)
			moved()
		})
	})
}

// PutBlob stores a blob for a user of the caller's node. When it answers the second time,
// the blob is on the disk.
func (s *Service) PutBlob(stream grpc.BidiStreamingServer[wire.BlobPart, wire.BlobMissing]) error {
	blobs, err := s.blobDirectory()
	if err != nil {
		return err
	}
	first, err := stream.Recv()
	if err != nil {
		return err
	}
	owner, err := blobOwner(stream.Context(), first.GetUid())
	if err != nil {
		return err
	}
	return s.runUpload(stream.Context(), func(moved func()) error {
		return transfer.Accept(stream.Context(), blobs, first, owner, stream, moved)
	})
}

// ListBlobs lists the blobs of a user of the caller's node.
func (s *Service) ListBlobs(ctx context.Context, req *wire.BlobRequest) (*wire.BlobList, error) {
	blobs, err := s.blobDirectory()
	if err != nil {
		return nil, err
	}
	owner, err := blobOwner(ctx, req.GetUid())
	if err != nil {
		return nil, err
	}
	list := &wire.BlobList{}
	for _, e := range blobs.List() {
		if slices.Contains(e.Owners, owner) {
			list.Blobs = append(list.Blobs, &wire.BlobEntry{Digest: string(e.Digest), Size: e.Size,
				UsedS: e.LastUse.Unix()})
		}
	}
	return list, nil
}

// maxBlobPins is how many blobs the jobs of a submit node can use.
const maxBlobPins = 10_000

// PinBlobs notes which blobs the open jobs of the caller's node use. They stay until a
// later call does not name them, or none has come for long. It answers which of them are
// not here.
func (s *Service) PinBlobs(ctx context.Context, req *wire.BlobPins) (*wire.BlobPins, error) {
	blobs, err := s.blobDirectory()
	if err != nil {
		return nil, err
	}
	p, ok := peer.FromContext(ctx)
	if !ok {
		return nil, fmt.Errorf("pins: %w: the caller is unknown", roost.Unauthenticated)
	}
	if n := len(req.GetDigests()); n > maxBlobPins {
		return nil, fmt.Errorf("pins: %w: %d, and %d is the most", roost.Exhausted, n, maxBlobPins)
	}
	digests := make([]blobstore.Digest, len(req.GetDigests()))
	for i, text := range req.GetDigests() {
		if digests[i], err = blobstore.ParseDigest(text); err != nil {
			return nil, err
		}
	}
	owner := pinOwnerPrefix + p.Name
	if req.GetCellQueue() { // beside the node's own queue
		if !p.Local && !p.Plays(peer.CellQueue) {
			return nil, fmt.Errorf("pins: %w: %s is no member of the queue of the cell", roost.PermissionDenied, p.Name)
		}
		owner += " in the queue of the cell"
	}
	missing, err := blobs.SetPins(owner, digests)
	reply := &wire.BlobPins{}
	for _, digest := range missing {
		reply.Digests = append(reply.Digests, string(digest))
	}
	return reply, err
}

// pinOwnerPrefix begins the owner of the pins of a submit node.
const pinOwnerPrefix = "jobs of "

// Blobs without pins give way to new ones when they were not used for spareAfter. Beyond
// spareShare of what the server may have they give way without that.
const (
	spareAfter = time.Hour
	spareShare = 0.8
)

// collectBlobs removes blobs that nobody needs, if there are many, and the pins of submit
// nodes that are gone.
func (s *Service) collectBlobs(max int64, now time.Time) (removed []blobstore.Digest, err error) {
	err = s.blobs.ExpirePins(pinOwnerPrefix, now.Add(-retention))
	if max > 0 {
		var cerr error
		removed, cerr = s.blobs.CollectSpare(int64(float64(max)*spareShare), now.Add(-spareAfter))
		err = errors.Join(err, cerr)
	}
	return removed, err
}

// RemoveBlob ends the charge of a user of the caller's node for a blob.
func (s *Service) RemoveBlob(ctx context.Context, req *wire.BlobRequest) (*wire.BlobMissing, error) {
	blobs, err := s.blobDirectory()
	if err != nil {
		return nil, err
	}
	digest, err := blobstore.ParseDigest(req.GetDigest())
	if err != nil {
		return nil, err
	}
	owner, err := blobOwner(ctx, req.GetUid())
	if err != nil {
		return nil, err
	}
	s.namesMu.Lock()
	defer s.namesMu.Unlock()
	if err := s.removable(digest, owner); err != nil {
		return nil, err
	}
	gone, err := blobs.Disown(digest, owner)
	return &wire.BlobMissing{Whole: gone}, err
}
