package api

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/schedd/queue"
	"github.com/roost-batch/roost/schedd/transfer"
)

// Container images and packages are on the checkpoint server, which knows no users. The
// schedd knows its own, and names who calls by number: whatever a user's command says of
// that is not passed on.

// blobCalls passes users' calls about container images on. Its methods are those of
// wire.ScheddServer.
type blobCalls struct {
	server transfer.BlobServer
	caller func(context.Context) (queue.CallerIdentity, error) // whom the schedd serves

	mu   sync.Mutex
	open map[uint32]int // uploads by uid
}

// maxBlobUploads is how many blobs a user can be sending at a time.
const maxBlobUploads = 4

// begin counts a user's upload, and returns what ends it.
func (b *blobCalls) begin(who queue.CallerIdentity) (end func(), err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.open == nil {
		b.open = map[uint32]int{}
	}
	if b.open[who.UID] >= maxBlobUploads {
		return nil, fmt.Errorf("%w: %s is sending %d images already: try again when one of them is there",
			roost.Exhausted, who.User, maxBlobUploads)
	}
	b.open[who.UID]++
	return func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		if b.open[who.UID]--; b.open[who.UID] == 0 {
			delete(b.open, who.UID)
		}
	}, nil
}

// PutBlob passes a blob of the caller's on to the checkpoint server, as it comes.
func (b *blobCalls) PutBlob(stream grpc.BidiStreamingServer[wire.BlobPart, wire.BlobMissing]) error {
	who, err := b.caller(stream.Context())
	if err != nil {
		return err
	}
	end, err := b.begin(who)
	if err != nil {
		return err
	}
	defer end()
	return b.server.Call(stream.Context(), func(ctx context.Context, c wire.CheckpointServerClient) error {
		to, err := c.PutBlob(ctx)
		if err != nil {
			return err
		}
		go func() {
			for {
				part, err := stream.Recv()
				if err != nil {
					to.CloseSend() // a blob that is not whole is the server's to refuse
					return
				}
				part.Uid = who.UID
				if to.Send(part) != nil {
					return
				}
			}
		}()
		for {
			reply, err := to.Recv()
			if errors.Is(err, io.EOF) {
				return nil
			}
			if err == nil {
				err = stream.Send(reply)
			}
			if err != nil {
				return err
			}
		}
	})
}

// ListBlobs lists the blobs of the caller.
func (b *blobCalls) ListBlobs(ctx context.Context, _ *wire.BlobRequest) (list *wire.BlobList, err error) {
	who, err := b.caller(ctx)
	if err != nil {
		return nil, err
	}
	err = b.server.Call(ctx, func(ctx context.Context, c wire.CheckpointServerClient) (err error) {
		list, err = c.ListBlobs(ctx, &wire.BlobRequest{Uid: who.UID})
		return err
	})
	return list, err
}

// SetPackage passes on what the caller changes of a name.
func (b *blobCalls) SetPackage(ctx context.Context, req *wire.PackageChange) (v *wire.PackageVersion, err error) {
	who, err := b.caller(ctx)
	if err != nil {
		return nil, err
	}
	change := proto.CloneOf(req)
	change.Uid, change.User, change.Administrator = who.UID, who.User, who.Admin
	err = b.server.Call(ctx, func(ctx context.Context, c wire.CheckpointServerClient) (err error) {
		v, err = c.SetPackage(ctx, change)
		return err
	})
	return v, err
}

// ListPackages answers what names mean.
func (b *blobCalls) ListPackages(ctx context.Context, req *wire.PackageQuery) (list *wire.PackageList, err error) {
	if _, err := b.caller(ctx); err != nil {
		return nil, err
	}
	err = b.server.Call(ctx, func(ctx context.Context, c wire.CheckpointServerClient) (err error) {
		list, err = c.ListPackages(ctx, req)
		return err
	})
	return list, err
}

// RemoveBlob ends the charge of the caller for a blob.
func (b *blobCalls) RemoveBlob(ctx context.Context, req *wire.BlobRequest) (gone *wire.BlobMissing, err error) {
	who, err := b.caller(ctx)
	if err != nil {
		return nil, err
	}
	err = b.server.Call(ctx, func(ctx context.Context, c wire.CheckpointServerClient) (err error) {
		gone, err = c.RemoveBlob(ctx, &wire.BlobRequest{Digest: req.GetDigest(), Uid: who.UID})
		return err
	})
	return gone, err
}
