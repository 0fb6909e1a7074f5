package streams

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"google.golang.org/grpc"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/attack"
	"github.com/roost-batch/roost/internal/userfiles"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/startd/claim"
	"github.com/roost-batch/roost/startd/inputcache"
)

// The names under which captured streams are fetched. No file can have them.
const (
	FetchStdout = "\x00stdout"
	FetchStderr = "\x00stderr"
)

// acquireAttempt finds an attempt for a transfer that ends with leave.
func (m *Server) acquireAttempt(ctx context.Context, schedd string, ref *wire.AttemptRef) (*claim.Attempt, error) {
	if err := CheckScheddIdentity(ctx, schedd); err != nil {
		return nil, err
	}
	id := ref.AttemptID(schedd)
	var h *claim.Runner
	done := m.loop.Find(id, func(r *claim.Runner, _ int) { h = r })
	select {
	case <-done:
	case <-m.loop.Done():
		return nil, fmt.Errorf("attempt %v: %w: the startd is going away", id, roost.Unavailable)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if h != nil {
		if a := h.Attempt(); a != nil && a.ID() == id {
			return a, a.AcquireFiles()
		}
	}
	return nil, fmt.Errorf("attempt %v: %w on this machine", id, roost.NotFound)
}

// Put brings input files into an attempt's scratch directory, while it holds for them.
func (m *Server) Put(stream grpc.ClientStreamingServer[wire.FileChunk, wire.PutReply]) error {
	first, err := stream.Recv()
	if err != nil {
		return err
	}
	a, err := m.acquireAttempt(stream.Context(), first.GetSchedd(), first.GetAttempt())
	if err != nil {
		return err
	}
	defer a.ReleaseFiles()
	if first.GetScript() && a.AwaitsScript() {
		return m.putScript(stream, a)
	}
	if a.ScratchDir() == "" || !a.AwaitsInput() {
		return fmt.Errorf("attempt %v: %w: it does not wait for input", a.ID(), roost.Conflict)
	}
	ctx, cancel := a.FilesContext(stream.Context())
	defer cancel()
	recv := func() (*wire.FileChunk, error) {
		if chunk := first; chunk != nil {
			first = nil
			return chunk, nil
		}
		return stream.Recv()
	}
	filter := a.InputFilter(first.GetTotals())
	var cached *inputcache.Transfer
	if m.inputs != nil {
		cached = m.inputs.Receive(inputcache.Owner{Schedd: first.GetSchedd(), User: a.Owner()}, recv)
		defer cached.Close()
		recv = cached.Next
	}
	n, size, err := userfiles.ReceiveEntries(ctx, recv, a.Agent(), a.ScratchDir(), filter)
	switch {
	case cached == nil:
	case err == nil:
		m.countCached(cached.FromCache())
	case cached.IsMissing(err):
		return stream.SendAndClose(&wire.PutReply{Missing: true})
	}
	if wrong, ok := errors.AsType[*userfiles.MismatchError](err); ok {
		m.log.Warn("a schedd did not send the input that was asked for", "schedd", a.ID().Task.Job.Host, "attempt",
			a.Label(), "file", wrong.Name, "error", wrong)
	}
	if err != nil {
		return err
	}
	return stream.SendAndClose(&wire.PutReply{Files: uint32(n), Bytes: size})
}

// putScript writes the text of an attempt's program as it comes, in the place of its
// first line. Should it come again, because the first time was broken off, it begins
// anew.
func (m *Server) putScript(stream grpc.ClientStreamingServer[wire.FileChunk, wire.PutReply], a *claim.Attempt) error {
	path, size := a.ScriptPath(), int64(0)
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
		if size += int64(len(chunk.GetData())); size > maxScript || !a.AwaitsInput() {
			return fmt.Errorf("script of attempt %v: %w: it is too long, or comes too late", a.ID(), roost.Conflict)
		}
		if _, err := f.Write(chunk.GetData()); err != nil {
			return fmt.Errorf("script: %w", err)
		}
	}
	if cred := a.Credential(); int(cred.UID) != os.Geteuid() {
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
func (m *Server) Fetch(req *wire.FetchRequest, stream grpc.ServerStreamingServer[wire.FileChunk]) error {
	a, err := m.acquireAttempt(stream.Context(), req.GetSchedd(), req.GetAttempt())
	if err != nil {
		return err
	}
	defer a.ReleaseFiles()
	ctx, cancel := a.FilesContext(stream.Context())
	defer cancel()
	select {
	case <-a.Ended():
	case <-ctx.Done():
		return ctx.Err()
	}
	listed := make(map[string]userfiles.TransferEntry, len(a.Outputs()))
	for _, e := range a.Outputs() {
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
		if name == FetchStdout || name == FetchStderr {
			err = m.fetchCaptured(ctx, stream.Send, a, name)
		} else if e, ok := listed[name]; ok {
			err = userfiles.SendEntries(ctx, stream.Send, a.Agent(), a.ScratchDir(), []userfiles.TransferEntry{e},
				userfiles.SendOptions{SendHoles: req.GetHoles()})
		} else {
			err = fmt.Errorf("output %q of attempt %v: %w", name, a.ID(), roost.NotFound)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// fetchCaptured sends what an attempt wrote to a stream that was captured. The file is
// the starter's, in a directory of ours.
func (m *Server) fetchCaptured(ctx context.Context, send func(*wire.FileChunk) error, a *claim.Attempt,
	name string) error {
	path := a.EndedOutput(name == FetchStderr)
	info, err := os.Lstat(path)
	if err != nil {
		return fmt.Errorf("captured output of attempt %v: %w: %w", a.ID(), roost.NotFound, err)
	}
	size := a.CapturedSize(name == FetchStderr) // as it was told: what is left of the task may still write
	if info.Size() < size {
		return fmt.Errorf("captured output of attempt %v: %w: it had %d bytes, and now %d", a.ID(), roost.NoInput, size,
			info.Size())
	}
	self := userfiles.UserCredential{UID: uint32(os.Geteuid()), GID: uint32(os.Getegid())}
	agent, err := m.agents.Acquire(self)
	if err != nil {
		return err
	}
	defer m.agents.Release(self)
	return userfiles.SendEntries(ctx, send, agent, a.IODir(), []userfiles.TransferEntry{{Name: name, Source: path,
		Size: size, Mode: 0o600}}, userfiles.SendOptions{MayGrow: true})
}
