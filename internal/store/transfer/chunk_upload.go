package transfer

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/time/rate"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/store"
	"github.com/roost-batch/roost/internal/wire"
)

// Bounds of what a machine sends to others.
const (
	MaxUploads      = 4  // at a time; the tracker plans no more
	maxUploadChunks = 16 // of one call
	uploadPatience  = 8  // seconds in which what was begun is to leave
)

// Uploads sends chunks to other machines, a few at a time, and no faster than it may.
// Chunks leave one after another: a whole chunk can be sent on, and four quarters cannot.
type Uploads struct {
	slots   chan struct{}
	limiter *rate.Limiter
	counter Counter
}

// Counter learns what moves between machines. Its methods may be called concurrently.
type Counter interface {
	// Received counts bytes of a chunk that is right.
	Received(bytes int, fromServer bool)
	// Failed counts a source from which not all came.
	Failed(outcome wire.ChunkResult_Outcome)
	// Sent counts bytes of a chunk that was sent to another machine.
	Sent(bytes int)
}

// NewUploads returns uploads of at most a number of bytes in a second.
func NewUploads(bytesPerSecond int64, counter Counter) *Uploads {
	slots := min(MaxUploads, max(1, bytesPerSecond*uploadPatience/store.ChunkBytes))
	return &Uploads{make(chan struct{}, slots), rate.NewLimiter(rate.Limit(bytesPerSecond), store.ChunkBytes), counter}
}

// Send sends the chunks that another machine asks for. One call more than it serves is
// roost.Exhausted, and a chunk that is not here roost.NotFound.
func (u *Uploads) Send(ctx context.Context, from *store.Directory, req *wire.BlobRequest,
	send func(*wire.BlobPart) error) error {
	digest, err := store.ParseDigest(req.GetDigest())
	if err != nil {
		return err
	}
	if n := len(req.GetChunks()); n > maxUploadChunks {
		return fmt.Errorf("blob %s: %w: %d chunks at a time, and %d are the most", digest.Short(), roost.Invalid, n,
			maxUploadChunks)
	}
	select {
	case u.slots <- struct{}{}:
		defer func() { <-u.slots }()
	default:
		return fmt.Errorf("blob %s: %w: this machine serves %d others, and no more", digest.Short(), roost.Exhausted,
			cap(u.slots))
	}
	buffer := make([]byte, store.ChunkBytes)
	for _, i := range req.GetChunks() {
		data, err := from.ReadChunk(digest, int(i), buffer)
		if err != nil {
			return err
		}
		if err := u.limiter.WaitN(ctx, len(data)); err != nil {
			return errors.Join(err, ctx.Err())
		}
		if err := sendChunk(send, int(i), data); err != nil {
			return err
		}
		u.counter.Sent(len(data))
	}
	return nil
}
