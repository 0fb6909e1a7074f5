package files

import (
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"

	"github.com/roost-batch/roost"
)

// ServeAgent does what the other end of conn asks for, with the rights of this process, until conn is closed. It is the whole of the
// command "files-agent".
func ServeAgent(conn io.ReadWriter) error {
	s := &server{readers: map[uint64]*extentReader{}, writers: map[uint64]*draft{}, stages: map[uint64]*stagedSet{}, pages: map[uint64][]Entry{}}
	defer s.closeAll()
	var writing, measuring sync.Mutex
	var removing atomic.Bool
	answer := func(q *request, r reply, out []byte, err error) error {
		r.ID = q.ID
		if err != nil {
			r, out = refusal(q.ID, err), nil
		}
		writing.Lock()
		defer writing.Unlock()
		return writeMessage(conn, r, out)
	}
	for {
		var q request
		data, err := readMessage(conn, &q)
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrClosedPipe) {
			return nil
		}
		if err != nil {
			return err
		}
		if q.Op == opDrop {
			s.drop(q.Handle)
			continue
		}
		if q.Op == opMeasure { // it takes long, and others must not wait for it
			go func() {
				measuring.Lock()
				r, err := measure(q.Base, q.Bound.Entries, &removing)
				measuring.Unlock()
				answer(&q, r, nil, err) // where it cannot be given, the next answer cannot either
			}()
			continue
		}
		if q.Op == opRemove { // a measurement opens directories that are closed, and closes them again: it ends first
			removing.Store(true)
			measuring.Lock()
			removing.Store(false)
			err := remove(q.Base, q.Name)
			measuring.Unlock()
			if err := answer(&q, reply{}, nil, err); err != nil {
				return err
			}
			continue
		}
		r, out, err := s.serve(&q, data)
		if err := answer(&q, r, out, err); err != nil {
			return err
		}
	}
}

func refusal(id uint64, err error) reply {
	r := reply{ID: id, Error: err.Error(), Kind: roost.Internal}
	for _, kind := range []roost.Kind{roost.NoInput, roost.NoOutput, roost.Invalid, roost.Exhausted, roost.NotFound} {
		if errors.Is(err, kind) {
			r.Kind = kind
			break
		}
	}
	return r
}

// server is an agent at work: the files it has open, by the caller's handles, and what is left of lists that were too long for one reply.
type server struct {
	readers map[uint64]*extentReader
	writers map[uint64]*draft
	stages  map[uint64]*stagedSet
	pages   map[uint64][]Entry
}

// maxHandles bounds what a caller can have open at once.
const maxHandles = 512

func (s *server) serve(q *request, data []byte) (r reply, out []byte, err error) {
	if len(s.readers)+len(s.writers)+len(s.stages)+len(s.pages) > maxHandles {
		return r, nil, fmt.Errorf("%s: %w: %d files are open", q.Name, roost.Exhausted, maxHandles)
	}
	switch q.Op {
	case opExpand:
		entries, err := expand(q.Base, q.Patterns, q.Bound)
		return s.page(q.Handle, entries), nil, err
	case opSnapshot:
		entries, err := snapshot(q.Base, q.Bound)
		return s.page(q.Handle, entries), nil, err
	case opMore:
		return s.page(q.Handle, s.pages[q.Handle]), nil, nil
	case opStat:
		r.Entries, err = stat(q.Base, q.Name)
	case opReadAt:
		out, r.Size, err = readAt(q.Base, q.Name, q.Offset)
	case opOpen:
		r.Entries, err = s.open(q)
	case opRead:
		r.Size, out, err = s.read(q.Handle)
	case opCreate:
		err = s.create(q)
	case opWrite:
		err = s.write(q.Handle, q.Offset, data)
	case opCommit:
		err = s.commit(q.Handle)
	case opAppend:
		err = appendTo(q.Base, q.Name, data)
	case opMkdir:
		err = s.mkdir(q)
	case opStage:
		err = s.stage(q)
	case opInstall:
		err = s.install(q.Handle)
	default:
		err = fmt.Errorf("operation %d: %w", q.Op, roost.Invalid)
	}
	return r, out, err
}

func (s *server) page(handle uint64, entries []Entry) reply {
	n := onePage(entries)
	if n == len(entries) {
		delete(s.pages, handle)
		return reply{Entries: entries}
	}
	s.pages[handle] = entries[n:]
	return reply{Entries: entries[:n], More: true}
}

func (s *server) drop(handle uint64) {
	if r := s.readers[handle]; r != nil {
		r.file.Close()
		delete(s.readers, handle)
	}
	if d := s.writers[handle]; d != nil {
		d.discard()
		delete(s.writers, handle)
	}
	if t := s.stages[handle]; t != nil {
		t.discard()
		delete(s.stages, handle)
	}
	delete(s.pages, handle)
}

func (s *server) closeAll() {
	for _, r := range s.readers {
		r.file.Close()
	}
	for _, d := range s.writers {
		d.discard()
	}
	for _, t := range s.stages {
		t.discard()
	}
}
