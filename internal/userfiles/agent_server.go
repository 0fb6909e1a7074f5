package userfiles

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"sync"
	"sync/atomic"

	"github.com/roost-batch/roost"
)

// ServeAgent executes the requests on conn, with the rights of this process, until conn
// is closed. It is all of the command "files-agent".
func ServeAgent(conn io.ReadWriter) error {
	s := &agentServer{readers: map[uint64]*extentReader{}, writers: map[uint64]*tempFile{},
		stages: map[uint64]*stagedSet{}, pages: map[uint64][]TransferEntry{}}
	defer s.closeAll()
	var writing, measuring sync.Mutex
	var removing atomic.Bool
	answer := func(q *agentRequest, r agentReply, out []byte, err error) error {
		r.ID = q.ID
		if err != nil {
			r, out = errorReply(q.ID, err), nil
		}
		writing.Lock()
		defer writing.Unlock()
		return writeMessage(conn, r, out)
	}
	for {
		var q agentRequest
		data, err := readMessage(conn, &q)
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrClosedPipe) {
			return nil
		}
		if err != nil {
			return err
		}
		if q.Op == opDrop {
			s.dropHandle(q.Handle)
			continue
		}
		if q.Op == opMeasure { // it takes long, and other requests must not wait for it
			go func() {
				measuring.Lock()
				r, err := measureTree(q.Base, q.Bound.Entries, &removing)
				measuring.Unlock()
				answer(&q, r, nil, err) // if this reply cannot be sent, the next cannot either
			}()
			continue
		}
		if q.Op == opRemove { // a measurement opens closed directories and closes them again, so it must end first
			removing.Store(true)
			measuring.Lock()
			removing.Store(false)
			err := removeAll(q.Base, q.Name)
			measuring.Unlock()
			if err := answer(&q, agentReply{}, nil, err); err != nil {
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

func errorReply(id uint64, err error) agentReply {
	r := agentReply{ID: id, Error: err.Error(), Kind: roost.Internal}
	for _, kind := range []roost.ErrorKind{roost.NoInput, roost.NoOutput, roost.Invalid, roost.Exhausted,
		roost.NotFound} {
		if errors.Is(err, kind) {
			r.Kind = kind
			break
		}
	}
	return r
}

// agentServer is the state of an agent. It has the open files, by the caller's handles,
// and the rest of lists too long for one reply.
type agentServer struct {
	readers map[uint64]*extentReader
	writers map[uint64]*tempFile
	stages  map[uint64]*stagedSet
	pages   map[uint64][]TransferEntry
}

// maxHandles bounds the open handles of a caller.
const maxHandles = 512

func (s *agentServer) serve(q *agentRequest, data []byte) (r agentReply, out []byte, err error) {
	if len(s.readers)+len(s.writers)+len(s.stages)+len(s.pages) > maxHandles {
		return r, nil, fmt.Errorf("%s: %w: %d files are open", q.Name, roost.Exhausted, maxHandles)
	}
	switch q.Op {
	case opExpand:
		entries, err := expand(q.Base, q.Patterns, q.Bound)
		return s.nextPage(q.Handle, entries), nil, err
	case opSnapshot:
		entries, err := snapshot(q.Base, q.Bound)
		return s.nextPage(q.Handle, entries), nil, err
	case opMore:
		return s.nextPage(q.Handle, s.pages[q.Handle]), nil, nil
	case opStat:
		r.Entries, err = stat(q.Base, q.Name)
	case opReadAt:
		out, r.Size, err = readAt(q.Base, q.Name, q.Offset)
	case opOpen:
		r.Entries, err = s.openReader(q)
	case opRead:
		r.Size, out, err = s.readChunk(q.Handle)
	case opCreate:
		err = s.createFile(q)
	case opWrite:
		err = s.writeChunk(q.Handle, q.Offset, data)
	case opCommit:
		err = s.commitFile(q.Handle)
	case opAppend:
		err = appendTo(q.Base, q.Name, fs.FileMode(q.Mode).Perm(), data)
	case opMkdir:
		err = s.makeDir(q)
	case opStage:
		err = s.beginStage(q)
	case opInstall:
		err = s.installStage(q.Handle)
	default:
		err = fmt.Errorf("operation %d: %w", q.Op, roost.Invalid)
	}
	return r, out, err
}

func (s *agentServer) nextPage(handle uint64, entries []TransferEntry) agentReply {
	n := pageLength(entries)
	if n == len(entries) {
		delete(s.pages, handle)
		return agentReply{Entries: entries}
	}
	s.pages[handle] = entries[n:]
	return agentReply{Entries: entries[:n], More: true}
}

func (s *agentServer) dropHandle(handle uint64) {
	if r := s.readers[handle]; r != nil {
		r.file.Close()
		delete(s.readers, handle)
	}
	if d := s.writers[handle]; d != nil {
		d.discardFile()
		delete(s.writers, handle)
	}
	if t := s.stages[handle]; t != nil {
		t.discard()
		delete(s.stages, handle)
	}
	delete(s.pages, handle)
}

func (s *agentServer) closeAll() {
	for _, r := range s.readers {
		r.file.Close()
	}
	for _, d := range s.writers {
		d.discardFile()
	}
	for _, t := range s.stages {
		t.discard()
	}
}
