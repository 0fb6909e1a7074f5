package files

import (
	"context"
	"io"
	"io/fs"
)

// Reader reads a file through an agent. Its context ends the reading, because io.Reader has no place for one.
type Reader struct {
	link   *link
	ctx    context.Context
	handle uint64
	entry  Entry
	rest   []byte
	end    bool
}

// Stage is a set of files that an agent makes, and that get their names together.
type Stage struct {
	agent  *Agent
	base   string
	handle uint64
	done   bool
}

// Open opens a regular file for reading from offset on. An absolute name stands for itself: only our own side may give one.
func (a *Agent) Open(ctx context.Context, base, name string, offset int64) (*Reader, error) {
	return a.open(ctx, request{Op: opOpen, Base: base, Name: name, Offset: offset})
}

func (a *Agent) open(ctx context.Context, q request) (*Reader, error) {
	handle := a.link.number()
	q.Handle = handle
	r, _, err := a.link.call(ctx, q, nil)
	if err != nil {
		a.link.forget(handle)
		return nil, err
	}
	reader := &Reader{link: a.link, ctx: ctx, handle: handle}
	if len(r.Entries) == 1 {
		reader.entry = r.Entries[0]
	}
	return reader, nil
}

// Entry describes the file as it was when it was opened.
func (r *Reader) Entry() Entry { return r.entry }

// Read reads the next bytes; io.EOF at the end of the file as it is then.
func (r *Reader) Read(p []byte) (int, error) {
	if len(r.rest) == 0 && !r.end {
		_, data, err := r.next()
		if err != nil {
			return 0, err
		}
		r.rest, r.end = data, len(data) == 0
	}
	if len(r.rest) == 0 {
		return 0, io.EOF
	}
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

// next reads a chunk and the length of the hole before it, if the file was opened so that holes are left out; nothing of both is the end.
func (r *Reader) next() (hole int64, data []byte, err error) {
	answer, data, err := r.link.call(r.ctx, request{Op: opRead, Handle: r.handle}, nil)
	return answer.Size, data, err
}

// Close closes the file.
func (r *Reader) Close() error {
	r.link.forget(r.handle)
	return nil
}

// Writer makes a file through an agent. Nothing is to be seen under its name before Commit.
type Writer struct {
	link   *link
	ctx    context.Context
	handle uint64
	done   bool
}

// Create starts a file. It is written under another name in the same directory, which is made, with those above it, if it is missing.
func (a *Agent) Create(ctx context.Context, base, name string, opts CreateOptions) (*Writer, error) {
	return a.create(ctx, request{Op: opCreate, Base: base, Name: name, Mode: uint32(opts.Mode.Perm()), Sync: opts.Sync})
}

func (a *Agent) create(ctx context.Context, q request) (*Writer, error) {
	handle := a.link.number()
	q.Handle = handle
	if _, _, err := a.link.call(ctx, q, nil); err != nil {
		a.link.forget(handle)
		return nil, err
	}
	return &Writer{link: a.link, ctx: ctx, handle: handle}, nil
}

// Write appends p.
func (w *Writer) Write(p []byte) (n int, err error) {
	for len(p) > 0 {
		chunk := p[:min(len(p), ChunkSize)]
		if _, _, err := w.link.call(w.ctx, request{Op: opWrite, Handle: w.handle}, chunk); err != nil {
			return n, err
		}
		n += len(chunk)
		p = p[len(chunk):]
	}
	return n, nil
}

// skip leaves out bytes, so that there is a hole.
func (w *Writer) skip(hole int64) error {
	_, _, err := w.link.call(w.ctx, request{Op: opWrite, Handle: w.handle, Offset: hole}, nil)
	return err
}

// Commit gives the file its name, in place of whatever file had it.
func (w *Writer) Commit() error {
	w.done = true
	_, _, err := w.link.call(w.ctx, request{Op: opCommit, Handle: w.handle}, nil)
	if err != nil {
		w.link.forget(w.handle) // it may not have come so far
	}
	return err
}

// Close drops the file unless Commit was called before.
func (w *Writer) Close() error {
	if !w.done {
		w.done = true
		w.link.forget(w.handle)
	}
	return nil
}

// Stage begins a set of files below base. Its Commit gives all of them their names; Close drops them unless Commit was called before.
func (a *Agent) Stage(ctx context.Context, base string) (*Stage, error) {
	t := &Stage{agent: a, base: base, handle: a.link.number()}
	if _, _, err := a.link.call(ctx, request{Op: opStage, Base: base, Handle: t.handle}, nil); err != nil {
		a.link.forget(t.handle)
		return nil, err
	}
	return t, nil
}

// Create is Agent.Create for a file of the set: its Commit says that it is complete. It is to be committed or closed before the set is.
func (t *Stage) Create(ctx context.Context, name string, opts CreateOptions) (*Writer, error) {
	return t.agent.create(ctx, request{Op: opCreate, Stage: t.handle, Base: t.base, Name: name, Mode: uint32(opts.Mode.Perm()), Sync: opts.Sync})
}

// Mkdir is Agent.Mkdir for a directory that goes if the set is dropped.
func (t *Stage) Mkdir(ctx context.Context, name string, mode fs.FileMode) error {
	_, _, err := t.agent.link.call(ctx, request{Op: opMkdir, Stage: t.handle, Base: t.base, Name: name, Mode: uint32(mode.Perm())}, nil)
	return err
}

// Commit gives the files of the set their names, in place of whatever files had them. Where one cannot have it, those before it have theirs.
func (t *Stage) Commit(ctx context.Context) error {
	t.done = true
	_, _, err := t.agent.link.call(ctx, request{Op: opInstall, Handle: t.handle}, nil)
	if err != nil {
		t.agent.link.forget(t.handle)
	}
	return err
}

// Close drops the set unless Commit was called before.
func (t *Stage) Close() error {
	if !t.done {
		t.done = true
		t.agent.link.forget(t.handle)
	}
	return nil
}
