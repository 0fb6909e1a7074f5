package store

import (
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/wire"
)

// Receive stores an image of size bytes from a stream. The stream is a chunk with the
// entry, chunks of data, and a last one with the SHA-256 of all data. When Receive
// returns nil, the image is complete and on the disk, and has replaced an older one. A
// wrong size or digest is roost.Invalid, a lack of room roost.Exhausted; the errors of
// recv are returned as they are.
func (s *Store) Receive(k ImageKey, size int64, recv func() (*wire.FileChunk, error)) error {
	return s.receiveImage(k, size, recv, os.Rename)
}

// ReceiveNew is Receive without replacing. If the image exists, or another upload of it
// was faster, the error is roost.Conflict.
func (s *Store) ReceiveNew(k ImageKey, size int64, recv func() (*wire.FileChunk, error)) error {
	if _, err := s.Size(k); err == nil {
		return conflictError(k)
	}
	return s.receiveImage(k, size, recv, func(from, to string) error {
		s.nameMu.Lock()
		defer s.nameMu.Unlock()
		if _, err := os.Lstat(to); err == nil {
			return conflictError(k)
		}
		return os.Rename(from, to)
	})
}

func conflictError(k ImageKey) error {
	return fmt.Errorf("%v: %w: it is here already, and none is replaced", k, roost.Conflict)
}

func (s *Store) receiveImage(k ImageKey, size int64, recv func() (*wire.FileChunk, error),
	rename func(from, to string) error) (err error) {
	path, err := s.imagePath(k)
	if err != nil {
		return err
	}
	if size < 1 {
		return fmt.Errorf("%v: %w: it has %d bytes", k, roost.Invalid, size)
	}
	arrived, err := s.checkRoom(size)
	if err != nil {
		return err
	}
	defer arrived()
	var digest []byte
	return s.storeFile(k, path, size, rename, func() (data []byte, last bool, err error) {
		chunk, err := recv()
		if errors.Is(err, io.EOF) {
			err = fmt.Errorf("%w: the stream ended before its %d bytes", roost.Unavailable, size)
		}
		digest = chunk.GetSha256()
		return chunk.GetData(), chunk.GetEof(), err
	}, func() []byte { return digest })
}

// storeFile stores a file of size bytes at a path. recv returns its pieces, and which is
// the last one; digest is asked after that. It has a partial name until it is on the disk
// as a whole with that digest.
func (s *Store) storeFile(k fmt.Stringer, path string, size int64, rename func(from, to string) error,
	recv func() (data []byte, last bool, err error), digest func() []byte) (err error) {
	f, err := s.createPartial(path)
	if err != nil {
		return fmt.Errorf("%v: %w", k, diskFullError(err))
	}
	defer func() {
		if err != nil {
			f.Close()
			os.Remove(f.Name())
		}
	}()
	err = copyPieces(f, size, recv)
	if err == nil {
		err = diskFullError(errors.Join(f.Sync(), f.Close()))
	}
	if err == nil {
		err = verifyDigest(f.Name(), size, digest())
	}
	if err == nil {
		err = rename(f.Name(), path)
	}
	if err != nil {
		return fmt.Errorf("%v: %w", k, err)
	}
	return s.syncDirectories(filepath.Dir(path))
}

// verifyDigest compares a file with the digest that came with its bytes. No writer has
// the file open, so it proves what is on the disk and not only what was sent.
func verifyDigest(path string, size int64, want []byte) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	sum := sha256.New()
	n, err := io.Copy(sum, f)
	if err != nil {
		return err
	}
	if n != size || subtle.ConstantTimeCompare(sum.Sum(nil), want) != 1 {
		return fmt.Errorf("%w: the digest of its %d bytes is wrong", roost.Invalid, n)
	}
	return nil
}

// syncDirectories makes a name durable, with the names of the directories above it that
// may be new.
func (s *Store) syncDirectories(dir string) error {
	for {
		d, err := os.Open(dir)
		if err != nil {
			return fmt.Errorf("checkpoints: %w", err)
		}
		err = d.Sync()
		d.Close()
		if err != nil {
			return fmt.Errorf("checkpoints: %w", err)
		}
		if dir == s.dir || len(dir) <= len(s.dir) {
			return nil
		}
		dir = filepath.Dir(dir)
	}
}

// diskFullError returns roost.Exhausted for the system's errors of a full disk.
func diskFullError(err error) error {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return fmt.Errorf("%w: %w", roost.Exhausted, err)
	}
	return err
}

// copyPieces writes what comes, which must have size bytes in all.
func copyPieces(w io.Writer, size int64, recv func() (data []byte, last bool, err error)) error {
	for got := int64(0); ; {
		data, last, err := recv()
		if err != nil {
			return err
		}
		if got += int64(len(data)); got > size {
			return fmt.Errorf("%w: it is larger than the %d bytes that were announced", roost.Invalid, size)
		}
		if _, err := w.Write(data); err != nil {
			return diskFullError(err)
		}
		switch {
		case last && got == size:
			return nil
		case last:
			return fmt.Errorf("%w: it has %d bytes, and %d were announced", roost.Invalid, got, size)
		}
	}
}

// pieceSize is the bytes of an image in one message.
const pieceSize = 256 << 10

// Send sends an image in the form that Receive takes. A missing image is roost.NotFound.
// The errors of send are returned as they are.
func (s *Store) Send(k ImageKey, send func(*wire.FileChunk) error) error {
	path, err := s.imagePath(k)
	if err != nil {
		return err
	}
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%v: %w", k, roost.NotFound)
	}
	if err != nil {
		return fmt.Errorf("%v: %w", k, err)
	}
	defer f.Close()
	now := time.Now()
	os.Chtimes(path, now, now) // for Expire
	info, err := f.Stat()
	if err != nil {
		return fmt.Errorf("%v: %w", k, err)
	}
	if err := send(&wire.FileChunk{Entry: &wire.FileEntry{Name: strconv.FormatUint(k.Sequence, 10), Size: info.Size(),
		Mode: 0o600}}); err != nil {
		return err
	}
	sum := sha256.New()
	for {
		data := make([]byte, pieceSize) // a message may still be in transit when the next is made
		n, err := io.ReadFull(f, data)
		if n > 0 {
			sum.Write(data[:n])
			if err := send(&wire.FileChunk{Data: data[:n]}); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return send(&wire.FileChunk{Eof: true, Sha256: sum.Sum(nil)})
		}
		if err != nil {
			return fmt.Errorf("%v: %w", k, err)
		}
	}
}
