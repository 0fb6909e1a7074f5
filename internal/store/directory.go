package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/atomicfile"
	"github.com/roost-batch/roost/internal/filesum"
)

// Options are the bounds of a directory. Zero is no bound but the disk.
type Options struct {
	MaxBytes        int64 // of all blobs
	MaxBytesOfOwner int64 // of the blobs that one owner is charged for

	// Blobs without a pin that nobody has used for so long make room for new ones. Zero:
	// none do, unless Collect is called.
	SpareAfter time.Duration

	// Whole blobs move to an object store; nil: there is none. The directory then has at
	// most MaxLocalBytes of those that have moved.
	Objects       Objects
	MaxLocalBytes int64
}

// Directory is a store in a directory. Its methods may be called concurrently.
type Directory struct {
	path    string
	options Options
	lock    *os.File

	counts storeCounts
	copies *objectCopies // nil: there is no object store

	filesMu sync.Mutex // held while files of whole blobs, owners and pins come and go

	mu           sync.Mutex
	blobs        map[Digest]*storedBlob
	pins         map[Digest]map[string]bool
	arriving     int64 // bytes that blobs on their way still need
	arrivingOf   map[string]int64
	receiving    map[Digest]chan struct{} // closed when the digest's Incoming ends
	incoming     map[Digest]*Incoming     // that have a file
	maxDiskBytes func() (int64, error)    // bytes that the disk has for more blobs
}

// storedBlob is a whole blob.
type storedBlob struct {
	size    int64
	lastUse time.Time
	owners  []string
	stored  string // sum of the owners in the object store; empty: it does not have the blob
}

// formatText is the contents of the file with the version of the layout.
const formatText = "roost store 1\n"

// The directories of a store, and the endings of names.
const (
	blobsDir, incomingDir, pinsDir             = "blobs", "incoming", "pins"
	manifestSuffix, ownersSuffix               = ".manifest", ".owners"
	incomingSuffix, unnamedSuffix              = ".data", ".new"
	formatFile, lockFile                       = "format", "lock"
	directoryMode, blobMode        fs.FileMode = 0o700, 0o600
)

// OpenDirectory opens a store, and makes it if there is none. One process may have it
// open at a time.
func OpenDirectory(path string, o Options) (*Directory, error) {
	d := &Directory{path: path, options: o, blobs: map[Digest]*storedBlob{}, pins: map[Digest]map[string]bool{},
		arrivingOf: map[string]int64{}, receiving: map[Digest]chan struct{}{}, incoming: map[Digest]*Incoming{}}
	d.maxDiskBytes = d.freeBytes
	for _, dir := range []string{path, d.join(blobsDir), d.join(incomingDir), d.join(pinsDir)} {
		if err := os.MkdirAll(dir, directoryMode); err != nil {
			return nil, fmt.Errorf("store %s: %w", path, err)
		}
	}
	lock, err := os.OpenFile(d.join(lockFile), os.O_RDWR|os.O_CREATE, blobMode)
	if err != nil {
		return nil, fmt.Errorf("store %s: %w", path, err)
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		lock.Close()
		return nil, fmt.Errorf("store %s: %w: another process uses it; give each its own directory", path,
			roost.Conflict)
	}
	d.lock = lock
	if err := errors.Join(d.checkFormat(), d.scanIncoming(), d.scanBlobs(), d.scanPins(),
		d.openObjects()); err != nil {
		lock.Close()
		return nil, fmt.Errorf("store %s: %w", path, err)
	}
	return d, nil
}

// Close lets another process open the directory. No method may be called afterwards.
func (d *Directory) Close() error { return d.lock.Close() }

func (d *Directory) join(names ...string) string {
	return filepath.Join(append([]string{d.path}, names...)...)
}

func (d *Directory) blobPath(digest Digest) string {
	h := digest.hex()
	return d.join(blobsDir, h[:2], h)
}

// checkFormat refuses a layout of another release.
func (d *Directory) checkFormat() error {
	path := d.join(formatFile)
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(text) == 0 {
		return atomicfile.WriteDurable(path, filesum.AppendChecksum([]byte(formatText)), blobMode)
	}
	if err != nil {
		return err
	}
	text, err = filesum.VerifyChecksum(text)
	if err != nil {
		return fmt.Errorf("%s: %w; if the blobs are as they were, remove this file", path, err)
	}
	if string(text) != formatText {
		return fmt.Errorf("%s: %w: it has %.40q, and this release reads %q: use the release that wrote it, or an "+
			"empty directory", path, roost.BadConfig, text, formatText)
	}
	return nil
}

// scanIncoming removes files whose digest is unknown: their writers are gone.
func (d *Directory) scanIncoming() error {
	list, err := os.ReadDir(d.join(incomingDir))
	for _, e := range list {
		if strings.HasSuffix(e.Name(), unnamedSuffix) {
			err = errors.Join(err, os.RemoveAll(d.join(incomingDir, e.Name())))
		}
	}
	return err
}

// scanBlobs finds the whole blobs.
func (d *Directory) scanBlobs() error {
	return filepath.WalkDir(d.join(blobsDir), func(path string, e fs.DirEntry, err error) error {
		digest := Digest(digestPrefix + filepath.Base(path))
		if err != nil || !e.Type().IsRegular() || !digest.Valid() {
			return ignoreNotExist(err)
		}
		info, err := e.Info()
		if err != nil {
			return ignoreNotExist(err)
		}
		d.blobs[digest] = &storedBlob{info.Size(), info.ModTime(), readOwners(path + ownersSuffix),
			readStored(path + storedSuffix)}
		return nil
	})
}

// Path returns the file of a whole blob, and notes that the blob is used. The file must
// not be changed; a pin keeps Collect from removing it.
func (d *Directory) Path(digest Digest) (path string, ok bool) {
	d.mu.Lock()
	b := d.blobs[digest]
	now := time.Now()
	if b != nil {
		b.lastUse = now
	}
	d.mu.Unlock()
	if b == nil {
		return "", false
	}
	path = d.blobPath(digest)
	if err := os.Chtimes(path, now, now); errors.Is(err, fs.ErrNotExist) { // somebody else removed it
		d.mu.Lock()
		defer d.mu.Unlock()
		delete(d.blobs, digest)
		return "", false
	}
	return path, true
}

// Manifest returns the manifest of a whole blob. It is roost.NotFound without the blob.
func (d *Directory) Manifest(digest Digest) (Manifest, error) {
	d.mu.Lock()
	b := d.blobs[digest]
	d.mu.Unlock()
	if b == nil {
		return Manifest{}, fmt.Errorf("blob %s: %w: it is not in the store", digest.Short(), roost.NotFound)
	}
	return readManifest(d.blobPath(digest)+manifestSuffix, digest)
}

// readManifest reads the manifest of a digest from a file.
func readManifest(path string, digest Digest) (m Manifest, err error) {
	text, err := os.ReadFile(path)
	if err == nil {
		m, err = DecodeManifest(text)
	}
	if err == nil && m.Digest() != digest {
		err = fmt.Errorf("%w: it is the manifest of %s", roost.Invalid, m.Digest().Short())
	}
	if err != nil {
		return m, fmt.Errorf("blob %s: %s: %w", digest.Short(), path, err)
	}
	return m, nil
}

// Entry is a whole blob in a list.
type Entry struct {
	Digest  Digest
	Size    int64 // bytes
	LastUse time.Time
	Pins    []string // the owners of pins, sorted
	Owners  []string // who is charged for it, in the order in which they came
}

// List returns the whole blobs, the one first that was used last.
func (d *Directory) List() []Entry {
	d.mu.Lock()
	defer d.mu.Unlock()
	list := make([]Entry, 0, len(d.blobs))
	for digest, b := range d.blobs {
		list = append(list, Entry{digest, b.size, b.lastUse, sortedKeys(d.pins[digest]), slices.Clone(b.owners)})
	}
	slices.SortFunc(list, func(a, b Entry) int {
		if c := b.LastUse.Compare(a.LastUse); c != 0 {
			return c
		}
		return strings.Compare(string(a.Digest), string(b.Digest))
	})
	return list
}

// OwnedSize returns the size of a whole blob, in bytes, if an owner is charged for it.
func (d *Directory) OwnedSize(digest Digest, owner string) (size int64, ok bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if b := d.blobs[digest]; b != nil && slices.Contains(b.owners, owner) {
		return b.size, true
	}
	return 0, false
}

// UsedBytes sums the whole blobs, in bytes.
func (d *Directory) UsedBytes() (sum int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.usedBytes("")
}

// usedBytes sums the blobs of an owner, or all of them for none. d.mu is held.
func (d *Directory) usedBytes(owner string) (sum int64) {
	for _, b := range d.blobs {
		if owner == "" || slices.Contains(b.owners, owner) {
			sum += b.size
		}
	}
	return sum
}

// ignoreNotExist ignores the error of a file that was deleted meanwhile.
func ignoreNotExist(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
