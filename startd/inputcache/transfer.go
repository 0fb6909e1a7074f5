package inputcache

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/userfiles"
	"github.com/roost-batch/roost/internal/wire"
)

// Transfer is one transfer to a scratch directory. It takes from the cache what the
// sender leaves out, and brings there what the sender marks. The receiver of the transfer
// compares each file with its digest before it asks for the message after it, and what
// does not pass is in no cache.
type Transfer struct {
	cache *Cache
	owner Owner
	from  func() (*wire.FileChunk, error)

	reading  *cachedReader
	writing  *cachedWriter
	missing  bool
	fromHere int64 // bytes of data of files that were here
}

// cachedReader reads a file of the cache.
type cachedReader struct {
	file *os.File
	name string // in the cache
	recv func() (*wire.FileChunk, error)
	sum  []byte
	end  bool // its last message was read
}

// cachedWriter writes a file that is on its way.
type cachedWriter struct {
	file     *os.File
	send     func(*wire.FileChunk) error
	reserved int64  // bytes
	sum      []byte // at its end: of what was sent
}

// errMissing says that a file is not in the cache, or damaged.
var errMissing = fmt.Errorf("a file of the input cache: %w", roost.NotFound)

// Receive returns the transfer whose messages from returns. The caller closes it.
func (c *Cache) Receive(o Owner, from func() (*wire.FileChunk, error)) *Transfer {
	return &Transfer{cache: c, owner: o, from: from}
}

// Next returns the next message of the transfer as it were without a cache.
func (t *Transfer) Next() (*wire.FileChunk, error) {
	if t.reading != nil {
		return t.readCached()
	}
	if t.writing != nil && t.writing.sum != nil { // the receiver has compared it
		t.commitWriter()
	}
	m, err := t.from()
	if err != nil {
		return nil, err
	}
	e := m.GetEntry()
	switch {
	case e != nil && m.GetCached():
		return t.beginReader(m)
	case e != nil && m.GetCacheable() && t.writing == nil && !e.GetDir() && e.GetSize() >= userfiles.MinCachedBytes:
		t.beginWriter(m)
	}
	t.write(m)
	return m, nil
}

// IsMissing reports whether the receiver failed with this error for want of a file of the
// cache. The file is not there any more, or was damaged.
func (t *Transfer) IsMissing(err error) bool {
	if _, wrong := errors.AsType[*userfiles.MismatchError](err); wrong && t.reading != nil {
		t.dropReader()
	}
	return t.missing
}

// FromCache returns how many bytes of files were here.
func (t *Transfer) FromCache() int64 { return t.fromHere }

// Close ends a transfer that is complete or has failed.
func (t *Transfer) Close() {
	if t.reading != nil {
		t.reading.file.Close()
	}
	if t.writing != nil {
		t.discardWriter()
	}
}

// beginReader begins a file that the sender left out.
func (t *Transfer) beginReader(m *wire.FileChunk) (*wire.FileChunk, error) {
	sum := m.GetSha256()
	if len(sum) != sha256.Size {
		return nil, fmt.Errorf("%.200q: %w: it is said to be here, without a digest", m.GetEntry().GetName(),
			roost.Invalid)
	}
	r := &cachedReader{name: fileName(t.owner, sum), sum: sum}
	file, err := t.cache.open(r.name)
	if err != nil {
		t.missing = true
		if !errors.Is(err, fs.ErrNotExist) {
			t.cache.log.Warn("a file of the input cache cannot be read", "error", err)
		}
		return nil, errMissing
	}
	r.file = file
	t.reading = r
	if _, r.recv, err = userfiles.ReadStored(file); err == nil {
		var first *wire.FileChunk
		if first, err = r.recv(); err == nil && first.GetEntry().GetSize() != m.GetEntry().GetSize() {
			err = roost.Invalid
		}
	}
	if err != nil {
		return nil, t.dropReader()
	}
	return &wire.FileChunk{Entry: m.GetEntry()}, nil
}

// readCached returns the next message of a file of the cache.
func (t *Transfer) readCached() (*wire.FileChunk, error) {
	r := t.reading
	m, err := r.recv()
	if errors.Is(err, io.EOF) && r.end { // the receiver has compared the file, and found it good
		r.file.Close()
		t.reading = nil
		return t.Next()
	}
	if err != nil || m.GetEntry() != nil || r.end {
		return nil, t.dropReader()
	}
	if r.end = m.GetEof(); r.end {
		m.Sha256 = r.sum
	}
	t.fromHere += int64(len(m.GetData()))
	return m, nil
}

// dropReader removes a file of the cache that is damaged. It returns errMissing.
func (t *Transfer) dropReader() error {
	r := t.reading
	t.reading = nil
	r.file.Close()
	t.cache.log.Warn("a file of the input cache is damaged, and is sent again", "file", r.name)
	t.cache.drop(r.name)
	t.missing = true
	return errMissing
}

// beginWriter begins to bring a file into the cache, if there is room.
func (t *Transfer) beginWriter(m *wire.FileChunk) {
	size := m.GetEntry().GetSize()
	if !t.cache.reserve(size) {
		return
	}
	w := &cachedWriter{reserved: size}
	var err error
	if w.file, err = os.CreateTemp(t.cache.dir, incomingPrefix); err == nil {
		w.send, err = userfiles.WriteStored(w.file, &wire.TransferTotals{Files: 1, Bytes: size})
	}
	t.writing = w
	if err != nil {
		t.cache.log.Warn("an input file cannot be cached", "error", err)
		t.discardWriter()
	}
}

// write writes a message to the file that comes into the cache, if there is one.
func (t *Transfer) write(m *wire.FileChunk) {
	w := t.writing
	if w == nil {
		return
	}
	if err := w.send(m); err != nil {
		t.cache.log.Warn("an input file cannot be cached", "error", err)
		t.discardWriter()
	} else if m.GetEof() {
		w.sum = m.GetSha256()
	}
}

// commitWriter puts a file that has come into the cache.
func (t *Transfer) commitWriter() {
	w := t.writing
	err := w.file.Close()
	if err == nil {
		err = t.cache.add(w.file.Name(), fileName(t.owner, w.sum), w.reserved)
	}
	if err != nil {
		t.cache.log.Warn("an input file is not cached", "error", err)
		t.discardWriter()
		return
	}
	t.writing = nil
}

// discardWriter removes a file that did not come completely.
func (t *Transfer) discardWriter() {
	w := t.writing
	t.writing = nil
	t.cache.release(w.reserved)
	if w.file != nil {
		w.file.Close()
		os.Remove(filepath.Join(t.cache.dir, filepath.Base(w.file.Name())))
	}
}
