package startd

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"time"

	"google.golang.org/grpc"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/startd/starterclient"
)

// Following a stream looks for more at growing distances while nothing comes.
const (
	firstTailInterval = 20 * time.Millisecond
	maxTailInterval   = 250 * time.Millisecond
	tailChunk         = 64 << 10
)

// Tail sends what an attempt has written to a stream, and with follow what it goes on to
// write, until it ends.
func (m *claimHost) Tail(req *wire.TailRequest, stream grpc.ServerStreamingServer[wire.LogChunk]) error {
	a, err := m.acquireAttempt(stream.Context(), req.GetSchedd(), req.GetAttempt())
	if err != nil {
		return err
	}
	defer a.releaseFiles()
	ctx, cancel := a.filesContext(stream.Context())
	defer cancel()
	read, done, err := m.outputSource(ctx, a, req.GetStderr())
	if err != nil {
		return err
	}
	defer done()
	offset, look := req.GetOffset(), firstTailInterval
	for {
		over := a.hasEnded()
		data, err := read(offset)
		if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, roost.NoInput) {
			return err
		}
		if len(data) > 0 {
			chunk := &wire.LogChunk{Data: data, Stderr: req.GetStderr(), Attempt: a.record.Attempt}
			if err := stream.Send(chunk); err != nil {
				return err
			}
			offset, look = offset+int64(len(data)), firstTailInterval
			continue
		}
		if over || !req.GetFollow() {
			return nil
		}
		if look = a.waitTail(ctx, look); look == 0 {
			return nil
		}
	}
}

// hasEnded reports whether nothing more will be written.
func (a *claimAttempt) hasEnded() bool {
	select {
	case <-a.ended:
		return true
	default:
		return false
	}
}

// waitTail waits for the next look, or the attempt's end, and returns how long to wait
// after that; 0 when the reader has gone.
func (a *claimAttempt) waitTail(ctx context.Context, look time.Duration) time.Duration {
	timer := time.NewTimer(look)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-a.ended:
	case <-ctx.Done():
		return 0
	}
	return min(2*look, maxTailInterval)
}

// outputSource finds where a stream of an attempt goes. Captured, it is a file of ours;
// else it is the user's, and read as he.
func (m *claimHost) outputSource(ctx context.Context, a *claimAttempt,
	stderr bool) (read func(int64) ([]byte, error), done func(), err error) {
	select {
	case <-a.launchDone: // before, there is nothing to read
	case <-ctx.Done():
		return nil, nil, ctx.Err()
	}
	r := &a.record
	if r.Join {
		stderr = false
	}
	path := r.Stdout
	if stderr {
		path = r.Stderr
	}
	if path == "" {
		captured := starterclient.CapturedPath(r.IO, stderr)
		return func(offset int64) ([]byte, error) { return readCaptured(captured, offset, tailChunk) }, func() {}, nil
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(r.Cwd, path)
	}
	agent, err := m.agents.Acquire(a.cred)
	if err != nil {
		return nil, nil, err
	}
	read = func(offset int64) ([]byte, error) {
		data, _, err := agent.ReadAt(ctx, filepath.Dir(path), filepath.Base(path), offset)
		return data, err
	}
	return read, func() { m.agents.Release(a.cred) }, nil
}
