package store

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/atomicfile"
	"github.com/roost-batch/roost/internal/filesum"
)

// NewFile creates an empty file on the disk of the store, for AddFile. Whoever does not
// add it removes it; a crash leaves nothing.
func (d *Directory) NewFile() (*os.File, error) {
	f, err := os.CreateTemp(d.join(incomingDir), "*"+unnamedSuffix)
	if err != nil {
		return nil, fmt.Errorf("store %s: %w", d.path, d.diskError(err))
	}
	return f, nil
}

// Add stores what r has. Bytes that are there already are stored only once. The owner is
// charged for the blob; an empty owner is the daemon itself.
func (d *Directory) Add(ctx context.Context, r io.Reader, owner string) (m Manifest, err error) {
	f, err := d.NewFile()
	if err != nil {
		return m, err
	}
	defer os.Remove(f.Name()) // it has another name, if all went well
	defer f.Close()
	m, err = copyChunks(ctx, f, r)
	if err != nil {
		return m, fmt.Errorf("store %s: %w", d.path, d.diskError(err))
	}
	return m, d.addNamed(f, m, owner)
}

// AddFile stores a file of NewFile, which it closes and renames. It reads the file once.
func (d *Directory) AddFile(ctx context.Context, f *os.File, owner string) (m Manifest, err error) {
	defer os.Remove(f.Name())
	defer f.Close()
	if _, err = f.Seek(0, io.SeekStart); err == nil {
		m, err = copyChunks(ctx, io.Discard, f)
	}
	if err != nil {
		return m, fmt.Errorf("store %s: %w", d.path, d.diskError(err))
	}
	return m, d.addNamed(f, m, owner)
}

// copyChunks copies r and returns the manifest of what it read.
func copyChunks(ctx context.Context, w io.Writer, r io.Reader) (m Manifest, err error) {
	buffer := make([]byte, ChunkBytes)
	for {
		n, err := io.ReadFull(r, buffer)
		if n > 0 {
			if m.Size += int64(n); m.Size > MaxBlobBytes {
				return m, fmt.Errorf("blob: %w: it has more than %v", roost.Exhausted, roost.Bytes(MaxBlobBytes))
			}
			m.Chunks = append(m.Chunks, sha256.Sum256(buffer[:n]))
			if _, err := w.Write(buffer[:n]); err != nil {
				return m, err
			}
		}
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return m, nil
		}
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return m, err
		}
	}
}

// addNamed makes a written file the blob of its manifest, if the owner has room for it.
func (d *Directory) addNamed(f *os.File, m Manifest, owner string) error {
	if ok, err := d.own(m.Digest(), owner); ok || err != nil {
		return err
	}
	room, err := d.reserve(owner, m.Size)
	if err != nil {
		return err
	}
	defer room.end()
	room.written(m.Size) // the disk has it already
	if err := f.Sync(); err != nil {
		return fmt.Errorf("store %s: %w", d.path, d.diskError(err))
	}
	return d.install(f.Name(), m, owner)
}

// install gives a synced file the name of its blob. The manifest comes first, so no blob
// is without one. A blob that is there already remains.
func (d *Directory) install(file string, m Manifest, owner string) (err error) {
	digest := m.Digest()
	path := d.blobPath(digest)
	d.filesMu.Lock()
	defer d.filesMu.Unlock()
	defer func() {
		if err != nil {
			err = fmt.Errorf("blob %s: %w", digest.Short(), d.diskError(err))
		}
	}()
	dir := path[:len(path)-len(digest.hex())-1]
	if err := os.MkdirAll(dir, directoryMode); err != nil {
		return err
	}
	d.mu.Lock()
	there := d.blobs[digest]
	owners := addOwner(nil, owner)
	if there != nil {
		owners = addOwner(there.owners, owner)
	}
	d.mu.Unlock()
	if err := writeOwners(path+ownersSuffix, owners); err != nil {
		return err
	}
	if there == nil {
		if err := ignoreNotExist(os.Remove(path + storedSuffix)); err != nil { // of one that was removed
			return err
		}
		if err := atomicfile.WriteDurable(path+manifestSuffix, m.Encode(), blobMode); err != nil {
			return err
		}
		if err := os.Rename(file, path); err != nil {
			return err
		}
		if err := errors.Join(atomicfile.SyncDir(dir), atomicfile.SyncDir(d.join(blobsDir))); err != nil {
			return err
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	b := &storedBlob{size: m.Size, lastUse: time.Now(), owners: owners}
	if there != nil {
		b.stored = there.stored
	}
	d.blobs[digest] = b
	d.copies.signal()
	return nil
}

// own charges an owner for a blob that is there, and reports whether it is.
func (d *Directory) own(digest Digest, owner string) (ok bool, err error) {
	path, ok := d.Path(digest)
	if !ok || owner == "" {
		return ok, nil
	}
	d.filesMu.Lock()
	defer d.filesMu.Unlock()
	d.mu.Lock()
	b := d.blobs[digest]
	if b == nil || slices.Contains(b.owners, owner) {
		d.mu.Unlock()
		return b != nil, nil
	}
	err = d.fits(owner, b.size, MaxBlobBytes+d.arriving) // the disk has it already
	owners := addOwner(b.owners, owner)
	d.mu.Unlock()
	if err == nil {
		err = writeOwners(path+ownersSuffix, owners)
	}
	if err != nil {
		return true, fmt.Errorf("blob %s: %w", digest.Short(), d.diskError(err))
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	b.owners = owners
	d.copies.signal()
	return true, nil
}

// Disown ends the charge of an owner for a blob. If nobody else is charged for it and no
// pin is on it, the blob is removed, and Disown reports so. Without the blob, or if it is
// not the owner's, it returns roost.NotFound.
func (d *Directory) Disown(digest Digest, owner string) (removed bool, err error) {
	d.filesMu.Lock()
	defer d.filesMu.Unlock()
	d.mu.Lock()
	b := d.blobs[digest]
	if b == nil || !slices.Contains(b.owners, owner) {
		d.mu.Unlock()
		return false, fmt.Errorf("blob %s: %w: the store has none of %s", digest.Short(), roost.NotFound, owner)
	}
	owners := slices.DeleteFunc(slices.Clone(b.owners), func(o string) bool { return o == owner })
	unused := len(owners) == 0 && len(d.pins[digest]) == 0
	d.mu.Unlock()
	if unused {
		return true, d.removeFiles(digest)
	}
	if err := writeOwners(d.blobPath(digest)+ownersSuffix, owners); err != nil {
		return false, fmt.Errorf("blob %s: %w", digest.Short(), err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	b.owners = owners
	d.copies.signal()
	return false, nil
}

func addOwner(owners []string, owner string) []string {
	if owner == "" || slices.Contains(owners, owner) {
		return owners
	}
	return append(slices.Clone(owners), owner)
}

// writeOwners replaces the file with the owners of a blob. No owners need no file.
func writeOwners(path string, owners []string) error {
	if len(owners) == 0 {
		return ignoreNotExist(os.Remove(path))
	}
	return atomicfile.WriteDurable(path, ownersText(owners), blobMode)
}

// ownersText returns owners as they are stored.
func ownersText(owners []string) []byte {
	var text []byte
	for _, o := range owners {
		text = fmt.Appendf(text, "%q\n", o)
	}
	return filesum.AppendChecksum(text)
}

// readOwners reads the owners of a blob. A damaged file charges nobody: the blob can be
// used, and is collected like one of the daemon's own.
func readOwners(path string) (owners []string) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil
	}
	return parseOwners(text)
}

// parseOwners reads what ownersText returns; nothing of what is damaged.
func parseOwners(text []byte) (owners []string) {
	text, err := filesum.VerifyChecksum(text)
	if err != nil {
		return nil
	}
	for len(text) > 0 {
		var owner string
		n, err := fmt.Sscanf(string(text), "%q\n", &owner)
		if err != nil || n != 1 {
			return nil
		}
		owners = append(owners, owner)
		text = text[len(fmt.Sprintf("%q\n", owner)):]
	}
	return owners
}
