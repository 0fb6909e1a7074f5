package store

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/atomicfile"
	"github.com/roost-batch/roost/internal/filesum"
)

// Objects is a bucket of an object store. Nothing that comes from it is believed: chunks
// and manifests are compared with their digests. Where it does not answer, an error is
// roost.Unavailable and names its address.
type Objects interface {
	Put(ctx context.Context, name string, data []byte) error

	// Get returns an object. One that has more than most bytes, or is missing, is
	// roost.NotFound.
	Get(ctx context.Context, name string, most int) ([]byte, error)

	// List calls each for the objects whose names begin so, until that returns an error.
	List(ctx context.Context, prefix string, each func(name string, changed time.Time) error) error

	// Remove deletes an object. A missing one is no error.
	Remove(ctx context.Context, name string) error
}

// objectCopies is the part of a directory that has an object store. The whole blobs move
// there. Each chunk is one object: S3 takes no part of a multipart object below 5 MiB, an
// unfinished one takes room that no list shows, and a chunk is what a reader wants.
//
//	blobs/HEX/chunk-000000   the chunks are sent first
//	blobs/HEX/owners         as in the directory; sent again when they change
//	blobs/HEX/manifest       sent last and deleted first: without it there is no blob
//
// The directory has the index. A blob's file there is sparse: it has the chunks that were
// used last, and holes for those that only the object store has.
//
//	DIR/blobs/HH/HEX.stored  the object store has the blob, and which owners
//	DIR/removed/HEX          the objects of the blob have to be deleted
type objectCopies struct {
	Objects
	directory *Directory
	wake      chan struct{}
	adopted   bool           // the blobs in the object store are in the index
	sent      map[Digest]int // chunks of blobs that are not there completely

	failures atomic.Int64
}

const (
	removedDir, storedSuffix = "removed", ".stored"
	manifestObject           = "manifest"
	ownersObject             = "owners"
	storedText               = "in the object store\n"

	objectTimeout  = 30 * time.Second // of one request
	maxOwnersBytes = 1 << 20
)

func objectName(digest Digest, part string) string { return "blobs/" + digest.hex() + "/" + part }

func chunkObject(i int) string { return fmt.Sprintf("chunk-%06d", i) }

func (c *objectCopies) signal() {
	if c == nil {
		return
	}
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// counted counts a failed request.
func (c *objectCopies) counted(err error) error {
	if err != nil && !errors.Is(err, roost.NotFound) && !errors.Is(err, context.Canceled) {
		c.failures.Add(1)
	}
	return err
}

func (c *objectCopies) put(ctx context.Context, name string, data []byte) error {
	ctx, cancel := context.WithTimeout(ctx, objectTimeout)
	defer cancel()
	return c.counted(c.Put(ctx, name, data))
}

func (c *objectCopies) get(ctx context.Context, name string, most int) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, objectTimeout)
	defer cancel()
	data, err := c.Get(ctx, name, most)
	return data, c.counted(err)
}

func (c *objectCopies) remove(ctx context.Context, name string) error {
	ctx, cancel := context.WithTimeout(ctx, objectTimeout)
	defer cancel()
	return c.counted(c.Remove(ctx, name))
}

// ownersSum names the owners that the object store has for a blob.
func ownersSum(owners []string) string {
	sum := sha256.Sum256(ownersText(owners))
	return hex.EncodeToString(sum[:])
}

// writeStored notes that the object store has a blob with these owners.
func (d *Directory) writeStored(digest Digest, owners []string) error {
	return atomicfile.WriteDurable(d.blobPath(digest)+storedSuffix,
		filesum.AppendChecksum([]byte(storedText+ownersSum(owners)+"\n")), blobMode)
}

// readStored returns the sum of the owners that the object store has; empty: it does not
// have the blob. A damaged note has the blob sent again.
func readStored(path string) string {
	text, err := os.ReadFile(path)
	if err == nil {
		text, err = filesum.VerifyChecksum(text)
	}
	if err != nil {
		return ""
	}
	sum, _ := strings.CutPrefix(string(text), storedText)
	return strings.TrimSpace(sum)
}

// noteRemoval has the objects of a blob deleted, over crashes too.
func (d *Directory) noteRemoval(digest Digest) error {
	if d.copies == nil {
		return nil
	}
	path := d.join(removedDir, digest.hex())
	if err := os.WriteFile(path, nil, blobMode); err != nil {
		return d.diskError(err)
	}
	d.copies.signal()
	return atomicfile.SyncDir(filepath.Dir(path))
}

func (d *Directory) isRemovalNoted(digest Digest) bool {
	_, err := os.Lstat(d.join(removedDir, digest.hex()))
	return err == nil
}

// openObjects finishes removals that a crash interrupted. Without an object store it
// refuses a directory whose blobs are in one.
func (d *Directory) openObjects() error {
	if d.options.Objects == nil {
		stored := 0
		for _, b := range d.blobs {
			if b.stored != "" {
				stored++
			}
		}
		if stored > 0 {
			return fmt.Errorf("%w: %d of its %d images and packages are in an object store: put the objects block of "+
				"checkpoint_server back into the node file, or use an empty directory", roost.BadConfig, stored,
				len(d.blobs))
		}
		return nil
	}
	d.copies = &objectCopies{Objects: d.options.Objects, directory: d, wake: make(chan struct{}, 1),
		sent: map[Digest]int{}}
	if err := os.MkdirAll(d.join(removedDir), directoryMode); err != nil {
		return err
	}
	for digest, b := range d.blobs {
		if b.stored != "" && d.isRemovalNoted(digest) {
			if err := d.removeFiles(digest); err != nil {
				return err
			}
		}
	}
	return nil
}

// fetchChunk gets a chunk that the directory does not have from the object store.
func (b *Blob) fetchChunk(i int) ([]byte, error) {
	d, n := b.directory, b.Manifest.ChunkSize(i)
	data, err := d.copies.get(context.Background(), objectName(b.digest, chunkObject(i)), n)
	switch {
	case errors.Is(err, roost.NotFound):
		err = fmt.Errorf("%w in the object store: %w", ErrDamaged, err)
	case err == nil && (len(data) != n || sha256.Sum256(data) != b.Manifest.Chunks[i]):
		err = fmt.Errorf("%w: the bytes in the object store are not those of its digest", ErrDamaged)
	}
	if err != nil {
		if errors.Is(err, ErrDamaged) {
			d.counts.damagedChunks.Add(1)
		}
		return nil, fmt.Errorf("blob %s: chunk %d: %w", b.digest.Short(), i, err)
	}
	d.copies.writeBack(b.digest, i, data)
	return data, nil
}

// writeBack has the directory have a chunk again, if the disk has room. Without it the
// next reader asks the object store once more.
func (c *objectCopies) writeBack(digest Digest, i int, data []byte) {
	d := c.directory
	if free, err := d.maxDiskBytes(); err != nil || free < 2*ChunkBytes {
		return
	}
	f, err := os.OpenFile(d.blobPath(digest), os.O_WRONLY, 0)
	if err != nil {
		return // removed meanwhile
	}
	defer f.Close()
	if _, err := f.WriteAt(data, int64(i)*ChunkBytes); err == nil && d.options.MaxLocalBytes > 0 {
		c.signal()
	}
}
