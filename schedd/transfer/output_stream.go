package transfer

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"strings"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/userfiles"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/schedd/codec"
)

// fetchStream asks the node for a captured stream that was too large to come along.
func (c *OutputFetch) fetchStream(ctx context.Context, stderr bool) (io.Reader, error) {
	name, size := capturedOut, c.Exited.GetStdoutSize()
	if stderr {
		name, size = capturedErr, c.Exited.GetStderrSize()
	}
	from, err := c.Peer.Client.Fetch(ctx,
		&wire.FetchRequest{Schedd: c.host, Attempt: codec.AttemptRef(c.Attempt), Names: []string{name}})
	if err != nil {
		return nil, rpc.FromStatus(err)
	}
	return &chunkReader{recv: c.stream.receivePaced(from.Recv), name: name, size: size, sum: sha256.New()}, nil
}

// chunkReader reads the data of one captured stream as it comes, and compares it with
// what was announced.
type chunkReader struct {
	recv func() (*wire.FileChunk, error)
	name string
	size int64
	sum  hash.Hash
	read int64
	rest []byte
	done bool
}

func (r *chunkReader) Read(p []byte) (int, error) {
	for len(r.rest) == 0 {
		if r.done {
			return 0, io.EOF
		}
		chunk, err := r.recv()
		if errors.Is(err, io.EOF) {
			return 0, fmt.Errorf("%w: the stream ended in the middle", roost.Unavailable)
		}
		if err != nil {
			return 0, rpc.FromStatus(err)
		}
		if err := r.checkChunk(chunk); err != nil {
			return 0, err
		}
		r.rest, r.done = chunk.GetData(), chunk.GetEof()
	}
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

// checkChunk compares a chunk with what was to come.
func (r *chunkReader) checkChunk(chunk *wire.FileChunk) error {
	r.sum.Write(chunk.GetData())
	r.read += int64(len(chunk.GetData()))
	wrong := func(format string, args ...any) error {
		return &userfiles.MismatchError{Name: strings.TrimPrefix(r.name, "\x00"), Cause: fmt.Sprintf(format, args...)}
	}
	switch e := chunk.GetEntry(); {
	case e != nil && (e.GetName() != r.name || e.GetDir()):
		return wrong("%.200q came in its place", e.GetName())
	case r.read > r.size:
		return wrong("%d bytes were announced, and more came", r.size)
	case chunk.GetEof() && r.read < r.size:
		return wrong("%d bytes were announced, and %d came", r.size, r.read)
	case chunk.GetEof() && !bytes.Equal(r.sum.Sum(nil), chunk.GetSha256()):
		return wrong("what came of it does not have its digest")
	}
	return nil
}
