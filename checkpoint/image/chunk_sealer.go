package image

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"io"

	"github.com/roost-batch/roost"
)

const (
	imageMagic = "RoostCkp"
	// the format of earlier releases, authenticated and not encrypted; it is read only
	plaintextVersion = 1
	formatVersion    = 2
	chunkSize        = 1 << 20
	tagSize          = sha256.Size
	saltSize         = 32
	KeySize          = 32 // the least bytes of an attempt's key
)

// imageKeys are the keys of one image. They are unique, because its salt is random.
type imageKeys struct {
	mac    hash.Hash
	stream cipher.Stream // nil: the image is not encrypted
}

// deriveKeys makes the keys of an image. Without a salt the image has version 1, whose
// MAC uses the attempt's key itself.
func deriveKeys(key, salt []byte) (s imageKeys, err error) {
	if len(key) < KeySize {
		return s, fmt.Errorf("checkpoint image: %w: a key of %d bytes, %d are needed", roost.Invalid, len(key), KeySize)
	}
	if salt == nil {
		return imageKeys{mac: hmac.New(sha256.New, key)}, nil
	}
	root, err := hkdf.Extract(sha256.New, key, salt)
	if err != nil {
		return s, fmt.Errorf("checkpoint image: %w: %w", roost.Internal, err)
	}
	part := func(use string) []byte {
		k, e := hkdf.Expand(sha256.New, root, "Roost checkpoint image 2, "+use, KeySize)
		if e != nil {
			err = fmt.Errorf("checkpoint image: %w: %w", roost.Internal, e)
		}
		return k
	}
	encryption, authentication := part("encryption"), part("authentication")
	if err != nil {
		return s, err
	}
	block, err := aes.NewCipher(encryption)
	if err != nil {
		return s, fmt.Errorf("checkpoint image: %w: %w", roost.Internal, err)
	}
	return imageKeys{hmac.New(sha256.New, authentication), cipher.NewCTR(block, make([]byte, aes.BlockSize))}, nil
}

// applyKeystream encrypts or decrypts the next bytes of an image in place.
func (s *imageKeys) applyKeystream(data []byte) {
	if s.stream != nil {
		s.stream.XORKeyStream(data, data)
	}
}

// chunkSealer cuts its input into chunks, encrypts each, and appends the tag of
// everything so far.
type chunkSealer struct {
	to   io.Writer
	keys imageKeys
	buf  []byte // room for the length, then the data of the unfinished chunk
	tag  []byte
	sent int64
}

func newSealer(to io.Writer, key, header []byte) (*chunkSealer, error) {
	salt := make([]byte, saltSize)
	rand.Read(salt) // it never fails: crypto/rand ends the program instead
	keys, err := deriveKeys(key, salt)
	if err != nil {
		return nil, err
	}
	s := &chunkSealer{to: to, keys: keys, buf: make([]byte, 4, 4+chunkSize+tagSize)}
	start := append(binary.LittleEndian.AppendUint16([]byte(imageMagic), formatVersion), salt...)
	start = binary.LittleEndian.AppendUint32(start, uint32(len(header)))
	return s, s.sendSealed(append(start, header...), len(start))
}

// sendSealed writes bytes, encrypted from an offset on, and the tag.
func (s *chunkSealer) sendSealed(data []byte, from int) error {
	s.keys.applyKeystream(data[from:])
	s.keys.mac.Write(data)
	s.tag = s.keys.mac.Sum(s.tag[:0])
	n, err := s.to.Write(append(data, s.tag...))
	s.sent += int64(n)
	return err
}

func (s *chunkSealer) Write(p []byte) (n int, err error) {
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

func (s *chunkSealer) flush() error {
	binary.LittleEndian.PutUint32(s.buf, uint32(len(s.buf)-4))
	err := s.sendSealed(s.buf, 4)
	s.buf = s.buf[:4]
	return err
}

// Close writes the last chunk and the end.
func (s *chunkSealer) Close() error {
	if len(s.buf) > 4 {
		if err := s.flush(); err != nil {
			return err
		}
	}
	return s.flush()
}

// chunkOpener returns only data of chunks whose tag is right.
type chunkOpener struct {
	from        io.Reader
	keys        imageKeys
	header      []byte
	buf         []byte
	rest        []byte
	tag         []byte
	receivedTag []byte // the tag that was read
	ended       bool
}

func newOpener(from io.Reader, key []byte) (*chunkOpener, error) {
	o := &chunkOpener{from: from, receivedTag: make([]byte, tagSize)}
	start := make([]byte, len(imageMagic)+2)
	if err := o.readFull(start); err != nil {
		return nil, err
	}
	if string(start[:len(imageMagic)]) != imageMagic {
		return nil, badImage("it does not begin as one")
	}
	var salt []byte
	switch v := binary.LittleEndian.Uint16(start[len(imageMagic):]); v {
	case plaintextVersion:
	case formatVersion:
		salt = make([]byte, saltSize)
		if err := o.readFull(salt); err != nil {
			return nil, err
		}
	default:
		return nil, badImage("it has version %d, this program reads %d and %d", v, plaintextVersion, formatVersion)
	}
	length := make([]byte, 4)
	if err := o.readFull(length); err != nil {
		return nil, err
	}
	size := binary.LittleEndian.Uint32(length)
	if size > MaxHeader {
		return nil, badImage("header of %d bytes, at most %d can be", size, MaxHeader)
	}
	var err error
	if o.keys, err = deriveKeys(key, salt); err != nil {
		return nil, err
	}
	for _, part := range [][]byte{start, salt, length} {
		o.keys.mac.Write(part)
	}
	o.header, err = o.readAuthentic(int(size))
	return o, err
}

// readFull reads exactly len(p) bytes. A shorter input is a bad image; other errors are
// the reader's.
func (o *chunkOpener) readFull(p []byte) error {
	_, err := io.ReadFull(o.from, p)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return badImage("it is cut short")
	}
	if err != nil {
		return fmt.Errorf("checkpoint image: %w: %w", roost.NoInput, err)
	}
	return nil
}

// readAuthentic reads size bytes and their tag, and decrypts the bytes if the tag is
// right.
func (o *chunkOpener) readAuthentic(size int) ([]byte, error) {
	if cap(o.buf) < size {
		o.buf = make([]byte, size)
	}
	data := o.buf[:size]
	if err := o.readFull(data); err != nil {
		return nil, err
	}
	if err := o.readFull(o.receivedTag); err != nil {
		return nil, err
	}
	o.keys.mac.Write(data)
	o.tag = o.keys.mac.Sum(o.tag[:0])
	if !hmac.Equal(o.tag, o.receivedTag) {
		return nil, badImage("it was changed, or made with another key")
	}
	o.keys.applyKeystream(data)
	return data, nil
}

func (o *chunkOpener) Read(p []byte) (int, error) {
	for len(o.rest) == 0 {
		if o.ended {
			return 0, io.EOF
		}
		if err := o.nextChunk(); err != nil {
			return 0, err
		}
	}
	n := copy(p, o.rest)
	o.rest = o.rest[n:]
	return n, nil
}

func (o *chunkOpener) nextChunk() (err error) {
	var length [4]byte
	if err := o.readFull(length[:]); err != nil {
		return err
	}
	size := binary.LittleEndian.Uint32(length[:])
	if size > chunkSize {
		return badImage("a chunk of %d bytes", size)
	}
	o.keys.mac.Write(length[:])
	if o.rest, err = o.readAuthentic(int(size)); err == nil && size == 0 {
		o.ended = true
	}
	return err
}
