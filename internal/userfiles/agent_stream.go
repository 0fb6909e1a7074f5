package userfiles

import (
	"context"
	"io"
	"io/fs"
)

// AgentReader reads a file through an agent. It has a context of its own, because
// io.Reader has no parameter for one.
type AgentReader struct {
	link      *agentConn
	ctx       context.Context
	handle    uint64
	entry     TransferEntry
	remaining []byte
	atEnd     bool
}

// RemoteStage is a set of files that an agent makes, and that get their names together.
type RemoteStage struct {
	agent  *Agent
	base   string
	handle uint64
	done   bool
}

// Open opens a regular file for reading from offset on. An absolute name is used as it
// is: only the user's own side may give one.
func (a *Agent) Open(ctx context.Context, base, name string, offset int64) (*AgentReader, error) {
	return a.open(ctx, agentRequest{Op: opOpen, Base: base, Name: name, Offset: offset})
}

func (a *Agent) open(ctx context.Context, q agentRequest) (*AgentReader, error) {
	handle := a.link.nextNumber()
	q.Handle = handle
	r, _, err := a.link.call(ctx, q, nil)
	if err != nil {
		a.link.dropHandle(handle)
		return nil, err
	}
	reader := &AgentReader{link: a.link, ctx: ctx, handle: handle}
	if len(r.Entries) == 1 {
		reader.entry = r.Entries[0]
	}
	return reader, nil
}

// Entry returns the file as it was when it was opened.
func (r *AgentReader) Entry() TransferEntry { return r.entry }

// Read reads the next bytes, until io.EOF at the file's present end.
func (r *AgentReader) Read(p []byte) (int, error) {
	if len(r.remaining) == 0 && !r.atEnd {
		_, data, err := r.readChunk()
		if err != nil {
			return 0, err
		}
		r.remaining, r.atEnd = data, len(data) == 0
	}
	if len(r.remaining) == 0 {
		return 0, io.EOF
	}
	n := copy(p, r.remaining)
	r.remaining = r.remaining[n:]
	return n, nil
}

// readChunk reads a chunk and the length of the hole before it. Holes are left out only
// if the file was opened so. Without either the file is at its end.
func (r *AgentReader) readChunk() (hole int64, data []byte, err error) {
	answer, data, err := r.link.call(r.ctx, agentRequest{Op: opRead, Handle: r.handle}, nil)
	return answer.Size, data, err
}

// Close closes the file.
func (r *AgentReader) Close() error {
	r.link.dropHandle(r.handle)
	return nil
}

// AgentWriter writes a file through an agent. The file has its name only after Commit.
type AgentWriter struct {
	link   *agentConn
	ctx    context.Context
	handle uint64
	done   bool
}

// Create starts a file. It is written under another name in the same directory, which is
// created if it is missing, with its parents.
func (a *Agent) Create(ctx context.Context, base, name string, opts CreateOptions) (*AgentWriter, error) {
	return a.create(ctx, agentRequest{Op: opCreate, Base: base, Name: name, Mode: uint32(opts.Mode.Perm()),
		Sync: opts.Sync})
}

func (a *Agent) create(ctx context.Context, q agentRequest) (*AgentWriter, error) {
	handle := a.link.nextNumber()
	q.Handle = handle
	if _, _, err := a.link.call(ctx, q, nil); err != nil {
		a.link.dropHandle(handle)
		return nil, err
	}
	return &AgentWriter{link: a.link, ctx: ctx, handle: handle}, nil
}

// Write appends p.
func (w *AgentWriter) Write(p []byte) (n int, err error) {
	for len(p) > 0 {
		chunk := p[:min(len(p), ChunkSize)]
		if _, _, err := w.link.call(w.ctx, agentRequest{Op: opWrite, Handle: w.handle}, chunk); err != nil {
			return n, err
		}
		n += len(chunk)
		p = p[len(chunk):]
	}
	return n, nil
}

// skipHole leaves out bytes, so that there is a hole.
func (w *AgentWriter) skipHole(hole int64) error {
	_, _, err := w.link.call(w.ctx, agentRequest{Op: opWrite, Handle: w.handle, Offset: hole}, nil)
	return err
}

// Commit gives the file its name, and replaces a file that had it.
func (w *AgentWriter) Commit() error {
	w.done = true
	_, _, err := w.link.call(w.ctx, agentRequest{Op: opCommit, Handle: w.handle}, nil)
	if err != nil {
		w.link.dropHandle(w.handle) // the file may not have been complete
	}
	return err
}

// Close removes the file unless Commit was called before.
func (w *AgentWriter) Close() error {
	if !w.done {
		w.done = true
		w.link.dropHandle(w.handle)
	}
	return nil
}

// BeginStage begins a set of files below base. Its Commit gives all of them their names;
// Close removes them unless Commit was called before.
func (a *Agent) BeginStage(ctx context.Context, base string) (*RemoteStage, error) {
	t := &RemoteStage{agent: a, base: base, handle: a.link.nextNumber()}
	if _, _, err := a.link.call(ctx, agentRequest{Op: opStage, Base: base, Handle: t.handle}, nil); err != nil {
		a.link.dropHandle(t.handle)
		return nil, err
	}
	return t, nil
}

// Create is Agent.Create for a file of the set. Its Commit means that the file is
// complete. It must be committed or closed before the set is.
func (t *RemoteStage) Create(ctx context.Context, name string, opts CreateOptions) (*AgentWriter, error) {
	return t.agent.create(ctx, agentRequest{Op: opCreate, Stage: t.handle, Base: t.base, Name: name,
		Mode: uint32(opts.Mode.Perm()), Sync: opts.Sync})
}

// Mkdir is Agent.Mkdir for a directory that is removed if the set is dropped.
func (t *RemoteStage) Mkdir(ctx context.Context, name string, mode fs.FileMode) error {
	_, _, err := t.agent.link.call(ctx,
		agentRequest{Op: opMkdir, Stage: t.handle, Base: t.base, Name: name, Mode: uint32(mode.Perm())}, nil)
	return err
}

// Commit gives the files of the set their names, and replaces files that had them. If one
// fails, earlier ones have their names.
func (t *RemoteStage) Commit(ctx context.Context) error {
	t.done = true
	_, _, err := t.agent.link.call(ctx, agentRequest{Op: opInstall, Handle: t.handle}, nil)
	if err != nil {
		t.agent.link.dropHandle(t.handle)
	}
	return err
}

// Close drops the set unless Commit was called before.
func (t *RemoteStage) Close() error {
	if !t.done {
		t.done = true
		t.agent.link.dropHandle(t.handle)
	}
	return nil
}
