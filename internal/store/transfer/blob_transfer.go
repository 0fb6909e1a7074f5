// Package transfer moves blobs of package store between machines. Both ends compare every
// chunk with its digest, so neither has to trust the other.
package transfer

import (
	"context"
	"errors"
	"fmt"
	"io"

	"google.golang.org/grpc"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/store"
	"github.com/roost-batch/roost/internal/wire"
)

const (
	partBytes = 256 << 10 // of a chunk in one message
	batch     = 64        // chunks in one request
)

// Fetch gets a blob from a server into a directory. If it is there, nothing is sent; what
// came before a broken connection is not sent again. progress, which may be nil, learns
// of each chunk. A blob that arrives for another caller is waited for.
func Fetch(ctx context.Context, from wire.CheckpointServerClient, digest store.Digest, to *store.Directory,
	progress func(have, size int64)) error {
	if _, ok := to.Path(digest); ok {
		return nil
	}
	m, err := fetchManifest(ctx, from, digest)
	if err != nil {
		return err
	}
	if progress != nil {
		progress(0, m.Size) // also if there is no room for it
	}
	in, err := to.Receive(ctx, m, "")
	if err != nil {
		return err
	}
	defer in.Close()
	have := m.Size
	missing := in.Missing()
	for _, i := range missing {
		have -= int64(m.ChunkSize(i))
	}
	for len(missing) > 0 {
		n := min(len(missing), batch)
		err := fetchChunks(ctx, from, digest, m, in, missing[:n], func(bytes int) {
			if have += int64(bytes); progress != nil {
				progress(have, m.Size)
			}
		})
		if err != nil {
			return fmt.Errorf("blob %s: %w", digest.Short(), err)
		}
		missing = missing[n:]
	}
	_, err = in.Finish()
	return err
}

// fetchManifest gets the manifest of a blob.
func fetchManifest(ctx context.Context, from wire.CheckpointServerClient, digest store.Digest) (m store.Manifest,
	err error) {
	reply, err := from.GetManifest(ctx, &wire.BlobRequest{Digest: string(digest)})
	if err != nil {
		return m, fmt.Errorf("blob %s: %w", digest.Short(), rpc.FromStatus(err))
	}
	m, err = store.DecodeManifest(reply.GetManifest())
	if err == nil && m.Digest() != digest {
		err = fmt.Errorf("%w: the server sent the manifest of %s", roost.Invalid, m.Digest().Short())
	}
	if err != nil {
		return m, fmt.Errorf("blob %s: %w", digest.Short(), err)
	}
	return m, nil
}

// fetchChunks gets some chunks of a blob.
func fetchChunks(ctx context.Context, from wire.CheckpointServerClient, digest store.Digest, m store.Manifest,
	in *store.Incoming, chunks []int, arrived func(bytes int)) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // the stream, if it is left early
	req := &wire.BlobRequest{Digest: string(digest)}
	for _, i := range chunks {
		req.Chunks = append(req.Chunks, uint32(i))
	}
	stream, err := from.GetChunks(ctx, req)
	if err != nil {
		return rpc.FromStatus(err)
	}
	buffer := make([]byte, 0, store.ChunkBytes)
	for range chunks {
		i, data, err := receiveChunk(stream.Recv, m, buffer)
		if err == nil {
			err = in.Put(i, data)
		}
		if err != nil {
			return rpc.FromStatus(err)
		}
		arrived(len(data))
	}
	return nil
}

// receiveChunk puts the parts of a chunk together. The bytes are in buffer.
func receiveChunk(recv func() (*wire.BlobPart, error), m store.Manifest, buffer []byte) (chunk int, data []byte,
	err error) {
	data = buffer[:0]
	for first := true; ; first = false {
		part, err := recv()
		if errors.Is(err, io.EOF) {
			return 0, nil, fmt.Errorf("%w: the stream ended before all chunks came", roost.Unavailable)
		}
		if err != nil {
			return 0, nil, err
		}
		if i := int(part.GetChunk()); first {
			chunk = i
		} else if i != chunk {
			return 0, nil, fmt.Errorf("%w: chunk %d comes in the middle of chunk %d", roost.Invalid, i, chunk)
		}
		if chunk >= len(m.Chunks) || len(data)+len(part.GetData()) > m.ChunkSize(chunk) {
			return 0, nil, fmt.Errorf("%w: chunk %d is longer than it can be", roost.Invalid, chunk)
		}
		data = append(data, part.GetData()...)
		if part.GetLast() {
			return chunk, data, nil
		}
		if len(part.GetData()) == 0 {
			return 0, nil, fmt.Errorf("%w: an empty part of chunk %d", roost.Invalid, chunk)
		}
	}
}

// sendChunk sends a chunk in parts.
func sendChunk(send func(*wire.BlobPart) error, chunk int, data []byte) error {
	for {
		n := min(len(data), partBytes)
		// A message may be on its way when the buffer is read into again.
		part := &wire.BlobPart{Chunk: uint32(chunk), Data: append([]byte(nil), data[:n]...), Last: n == len(data)}
		if err := send(part); err != nil {
			return err
		}
		if data = data[n:]; part.GetLast() {
			return nil
		}
	}
}

// SendChunks sends chunks of a blob as they are asked for, each compared with its digest.
// sent learns the bytes of each.
func SendChunks(from *store.Directory, req *wire.BlobRequest, send func(*wire.BlobPart) error,
	sent func(bytes int)) error {
	digest, err := store.ParseDigest(req.GetDigest())
	if err != nil {
		return err
	}
	b, err := from.OpenBlob(digest)
	if err != nil {
		return err
	}
	defer b.Close()
	buffer := make([]byte, store.ChunkBytes)
	for _, i := range req.GetChunks() {
		data, err := b.ReadChunk(int(i), buffer)
		if err == nil {
			err = sendChunk(send, int(i), data)
		}
		if err != nil {
			return err
		}
		sent(len(data))
	}
	return nil
}

// PushStream is a call of PutBlob.
type PushStream interface {
	Send(*wire.BlobPart) error
	CloseSend() error
	Recv() (*wire.BlobMissing, error)
}

// Push puts a whole blob on a server, which charges a user for it. Only chunks that the
// server lacks are sent. progress, which may be nil, learns how much is there. Errors are
// those of the stream.
func Push(stream PushStream, b *store.Blob, uid uint32, progress func(have, size int64)) error {
	// An error of Send says only that the stream ended; Recv has the reason.
	if err := stream.Send(&wire.BlobPart{Manifest: b.Manifest.Encode(), Uid: uid}); err != nil &&
		!errors.Is(err, io.EOF) {
		return err
	}
	missing, err := stream.Recv()
	if err != nil {
		return err
	}
	buffer, have := make([]byte, store.ChunkBytes), b.Manifest.Size
	for _, i := range missing.GetChunks() {
		have -= int64(b.Manifest.ChunkSize(int(i)))
	}
	for _, i := range missing.GetChunks() {
		data, err := b.ReadChunk(int(i), buffer)
		if err != nil {
			return err
		}
		if have += int64(len(data)); progress != nil {
			progress(have, b.Manifest.Size)
		}
		if err := sendChunk(stream.Send, int(i), data); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return err
		}
	}
	if err := stream.CloseSend(); err != nil {
		return err
	}
	for !missing.GetWhole() {
		if missing, err = stream.Recv(); err != nil {
			return err
		}
	}
	return nil
}

// Accept receives a blob that somebody pushes, for an owner. first is the first message.
func Accept(ctx context.Context, to *store.Directory, first *wire.BlobPart, owner string,
	stream grpc.BidiStreamingServer[wire.BlobPart, wire.BlobMissing], moved func()) error {
	m, err := store.DecodeManifest(first.GetManifest())
	if err != nil {
		return err
	}
	in, err := to.Receive(ctx, m, owner)
	if err != nil {
		return err
	}
	defer in.Close()
	missing := in.Missing()
	reply := &wire.BlobMissing{}
	for _, i := range missing {
		reply.Chunks = append(reply.Chunks, uint32(i))
	}
	if err := stream.Send(reply); err != nil {
		return err
	}
	buffer := make([]byte, 0, store.ChunkBytes)
	for range missing {
		i, data, err := receiveChunk(stream.Recv, m, buffer)
		if err == nil {
			err = in.Put(i, data)
		}
		if err != nil {
			return err
		}
		moved()
	}
	if _, err := in.Finish(); err != nil {
		return err
	}
	return stream.Send(&wire.BlobMissing{Whole: true})
}
