package store

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/atomicfile"
)

// adoptBlob puts a blob of the object store into the index. What is no manifest of the
// digest is roost.Invalid.
func (c *objectCopies) adoptBlob(ctx context.Context, digest Digest, changed time.Time) error {
	d := c.directory
	text, err := c.get(ctx, objectName(digest, manifestObject), MaxManifestBytes)
	if errors.Is(err, roost.NotFound) {
		return nil // deleted since the list, or too long to be one
	}
	if err != nil {
		return err
	}
	m, err := DecodeManifest(text)
	if err == nil && m.Digest() != digest {
		err = fmt.Errorf("%w: it is the manifest of %s", roost.Invalid, m.Digest().Short())
	}
	if err != nil {
		d.counts.damagedChunks.Add(1)
		return fmt.Errorf("blob %s in the object store: %w", digest.Short(), err)
	}
	text, err = c.get(ctx, objectName(digest, ownersObject), maxOwnersBytes)
	if err != nil && !errors.Is(err, roost.NotFound) {
		return err
	}
	owners := parseOwners(text)
	d.filesMu.Lock()
	defer d.filesMu.Unlock()
	d.mu.Lock()
	here := d.blobs[digest] != nil
	d.mu.Unlock()
	if here || d.isRemovalNoted(digest) {
		return nil
	}
	if err := c.adoptFiles(digest, m, owners, changed); err != nil {
		return fmt.Errorf("blob %s: %w", digest.Short(), d.diskError(err))
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.blobs[digest] = &storedBlob{size: m.Size, lastUse: changed, owners: owners, stored: ownersSum(owners)}
	return nil
}

// adoptFiles writes the files of a blob of which the directory has no chunk. Its own file
// comes last: without it there is no blob.
func (c *objectCopies) adoptFiles(digest Digest, m Manifest, owners []string, changed time.Time) error {
	d := c.directory
	path := d.blobPath(digest)
	if err := os.MkdirAll(filepath.Dir(path), directoryMode); err != nil {
		return err
	}
	if err := atomicfile.WriteDurable(path+manifestSuffix, m.Encode(), blobMode); err != nil {
		return err
	}
	if err := writeOwners(path+ownersSuffix, owners); err != nil {
		return err
	}
	if err := d.writeStored(digest, owners); err != nil {
		return err
	}
	return c.placeHoles(digest, m.Size, changed)
}

// AllocatedBytes returns what a file takes of the disk: holes take nothing. It is 0 for a
// missing file.
func AllocatedBytes(path string) int64 {
	var s syscall.Stat_t
	if syscall.Lstat(path, &s) != nil {
		return 0
	}
	return min(s.Size, s.Blocks*512)
}
