package image

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"io"

	"github.com/roost-batch/roost"
)

const (
	magic     = "RoostCkp"
	version   = 1
	chunkSize = 1 << 20
	tagSize   = sha256.Size
	KeySize   = 32 // bytes of a job's key, at least
)

func newMAC(key []byte) (hash.Hash, error) {
	if len(key) < KeySize {
		return nil, fmt.Errorf("checkpoint image: %w: a key of %d bytes, %d are needed", roost.Invalid, len(key), KeySize)
	}
	return hmac.New(sha256.New, key), nil
}

// sealer cuts what is written into chunks and seals each with the tag of everything so far.
type sealer struct {
	to   io.Writer
	mac  hash.Hash
	buf  []byte // length, then what waits to fill a chunk
	tag  []byte
	sent int64
}

func newSealer(to io.Writer, key, header []byte) (*sealer, error) {
	mac, err := newMAC(key)
	if err != nil {
		return nil, err
	}
	s := &sealer{to: to, mac: mac, buf: make([]byte, 4, 4+chunkSize+tagSize)}
	start := binary.LittleEndian.AppendUint16([]byte(magic), version)
	start = binary.LittleEndian.AppendUint32(start, uint32(len(header)))
	return s, s.seal(append(start, header...))
}

// seal sends bytes and the tag.
func (s *sealer) seal(data []byte) error {
	s.mac.Write(data)
	s.tag = s.mac.Sum(s.tag[:0])
	n, err := s.to.Write(append(data, s.tag...))
	s.sent += int64(n)
	return err
}

func (s *sealer) Write(p []byte) (n int, err error) {
	for len(p) > 0 {
		part := p[:min(len(p), 4+chunkSize-len(s.buf))]
		s.buf = append(s.buf, part...)
		n, p = n+len(part), p[len(part):]
		if len(s.buf) == 4+chunkSize {
			if err := s.flush(); err != nil {
				return n, err
			}
		}
	}
	return n, nil
}

func (s *sealer) flush() error {
	binary.LittleEndian.PutUint32(s.buf, uint32(len(s.buf)-4))
	err := s.seal(s.buf)
	s.buf = s.buf[:4]
	return err
}

// Close sends what waits, and the end.
func (s *sealer) Close() error {
	if len(s.buf) > 4 {
		if err := s.flush(); err != nil {
			return err
		}
	}
	return s.flush()
}

// opener gives out chunks whose tag holds, and nothing else.
type opener struct {
	from   io.Reader
	mac    hash.Hash
	header []byte
	buf    []byte
	rest   []byte
	tag    []byte
	got    []byte // a tag as it came
	end    bool
}

func newOpener(from io.Reader, key []byte) (*opener, error) {
	mac, err := newMAC(key)
	if err != nil {
		return nil, err
	}
	o := &opener{from: from, mac: mac, got: make([]byte, tagSize)}
	start := make([]byte, len(magic)+6)
	if err := o.fill(start); err != nil {
		return nil, err
	}
	if string(start[:len(magic)]) != magic {
		return nil, bad("it does not begin as one")
	}
	if v := binary.LittleEndian.Uint16(start[len(magic):]); v != version {
		return nil, bad("it has version %d, this program reads %d", v, version)
	}
	size := binary.LittleEndian.Uint32(start[len(magic)+2:])
	if size > MaxHeader {
		return nil, bad("header of %d bytes, at most %d can be", size, MaxHeader)
	}
	mac.Write(start)
	o.header, err = o.authentic(int(size))
	return o, err
}

// fill reads exactly as much; less is a bad image, other failures are the reader's.
func (o *opener) fill(p []byte) error {
	_, err := io.ReadFull(o.from, p)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return bad("it is cut short")
	}
	if err != nil {
		return fmt.Errorf("checkpoint image: %w: %w", roost.NoInput, err)
	}
	return nil
}

// authentic reads that many bytes and the tag behind them.
func (o *opener) authentic(size int) ([]byte, error) {
	if cap(o.buf) < size {
		o.buf = make([]byte, size)
	}
	data := o.buf[:size]
	if err := o.fill(data); err != nil {
		return nil, err
	}
	if err := o.fill(o.got); err != nil {
		return nil, err
	}
	o.mac.Write(data)
	o.tag = o.mac.Sum(o.tag[:0])
	if !hmac.Equal(o.tag, o.got) {
		return nil, bad("it was changed, or made with another key")
	}
	return data, nil
}

func (o *opener) Read(p []byte) (int, error) {
	for len(o.rest) == 0 {
		if o.end {
			return 0, io.EOF
		}
		if err := o.next(); err != nil {
			return 0, err
		}
	}
	n := copy(p, o.rest)
	o.rest = o.rest[n:]
	return n, nil
}

func (o *opener) next() (err error) {
	var length [4]byte
	if err := o.fill(length[:]); err != nil {
		return err
	}
	size := binary.LittleEndian.Uint32(length[:])
	if size > chunkSize {
		return bad("a chunk of %d bytes", size)
	}
	o.mac.Write(length[:])
	if o.rest, err = o.authentic(int(size)); err == nil && size == 0 {
		o.end = true
	}
	return err
}
