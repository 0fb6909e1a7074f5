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
	"github.com/roost-batch/roost/startd/starter"
)

// Following a stream looks for more at growing distances while nothing comes.
const (
	firstLook = 20 * time.Millisecond
	lastLook  = 250 * time.Millisecond
	tailChunk = 64 << 10
)

// Tail sends what an attempt has written to a stream, and with follow what it goes on to write, until it ends.
func (m *machine) Tail(req *wire.TailRequest, stream grpc.ServerStreamingServer[wire.LogChunk]) error {
	a, err := m.enter(stream.Context(), req.GetSchedd(), req.GetAttempt())
	if err != nil {
		return err
	}
	defer a.leave()
	ctx, cancel := a.within(stream.Context())
	defer cancel()
	read, done, err := m.source(ctx, a, req.GetStderr())
	if err != nil {
		return err
	}
	defer done()
	offset, look := req.GetOffset(), firstLook
	for {
		over := a.ended()
		data, err := read(offset)
		if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, roost.NoInput) {
			return err
		}
		if len(data) > 0 {
			chunk := &wire.LogChunk{Data: data, Stderr: req.GetStderr(), Attempt: a.record.Attempt}
			if err := stream.Send(chunk); err != nil {
				return err
			}
			offset, look = offset+int64(len(data)), firstLook
			continue
		}
		if over || !req.GetFollow() {
			return nil
		}
		if look = a.pause(ctx, look); look == 0 {
			return nil
		}
	}
}

// ended reports whether nothing more will be written.
func (a *attempt) ended() bool {
	select {
	case <-a.over:
		return true
	default:
		return false
	}
}

// pause waits for the next look, or the attempt's end, and returns how long to wait after that; 0 when the reader has gone.
func (a *attempt) pause(ctx context.Context, look time.Duration) time.Duration {
	timer := time.NewTimer(look)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-a.over:
	case <-ctx.Done():
		return 0
	}
	return min(2*look, lastLook)
}

// source finds where a stream of an attempt goes. Captured, it is a file of ours; else it is the user's, and read as he.
func (m *machine) source(ctx context.Context, a *attempt, stderr bool) (read func(int64) ([]byte, error), done func(), err error) {
	select {
	case <-a.launched: // before, there is nothing to read
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
		captured := starter.CapturedPath(r.IO, stderr)
		return func(offset int64) ([]byte, error) { return readCaptured(captured, offset, tailChunk) }, func() {}, nil
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(r.Cwd, path)
	}
	agent, err := m.agents.take(a.cred)
	if err != nil {
		return nil, nil, err
	}
	read = func(offset int64) ([]byte, error) {
		data, _, err := agent.ReadAt(ctx, filepath.Dir(path), filepath.Base(path), offset)
		return data, err
	}
	return read, func() { m.agents.giveBack(a.cred) }, nil
}
