package files

import (
	"context"
	"io"
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

// Open opens a regular file for reading from offset on. An absolute name stands for itself: only our own side may give one.
func (a *Agent) Open(ctx context.Context, base, name string, offset int64) (*Reader, error) {
	handle := a.link.number()
	r, _, err := a.link.call(ctx, request{Op: opOpen, Base: base, Name: name, Offset: offset, Handle: handle}, nil)
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
		data, err := r.next()
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

// next reads a chunk; an empty one is the end.
func (r *Reader) next() ([]byte, error) {
	_, data, err := r.link.call(r.ctx, request{Op: opRead, Handle: r.handle}, nil)
	return data, err
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
	handle := a.link.number()
	q := request{Op: opCreate, Base: base, Name: name, Mode: uint32(opts.Mode.Perm()), Sync: opts.Sync, Handle: handle}
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

// Commit gives the file its name, in place of whatever file had it.
func (w *Writer) Commit() error {
	w.done = true
	_, _, err := w.link.call(w.ctx, request{Op: opCommit, Handle: w.handle}, nil)
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
