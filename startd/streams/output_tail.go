package streams

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"google.golang.org/grpc"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/outputfile"
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
	source, done, err := m.outputSource(ctx, a, req.GetStderr())
	if err != nil {
		return err
	}
	defer done()
	wanted, err := source.selection(req)
	if err != nil {
		return err
	}
	offset, look := max(req.GetOffset(), wanted.Start), firstTailInterval
	if req.GetTail() > 0 {
		offset = max(min(source.size(), wanted.End)-req.GetTail(), offset)
	}
	send := func(data []byte, at, written int64) error {
		return stream.Send(&wire.LogChunk{Data: data, Stderr: req.GetStderr(), Attempt: a.Number(), Offset: at,
			WrittenMs: written})
	}
	for {
		over := a.HasEnded()
		data, at, err := source.read(offset)
		if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, roost.NoInput) {
			return err
		}
		if data = wanted.Cut(data, at); len(data) > 0 {
			if err := wanted.Send(data, at, send); err != nil {
				return err
			}
			offset, look = at+int64(len(data)), firstTailInterval
			continue
		}
		if over || !req.GetFollow() || at >= wanted.End {
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

// outputSource reads a stream of an attempt that may still grow.
type outputSource struct {
	// read returns what is at an offset, or at a later one if that is not kept any more
	read     func(offset int64) (data []byte, at int64, err error)
	size     func() int64 // 0: not known
	path     string       // of a captured stream
	userFile string       // to which the task writes the stream itself
}

// selection returns the part of the stream that a request wants. When the parts of a file
// of the user's were written is not known.
func (s *outputSource) selection(req *wire.TailRequest) (outputfile.TimeSelection, error) {
	switch {
	case !outputfile.SelectsByTime(req) && (!req.GetTimes() || s.path == ""):
		return outputfile.SelectAll(), nil
	case s.path == "":
		return outputfile.SelectAll(), outputfile.UnknownTimesError(s.userFile)
	}
	marks, err := outputfile.ReadTimeMarks(s.path, time.Now())
	return marks.Select(req), err
}

// outputSource finds where a stream of an attempt goes. Captured, it is a file of ours;
// else it is the user's, and read with that user's rights.
func (m *Server) outputSource(ctx context.Context, a *claim.Attempt,
	stderr bool) (source outputSource, done func(), err error) {
	select {
	case <-a.Launched(): // before, there is nothing to read
	case <-ctx.Done():
		return source, nil, ctx.Err()
	}
	path, captured := a.Stream(stderr)
	if captured {
		return capturedSource(path), func() {}, nil
	}
	source.userFile = path
	agent, err := m.agents.Acquire(a.Credential())
	if err != nil {
		return source, nil, err
	}
	source.read = func(offset int64) ([]byte, int64, error) {
		data, _, err := agent.ReadAt(ctx, filepath.Dir(path), filepath.Base(path), offset)
		return data, offset, err
	}
	source.size = func() int64 {
		e, err := agent.Stat(ctx, filepath.Dir(path), filepath.Base(path))
		if err != nil {
			return 0
		}
		return e.Size
	}
	return source, func() { m.agents.Release(a.Credential()) }, nil
}

// capturedSource reads a file of a captured stream, of which the oldest lines may be
// removed at any time.
func capturedSource(path string) outputSource {
	return outputSource{
		path: path,
		read: func(offset int64) ([]byte, int64, error) { return readCaptured(path, offset, tailChunk) },
		size: func() int64 {
			info, err := os.Lstat(path)
			if err != nil {
				return 0
			}
			return info.Size()
		},
	}
}

// readCaptured reads a piece of a captured stream.
func readCaptured(path string, offset int64, size int) (piece []byte, at int64, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, offset, err
	}
	defer f.Close()
	for data := make([]byte, size); ; {
		n, err := f.ReadAt(data, offset)
		if err != nil && err != io.EOF {
			return nil, offset, err
		}
		// only now: what was removed while it was read is zeros
		start, err := outputfile.DataStart(f)
		if err != nil || start <= offset {
			return data[:n], offset, err
		}
		offset = start
	}
}
