package store

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/lazyregexp"
)

// userFilesDir is where the files of users are. No schedd's directory begins with a dot.
const userFilesDir = ".files"

// DefaultBytesOfUser is the default of MaxBytesOfUser.
const DefaultBytesOfUser = 10 << 30

// UserFileKey names a file of a user of a submit node.
type UserFileKey struct {
	Node   string // in whose certificate the user is vouched for
	UID    uint32
	Digest string // the SHA-256 of its contents in hexadecimal
}

func (k UserFileKey) String() string {
	return fmt.Sprintf("file %.12s… of uid %d of %s", k.Digest, k.UID, k.Node)
}

var digestName = lazyregexp.New(`^[0-9a-f]{64}$`)

// userFilePath returns the path of a user's file.
func (s *Store) userFilePath(k UserFileKey) (string, error) {
	node := url.PathEscape(k.Node)
	if node == "" || strings.HasPrefix(node, ".") || len(node) > 255 || !digestName().MatchString(k.Digest) {
		return "", fmt.Errorf("%v: %w: there is no such thing", k, roost.Invalid)
	}
	return filepath.Join(s.dir, userFilesDir, node, strconv.FormatUint(uint64(k.UID), 10), k.Digest), nil
}

// ReceiveUserFile stores a file of size bytes. When it returns nil, the file is complete
// and on the disk. A file that is there already is not read again. A wrong size or digest
// is roost.Invalid, a lack of room roost.Exhausted. The errors of recv are returned as
// they are; its io.EOF ends the file.
func (s *Store) ReceiveUserFile(k UserFileKey, size int64, recv func() ([]byte, error)) error {
	path, err := s.userFilePath(k)
	if err != nil {
		return err
	}
	if s.RetainUserFile(k) == nil {
		return nil
	}
	arrived, err := s.reserveForUser(k, filepath.Dir(path), size)
	if err != nil {
		return err
	}
	defer arrived()
	return s.storeFile(k, path, size, os.Rename, func() (data []byte, last bool, err error) {
		if data, err = recv(); errors.Is(err, io.EOF) {
			return nil, true, nil
		}
		return data, false, err
	}, func() []byte {
		digest, _ := hex.DecodeString(k.Digest) // its path was made of it
		return digest
	})
}

// reserveForUser reserves the room for a file until arrived is called.
func (s *Store) reserveForUser(k UserFileKey, dir string, size int64) (arrived func(), err error) {
	if size < 0 {
		return nil, fmt.Errorf("%v: %w: it has %d bytes", k, roost.Invalid, size)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	stored, err := fileBytes(dir)
	if err != nil {
		return nil, fmt.Errorf("%v: %w", k, err)
	}
	used := stored + s.incomingOfUser[dir]
	if used > s.MaxBytesOfUser || size > s.MaxBytesOfUser-used {
		return nil, fmt.Errorf("%v: %w: it has %v, and the files of this user take %v of the %v that they may take on "+
			"the checkpoint server; they go when no job needs them, and an administrator may raise max_files_of_user",
			k, roost.Exhausted, roost.Bytes(size), roost.Bytes(used), roost.Bytes(s.MaxBytesOfUser))
	}
	if err := s.fitsDisk(size); err != nil {
		return nil, err
	}
	s.incomingBytes += size
	s.incomingOfUser[dir] += size
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.incomingBytes -= size
		if s.incomingOfUser[dir] -= size; s.incomingOfUser[dir] == 0 {
			delete(s.incomingOfUser, dir)
		}
	}, nil
}

// fileBytes sums the complete files in a directory.
func fileBytes(dir string) (sum int64, err error) {
	list, err := os.ReadDir(dir)
	if err != nil {
		return 0, ignoreNotExist(err)
	}
	for _, e := range list {
		if info, err := e.Info(); err == nil && !strings.HasSuffix(e.Name(), partialSuffix) {
			sum += info.Size()
		}
	}
	return sum, nil
}

// OpenUserFile opens a file of a user. A missing one is roost.NotFound.
func (s *Store) OpenUserFile(k UserFileKey) (*os.File, error) {
	path, err := s.userFilePath(k)
	if err != nil {
		return nil, err
	}
	if err := s.RetainUserFile(k); err != nil {
		return nil, err
	}
	return os.Open(path)
}

// RetainUserFile notes that a file is in use. A missing one is roost.NotFound.
func (s *Store) RetainUserFile(k UserFileKey) error {
	path, err := s.userFilePath(k)
	if err != nil {
		return err
	}
	now := time.Now()
	if err = os.Chtimes(path, now, now); errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%v: %w: the checkpoint server does not have it", k, roost.NotFound)
	}
	return err
}

// ExpireUserFiles deletes the files that nobody has used since a time. Uploads that were
// broken off before it go too. It returns how many those were.
func (s *Store) ExpireUserFiles(before time.Time) (n int, err error) {
	err = filepath.WalkDir(filepath.Join(s.dir, userFilesDir), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return ignoreNotExist(err)
		}
		info, err := d.Info()
		if err == nil && info.ModTime().Before(before) {
			if err = os.Remove(path); err == nil {
				n++
			}
		}
		return ignoreNotExist(err)
	})
	return n, err
}

// BlobsDir is where a checkpoint server has its blobs; see package internal/store.
const BlobsDir = ".blobs"

// PackagesDir is where a checkpoint server has the names of blobs; see package packages.
const PackagesDir = ".packages"

// skipUserFiles has a walk over images leave out the files of users, and blobs.
func skipUserFiles(d fs.DirEntry, err error) error {
	if err == nil && (d.Name() == userFilesDir || d.Name() == BlobsDir || d.Name() == PackagesDir) {
		return fs.SkipDir
	}
	return err
}
