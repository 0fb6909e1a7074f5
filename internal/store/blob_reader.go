package store

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/atomicfile"
)

// Blob is a whole blob that is being read.
type Blob struct {
	Manifest Manifest
	digest   Digest
	file     *os.File

	directory *Directory
	isWhole   bool // the object store may have what the file does not
}

// OpenBlob opens a whole blob. It is roost.NotFound if the store has none.
func (d *Directory) OpenBlob(digest Digest) (*Blob, error) {
	if _, err := d.Manifest(digest); err != nil {
		return nil, err
	}
	d.Path(digest) // it is used
	return d.openBlob(digest)
}

// openBlob opens a blob without noting that it is used.
func (d *Directory) openBlob(digest Digest) (*Blob, error) {
	m, err := d.Manifest(digest)
	if err != nil {
		return nil, err
	}
	f, err := os.Open(d.blobPath(digest))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("blob %s: %w: it is not in the store", digest.Short(), roost.NotFound)
	}
	if err != nil {
		return nil, fmt.Errorf("blob %s: %w", digest.Short(), err)
	}
	return &Blob{m, digest, f, d, true}, nil
}

// ErrDamaged means that a blob on the disk is no longer what was stored.
var ErrDamaged = errors.New("the blob is damaged on the disk")

// ReadChunk reads chunk i and compares it with its digest, so no damaged chunk is sent
// on. The bytes are in buffer if it has room for them. What the directory does not have
// comes from the object store.
func (b *Blob) ReadChunk(i int, buffer []byte) ([]byte, error) {
	if i < 0 || i >= len(b.Manifest.Chunks) {
		return nil, fmt.Errorf("blob %s: %w: it has %d chunks, and no chunk %d", b.digest.Short(), roost.Invalid,
			len(b.Manifest.Chunks), i)
	}
	n := b.Manifest.ChunkSize(i)
	if cap(buffer) < n {
		buffer = make([]byte, n)
	}
	buffer = buffer[:n]
	_, err := b.file.ReadAt(buffer, int64(i)*ChunkBytes)
	switch {
	case err == nil && sha256.Sum256(buffer) == b.Manifest.Chunks[i]:
		return buffer, nil
	case b.isWhole && b.directory.copies != nil:
		return b.fetchChunk(i)
	}
	b.directory.counts.damagedChunks.Add(1)
	if err != nil {
		return nil, fmt.Errorf("blob %s: chunk %d: %w: %w", b.digest.Short(), i, ErrDamaged, err)
	}
	return nil, fmt.Errorf("blob %s: chunk %d: %w", b.digest.Short(), i, ErrDamaged)
}

// ReadChunk reads chunk i of a blob that is whole or on its way. It compares the chunk
// with its digest, and does not count as a use of the blob. A chunk that is not here is
// roost.NotFound. The bytes are in buffer if it has room for them.
func (d *Directory) ReadChunk(digest Digest, i int, buffer []byte) ([]byte, error) {
	d.mu.Lock()
	in := d.incoming[digest]
	d.mu.Unlock()
	if in != nil {
		if data, err := in.readChunk(i, buffer); err == nil {
			return data, nil // otherwise it may have become whole meanwhile
		}
	}
	b, err := d.openBlob(digest)
	if err != nil {
		return nil, err
	}
	defer b.Close()
	return b.ReadChunk(i, buffer)
}

// Close closes the file.
func (b *Blob) Close() error { return b.file.Close() }

// Verify reads a whole blob and compares it with its digest. A damaged one leaves the
// blobs, with an error that wraps ErrDamaged: its right chunks wait for the next Receive,
// which gets the others only.
func (d *Directory) Verify(ctx context.Context, digest Digest) error {
	b, err := d.OpenBlob(digest)
	if errors.Is(err, roost.Invalid) || errors.Is(err, fs.ErrNotExist) {
		return errors.Join(fmt.Errorf("blob %s: %w: %w", digest.Short(), ErrDamaged, err), d.Remove(digest))
	}
	if err != nil {
		return err
	}
	defer b.Close()
	info, err := b.file.Stat()
	if err != nil {
		return fmt.Errorf("blob %s: %w", digest.Short(), err)
	}
	if info.Size() != b.Manifest.Size {
		err := fmt.Errorf("blob %s: %w: it has %d bytes, and had %d", digest.Short(), ErrDamaged, info.Size(),
			b.Manifest.Size)
		return errors.Join(err, d.uninstall(b))
	}
	var buffer []byte
	for i := range b.Manifest.Chunks {
		if err := ctx.Err(); err != nil {
			return err
		}
		if buffer, err = b.ReadChunk(i, buffer); err != nil {
			return errors.Join(err, d.uninstall(b))
		}
	}
	return nil
}

// uninstall makes a damaged blob one that is still to be received.
func (d *Directory) uninstall(b *Blob) error {
	d.filesMu.Lock()
	defer d.filesMu.Unlock()
	if !d.tryEnterReceive(b.digest) { // it is being received once more
		return d.removeFiles(b.digest)
	}
	defer d.leaveReceive(b.digest)
	incoming := d.join(incomingDir, b.digest.hex())
	if err := atomicfile.Write(incoming+manifestSuffix, b.Manifest.Encode(), blobMode); err != nil {
		return fmt.Errorf("blob %s: %w", b.digest.Short(), d.diskError(err))
	}
	if err := ignoreNotExist(os.Rename(d.blobPath(b.digest), incoming+incomingSuffix)); err != nil {
		return fmt.Errorf("blob %s: %w", b.digest.Short(), err)
	}
	return d.removeFiles(b.digest)
}

// Remove deletes a blob, pinned or not. A missing one is no error.
func (d *Directory) Remove(digest Digest) error {
	d.filesMu.Lock()
	defer d.filesMu.Unlock()
	return d.removeFiles(digest)
}

// removeFiles deletes the files of a blob, its own first: without it there is no blob.
// d.filesMu is held.
func (d *Directory) removeFiles(digest Digest) error {
	if !digest.Valid() {
		return nil
	}
	d.mu.Lock()
	delete(d.blobs, digest)
	d.mu.Unlock()
	path := d.blobPath(digest)
	if err := d.noteRemoval(digest); err != nil {
		return fmt.Errorf("blob %s: %w", digest.Short(), err)
	}
	for _, p := range []string{path, path + manifestSuffix, path + ownersSuffix, path + storedSuffix} {
		if err := ignoreNotExist(os.Remove(p)); err != nil {
			return fmt.Errorf("blob %s: %w", digest.Short(), err)
		}
	}
	return nil
}
