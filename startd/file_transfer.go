package startd

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"google.golang.org/grpc"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/attack"
	"github.com/roost-batch/roost/internal/userfiles"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/startd/starterclient"
)

// The names under which captured streams are fetched. No file can have them.
const (
	fetchStdout = "\x00stdout"
	fetchStderr = "\x00stderr"
)

// acquireAttempt finds an attempt for a transfer that ends with leave.
func (m *claimHost) acquireAttempt(ctx context.Context, schedd string, ref *wire.AttemptRef) (*claimAttempt, error) {
	if err := checkScheddIdentity(ctx, schedd); err != nil {
		return nil, err
	}
	id := ref.AttemptID(schedd)
	var h *claimRunner
	q := loopQuery{func(l *machineLoop) {
		if c, ok := l.table.Find(id); ok {
			h = l.runners[c.ID]
		}
	}, make(chan struct{})}
	m.postEvent(q)
	select {
	case <-q.done:
	case <-m.loopDone:
		return nil, fmt.Errorf("attempt %v: %w: the startd is going away", id, roost.Unavailable)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if h != nil {
		if a := h.sharedAttempt.Load(); a != nil && a.id == id {
			return a, a.acquireFiles()
		}
	}
	return nil, fmt.Errorf("attempt %v: %w on this machine", id, roost.NotFound)
}

// filesContext returns a context that also ends when the attempt's files are to go.
func (a *claimAttempt) filesContext(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(a.ctx, cancel)
	return ctx, func() { stop(); cancel() }
}

// Put brings input files into an attempt's scratch directory, while it holds for them.
func (m *claimHost) Put(stream grpc.ClientStreamingServer[wire.FileChunk, wire.PutReply]) error {
	first, err := stream.Recv()
	if err != nil {
		return err
	}
	a, err := m.acquireAttempt(stream.Context(), first.GetSchedd(), first.GetAttempt())
	if err != nil {
		return err
	}
	defer a.releaseFiles()
	if first.GetScript() && a.awaitsInput() && a.program.GetScriptFollows() {
		return m.putScript(stream, a)
	}
	if a.record.Scratch == "" || !a.awaitsInput() {
		return fmt.Errorf("attempt %v: %w: it does not wait for input", a.id, roost.Conflict)
	}
	ctx, cancel := a.filesContext(stream.Context())
	defer cancel()
	recv := func() (*wire.FileChunk, error) {
		if chunk := first; chunk != nil {
			first = nil
			return chunk, nil
		}
		return stream.Recv()
	}
	n, size, err := userfiles.ReceiveEntries(ctx, recv, a.agent, a.record.Scratch, a.inputFilter(first.GetTotals()))
	if wrong, ok := errors.AsType[*userfiles.MismatchError](err); ok {
		m.log.Warn("a schedd did not send the input that was asked for", "schedd", a.id.Task.Job.Host, "attempt",
			a.label(), "file", wrong.Name, "error", wrong)
	}
	if err != nil {
		return err
	}
	return stream.SendAndClose(&wire.PutReply{Files: uint32(n), Bytes: size})
}

// inputFilter is what a schedd may send for the attempt: what its program names, as much
// as the schedd has said now, and no more than the disk that it may use.
func (a *claimAttempt) inputFilter(totals *wire.TransferTotals) *userfiles.TransferManifest {
	m := &userfiles.TransferManifest{Totals: totals, Bytes: int64(a.disk)}
	if len(a.inputPatterns) > 0 { // a schedd of the last version says nothing of them
		m.IsAsked = userfiles.AskedFilter(a.inputPatterns)
	}
	return m
}

// putScript writes the text of an attempt's program as it comes, in the place of its
// first line. Should it come again, because the first time was broken off, it begins
// anew.
func (m *claimHost) putScript(stream grpc.ClientStreamingServer[wire.FileChunk, wire.PutReply], a *claimAttempt) error {
	path, size := filepath.Join(a.record.IO, scriptName), int64(0)
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("script: %w", err)
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o500)
	if err != nil {
		return fmt.Errorf("script: %w", err)
	}
	defer f.Close()
	for {
		chunk, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		if size += int64(len(chunk.GetData())); size > maxScript || !a.awaitsInput() {
			return fmt.Errorf("script of attempt %v: %w: it is too long, or comes too late", a.id, roost.Conflict)
		}
		if _, err := f.Write(chunk.GetData()); err != nil {
			return fmt.Errorf("script: %w", err)
		}
	}
	if cred := a.cred; int(cred.UID) != os.Geteuid() {
		if err := f.Chown(int(cred.UID), int(cred.GID)); err != nil {
			return fmt.Errorf("script: %w", err)
		}
	}
	return stream.SendAndClose(&wire.PutReply{Files: 1, Bytes: size})
}

// maxScript is how many bytes of a script a schedd may send; it takes no longer ones.
const maxScript = 100 << 20

// Fetch brings an ended attempt's output home: of its files only those that were listed.
// A startd that has just been restarted knows the attempt before it knows that it has
// ended, and lets the schedd wait.
func (m *claimHost) Fetch(req *wire.FetchRequest, stream grpc.ServerStreamingServer[wire.FileChunk]) error {
	a, err := m.acquireAttempt(stream.Context(), req.GetSchedd(), req.GetAttempt())
	if err != nil {
		return err
	}
	defer a.releaseFiles()
	ctx, cancel := a.filesContext(stream.Context())
	defer cancel()
	select {
	case <-a.ended:
	case <-ctx.Done():
		return ctx.Err()
	}
	listed := make(map[string]userfiles.TransferEntry, len(a.outputs))
	for _, e := range a.outputs {
		listed[e.Name] = e
	}
	if attack.Is(attack.ExtraOutputs) {
		sum := sha256.Sum256([]byte("key"))
		for _, chunk := range []*wire.FileChunk{
			{Entry: &wire.FileEntry{Name: ".ssh/authorized_keys", Size: 3, Mode: 0o600}}, {Data: []byte("key")},
			{Eof: true, Sha256: sum[:]},
		} {
			stream.Send(chunk)
		}
	}
	for _, name := range req.GetNames() {
		if name == fetchStdout || name == fetchStderr {
			err = m.fetchCaptured(ctx, stream.Send, a, name)
		} else if e, ok := listed[name]; ok {
			err = userfiles.SendEntries(ctx, stream.Send, a.agent, a.record.Scratch, []userfiles.TransferEntry{e},
				userfiles.SendOptions{SendHoles: req.GetHoles()})
		} else {
			err = fmt.Errorf("output %q of attempt %v: %w", name, a.id, roost.NotFound)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// fetchCaptured sends what an attempt wrote to a stream that was captured. The file is
// the starter's, in a directory of ours.
func (m *claimHost) fetchCaptured(ctx context.Context, send func(*wire.FileChunk) error, a *claimAttempt,
	name string) error {
	path := starterclient.CapturedPath(a.record.IO, name == fetchStderr)
	info, err := os.Lstat(path)
	if err != nil {
		return fmt.Errorf("captured output of attempt %v: %w: %w", a.id, roost.NotFound, err)
	}
	size := a.recordedExit.GetStdoutSize() // as it was told: what is left of the task may still write
	if name == fetchStderr {
		size = a.recordedExit.GetStderrSize()
	}
	if info.Size() < size {
		return fmt.Errorf("captured output of attempt %v: %w: it had %d bytes, and now %d", a.id, roost.NoInput, size,
			info.Size())
	}
	self := userfiles.UserCredential{UID: uint32(os.Geteuid()), GID: uint32(os.Getegid())}
	agent, err := m.agents.Acquire(self)
	if err != nil {
		return err
	}
	defer m.agents.Release(self)
	return userfiles.SendEntries(ctx, send, agent, a.record.IO, []userfiles.TransferEntry{{Name: name, Source: path,
		Size: size, Mode: 0o600}}, userfiles.SendOptions{MayGrow: true})
}

// readCaptured reads a piece of a captured stream.
func readCaptured(path string, offset int64, size int) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data := make([]byte, size)
	n, err := f.ReadAt(data, offset)
	if err == io.EOF {
		err = nil
	}
	return data[:n], err
}
