package streams

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"time"

	"google.golang.org/grpc"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/startd/claim"
)

// Following a stream looks for more at growing distances while nothing comes.
const (
	firstTailInterval = 20 * time.Millisecond
	maxTailInterval   = 250 * time.Millisecond
	tailChunk         = 64 << 10
)

// Tail sends what an attempt has written to a stream. With follow it sends what the
// attempt goes on to write, until it ends.
func (m *Server) Tail(req *wire.TailRequest, stream grpc.ServerStreamingServer[wire.LogChunk]) error {
	a, err := m.acquireAttempt(stream.Context(), req.GetSchedd(), req.GetAttempt())
	if err != nil {
		return err
	}
	defer a.ReleaseFiles()
	ctx, cancel := a.FilesContext(stream.Context())
	defer cancel()
	read, done, err := m.outputSource(ctx, a, req.GetStderr())
	if err != nil {
		return err
	}
	defer done()
	offset, look := req.GetOffset(), firstTailInterval
	for {
		over := a.HasEnded()
		data, err := read(offset)
		if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, roost.NoInput) {
			return err
		}
		if len(data) > 0 {
			chunk := &wire.LogChunk{Data: data, Stderr: req.GetStderr(), Attempt: a.Number()}
			if err := stream.Send(chunk); err != nil {
				return err
			}
			offset, look = offset+int64(len(data)), firstTailInterval
			continue
		}
		if over || !req.GetFollow() {
			return nil
		}
		if look = waitTail(ctx, a, look); look == 0 {
			return nil
		}
	}
}

// waitTail waits for the next look or the attempt's end, and returns how long to wait
// after that. 0: the reader has gone.
func waitTail(ctx context.Context, a *claim.Attempt, look time.Duration) time.Duration {
	timer := time.NewTimer(look)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-a.Ended():
	case <-ctx.Done():
		return 0
	}
	return min(2*look, maxTailInterval)
}

// outputSource finds where a stream of an attempt goes. Captured, it is a file of ours;
// else it is the user's, and read with that user's rights.
func (m *Server) outputSource(ctx context.Context, a *claim.Attempt,
	stderr bool) (read func(int64) ([]byte, error), done func(), err error) {
	select {
	case <-a.Launched(): // before, there is nothing to read
	case <-ctx.Done():
		return nil, nil, ctx.Err()
	}
	path, captured := a.Stream(stderr)
	if captured {
		return func(offset int64) ([]byte, error) { return readCaptured(path, offset, tailChunk) }, func() {}, nil
	}
	agent, err := m.agents.Acquire(a.Credential())
	if err != nil {
		return nil, nil, err
	}
	read = func(offset int64) ([]byte, error) {
		data, _, err := agent.ReadAt(ctx, filepath.Dir(path), filepath.Base(path), offset)
		return data, err
	}
	return read, func() { m.agents.Release(a.Credential()) }, nil
}
