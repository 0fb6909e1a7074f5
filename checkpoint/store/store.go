// Package store stores checkpoint images on a disk. A schedd's spool has those of its own
// tasks, a checkpoint server those of many schedds.
//
//	DIR/[SCHEDD/]JOB/INDEX.ATTEMPT.SEQUENCE
//	DIR/.files/NODE/UID/DIGEST
//
// The latter are files of users of submit nodes, as scripts of jobs in the queue of the
// cell. They are named by their contents.
//
// An image is there completely or not at all: each upload writes a file of its own beside
// the name, which is synced, closed, compared with its digest, and renamed. The package
// does not interpret the contents. Names consist of numbers, and of the name in a
// schedd's certificate; never of a path in a message.
package store

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/roost-batch/roost"
	blobstore "github.com/roost-batch/roost/internal/store"
)

// ImageKey names one image.
type ImageKey struct {
	Schedd   string // empty in the spool of a schedd, for its own images
	Job      uint64
	Index    int
	Attempt  roost.AttemptNumber
	Sequence uint64
}

func (k ImageKey) String() string {
	return fmt.Sprintf("checkpoint %d of attempt %d[%d].%s/%d", k.Sequence, k.Job, k.Index, k.Schedd, k.Attempt)
}

// Store is a directory of images. Its methods may be called concurrently for different
// images.
type Store struct {
	dir      string
	maxBytes int64 // most bytes in the store; 0: as many as the disk has room for

	// MaxBytesOfUser is the most bytes of the files of a user of a node.
	MaxBytesOfUser int64

	mu            sync.Mutex
	incomingBytes int64 // bytes of images and files that are being received

	incomingOfUser map[string]int64 // bytes of files that are being received, by their directory

	nameMu      sync.Mutex // held while an image gets a name that must be unused
	directoryMu sync.Mutex // held while directories are made for an image, and while empty ones are removed
}

// Open creates the directory if it does not exist.
func Open(dir string, most int64) (*Store, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("checkpoints: %w", err)
	}
	return &Store{dir: dir, maxBytes: most, MaxBytesOfUser: DefaultBytesOfUser,
		incomingOfUser: make(map[string]int64)}, nil
}

// partialSuffix ends the name of an incomplete file. A random number precedes it.
const partialSuffix = ".part"

// createPartial creates a file beside an image's place, for one upload alone.
func (s *Store) createPartial(path string) (*os.File, error) {
	s.directoryMu.Lock() // from making the directory to making the file: the last image of a directory removes it
	defer s.directoryMu.Unlock()
	dir, name := filepath.Split(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	return os.CreateTemp(dir, name+".*"+partialSuffix)
}

// imagePath returns the path of an image.
func (s *Store) imagePath(k ImageKey) (string, error) {
	dir := s.dir
	if k.Schedd != "" {
		name := url.PathEscape(k.Schedd)
		if strings.HasPrefix(name, ".") || len(name) > 255 {
			return "", fmt.Errorf("schedd %q: %w: that is no name", k.Schedd, roost.Invalid)
		}
		dir = filepath.Join(dir, name)
	}
	if k.Job == 0 || k.Index < 0 || k.Attempt == 0 || k.Sequence == 0 {
		return "", fmt.Errorf("%v: %w: there is no such thing", k, roost.Invalid)
	}
	return filepath.Join(dir, strconv.FormatUint(k.Job, 10), fmt.Sprintf("%d.%d.%d", k.Index, k.Attempt, k.Sequence)),
		nil
}

// Remove deletes an image and reports whether it existed.
func (s *Store) Remove(k ImageKey) (bool, error) {
	path, err := s.imagePath(k)
	if err != nil {
		return false, err
	}
	err = os.Remove(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	s.directoryMu.Lock()
	defer s.directoryMu.Unlock()
	for dir := filepath.Dir(path); err == nil && dir != s.dir; dir = filepath.Dir(dir) {
		if os.Remove(dir) != nil {
			break // it has other images
		}
	}
	if err != nil {
		return false, fmt.Errorf("%v: %w", k, err)
	}
	return true, nil
}

// Write stores an image that write writes. It is not synced: it is for images that are
// stored only until they have been sent on.
func (s *Store) Write(k ImageKey, write func(io.Writer) error) (err error) {
	path, err := s.imagePath(k)
	if err != nil {
		return err
	}
	f, err := s.createPartial(path)
	if err != nil {
		return fmt.Errorf("%v: %w", k, diskFullError(err))
	}
	if err = errors.Join(write(f), f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		os.Remove(f.Name())
		return fmt.Errorf("%v: %w", k, diskFullError(err))
	}
	return nil
}

// Open opens an image for reading. A missing one is roost.NotFound.
func (s *Store) Open(k ImageKey) (*os.File, error) {
	path, err := s.imagePath(k)
	if err != nil {
		return nil, err
	}
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%v: %w", k, roost.NotFound)
	}
	return f, err
}

// Size returns the size of an image in bytes. A missing one is roost.NotFound.
func (s *Store) Size(k ImageKey) (int64, error) {
	path, err := s.imagePath(k)
	if err != nil {
		return 0, err
	}
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, fmt.Errorf("%v: %w", k, roost.NotFound)
	}
	if err != nil {
		return 0, fmt.Errorf("%v: %w", k, err)
	}
	return info.Size(), nil
}

// Sweep deletes images for which keep returns false, and unfinished uploads, and returns
// how many files that were. No image may be received meanwhile.
func (s *Store) Sweep(isWanted func(ImageKey) bool) (n int, err error) {
	err = filepath.WalkDir(s.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return skipUserFiles(d, err)
		}
		if k, ok := s.parsePath(path); ok && isWanted(k) {
			return nil
		}
		n++
		return os.Remove(path)
	})
	if err != nil {
		return n, fmt.Errorf("checkpoints: %w", err)
	}
	return n, nil
}

// parsePath returns the image of a file, or false for a file that is none.
func (s *Store) parsePath(path string) (k ImageKey, ok bool) {
	rel, err := filepath.Rel(s.dir, path)
	if err != nil {
		return k, false
	}
	words := strings.Split(rel, string(filepath.Separator))
	if len(words) == 3 {
		if k.Schedd, err = url.PathUnescape(words[0]); err != nil {
			return k, false
		}
		words = words[1:]
	}
	if len(words) != 2 {
		return k, false
	}
	if k.Job, err = strconv.ParseUint(words[0], 10, 64); err != nil {
		return k, false
	}
	var attempt uint32
	if _, err := fmt.Sscanf(words[1], "%d.%d.%d", &k.Index, &attempt, &k.Sequence); err != nil {
		return k, false
	}
	k.Attempt = roost.AttemptNumber(attempt)
	want, err := s.imagePath(k)
	return k, err == nil && want == path
}

// Expire deletes the images that were last put or got before a time, and returns how many
// those were.
func (s *Store) Expire(before time.Time) (n int, err error) {
	err = filepath.WalkDir(s.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return skipUserFiles(d, ignoreNotExist(err))
		}
		info, err := d.Info()
		k, ok := s.parsePath(path)
		if err != nil || !ok || !info.ModTime().Before(before) {
			return ignoreNotExist(err)
		}
		gone, err := s.Remove(k)
		if gone {
			n++
		}
		return err
	})
	return n, err
}

// UsedBytes sums the images in the store, in bytes.
func (s *Store) UsedBytes() (used int64, err error) {
	err = filepath.WalkDir(s.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.HasSuffix(path, partialSuffix) {
			return ignoreNotExist(err)
		}
		used += blobstore.AllocatedBytes(path) // holes of images in an object store take nothing
		return nil
	})
	return used, err
}

// ignoreNotExist ignores the error of a file that was deleted meanwhile.
func ignoreNotExist(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// Images never fill a disk completely, because it may hold more important files.
const (
	maxSpareBytes = 1 << 30
	spareDivisor  = 20 // divides the size of the disk
)

// checkRoom refuses an image for which there is no room, with roost.Exhausted. Otherwise
// it reserves the room until arrived is called.
func (s *Store) checkRoom(size int64) (arrived func(), err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.fitsDisk(size); err != nil {
		return nil, err
	}
	s.incomingBytes += size
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.incomingBytes -= size
	}, nil
}

func (s *Store) fitsDisk(size int64) error {
	if s.maxBytes > 0 {
		used, err := s.UsedBytes()
		if err != nil {
			return err
		}
		if used += s.incomingBytes; used+size > s.maxBytes {
			return fmt.Errorf("%w: checkpoints take %v of the %v they may take, and this one has %v", roost.Exhausted,
				roost.Bytes(used), roost.Bytes(s.maxBytes), roost.Bytes(size))
		}
	}
	var disk syscall.Statfs_t
	if err := syscall.Statfs(s.dir, &disk); err != nil {
		return fmt.Errorf("%s: %w", s.dir, err)
	}
	free, total := int64(disk.Bavail)*disk.Bsize, int64(disk.Blocks)*disk.Bsize
	if spare := min(maxSpareBytes, total/spareDivisor); size > free-spare-s.incomingBytes {
		return fmt.Errorf("%w: the disk has %v free, of which %v must stay free, and the checkpoint has %v",
			roost.Exhausted, roost.Bytes(free), roost.Bytes(spare), roost.Bytes(size))
	}
	return nil
}
