package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/lazyregexp"
)

// Times between two passes over the blobs that are to be moved.
const (
	syncInterval = time.Minute
	firstRetry   = time.Second
)

// RunObjects moves blobs to the object store, and deletes them there, until ctx ends.
// What fails is tried again; report learns why.
func (d *Directory) RunObjects(ctx context.Context, report func(error)) {
	if d.copies == nil {
		return
	}
	retry := firstRetry
	for {
		wait, wake := syncInterval, d.copies.wake
		if err := d.SyncObjects(ctx); err != nil && ctx.Err() == nil {
			report(err)
			wait, wake = retry, nil
			retry = min(2*retry, syncInterval)
		} else {
			retry = firstRetry
		}
		timer := time.NewTimer(wait)
		select {
		case <-wake:
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return
		}
		timer.Stop()
	}
}

// SyncObjects does once what RunObjects does. One caller at a time may be in it.
func (d *Directory) SyncObjects(ctx context.Context) error {
	if d.copies == nil {
		return nil
	}
	if err := d.AdoptObjects(ctx); err != nil {
		return err
	}
	if err := d.copies.removeObjects(ctx); err != nil {
		return err
	}
	all := d.copies.copyBlobs(ctx)
	if d.options.MaxLocalBytes > 0 {
		all = errors.Join(all, d.copies.dropLocal(d.options.MaxLocalBytes))
	}
	return all
}

// AdoptObjects puts what only the object store has into the index, unless it has done so
// before. It is called like SyncObjects.
func (d *Directory) AdoptObjects(ctx context.Context) error {
	if d.copies == nil || d.copies.adopted {
		return nil
	}
	if err := d.copies.adoptObjects(ctx); err != nil {
		return err
	}
	d.copies.adopted = true
	return nil
}

// removeObjects deletes the objects of removed blobs, the manifest first.
func (c *objectCopies) removeObjects(ctx context.Context) error {
	d := c.directory
	list, err := os.ReadDir(d.join(removedDir))
	if err != nil {
		return err
	}
	for _, e := range list {
		digest := Digest(digestPrefix + e.Name())
		if !digest.Valid() {
			continue
		}
		delete(c.sent, digest)
		if err := c.remove(ctx, objectName(digest, manifestObject)); err != nil {
			return fmt.Errorf("blob %s: %w", digest.Short(), err)
		}
		var names []string
		err := c.List(ctx, objectName(digest, ""), func(name string, _ time.Time) error {
			if of, _, ok := parseObjectName(name); ok && of == digest {
				names = append(names, name)
			}
			return nil
		})
		for _, name := range names {
			err = errors.Join(err, c.remove(ctx, name))
		}
		if err != nil {
			return fmt.Errorf("blob %s: %w", digest.Short(), c.counted(err))
		}
		if err := ignoreNotExist(os.Remove(d.join(removedDir, e.Name()))); err != nil {
			return err
		}
	}
	return nil
}

// copyBlobs sends what the object store does not have. Errors of single blobs do not stop
// the others, unless the object store does not answer.
func (c *objectCopies) copyBlobs(ctx context.Context) (all error) {
	d := c.directory
	for _, e := range d.List() {
		d.mu.Lock()
		b := d.blobs[e.Digest]
		var stored string
		if b != nil {
			stored = b.stored
		}
		d.mu.Unlock()
		if b == nil || stored == ownersSum(e.Owners) {
			continue
		}
		err := c.copyBlob(ctx, e, stored != "")
		if err == nil || errors.Is(err, roost.NotFound) { // removed meanwhile
			continue
		}
		all = errors.Join(all, fmt.Errorf("blob %s: %w", e.Digest.Short(), err))
		if !errors.Is(err, ErrDamaged) {
			return all
		}
	}
	return all
}

// copyBlob sends one blob, or its owners only, and notes that.
func (c *objectCopies) copyBlob(ctx context.Context, e Entry, ownersOnly bool) error {
	d := c.directory
	b, err := d.openBlob(e.Digest)
	if err != nil {
		return err
	}
	defer b.Close()
	buffer := make([]byte, min(ChunkBytes, b.Manifest.Size))
	for i := c.sent[e.Digest]; i < len(b.Manifest.Chunks) && !ownersOnly; i++ {
		data, err := b.ReadChunk(i, buffer)
		if err == nil {
			err = c.put(ctx, objectName(e.Digest, chunkObject(i)), data)
		}
		if err != nil {
			return err
		}
		c.sent[e.Digest] = i + 1
	}
	if err := c.put(ctx, objectName(e.Digest, ownersObject), ownersText(e.Owners)); err != nil {
		return err
	}
	if !ownersOnly {
		if err := c.putManifest(ctx, e.Digest, b.Manifest.Encode()); err != nil {
			return err
		}
	}
	delete(c.sent, e.Digest)
	d.filesMu.Lock()
	defer d.filesMu.Unlock()
	d.mu.Lock()
	now := d.blobs[e.Digest]
	d.mu.Unlock()
	if now == nil || d.isRemovalNoted(e.Digest) {
		return nil // the next pass deletes the objects, and sends them again if the blob came back
	}
	if err := d.writeStored(e.Digest, e.Owners); err != nil {
		return d.diskError(err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	now.stored = ownersSum(e.Owners)
	return nil
}

// putManifest makes the chunks of the object store a blob. It reads the manifest back,
// because a web server may answer everything with success.
func (c *objectCopies) putManifest(ctx context.Context, digest Digest, text []byte) error {
	name := objectName(digest, manifestObject)
	if err := c.put(ctx, name, text); err != nil {
		return err
	}
	got, err := c.get(ctx, name, len(text))
	if err == nil && !bytes.Equal(got, text) {
		err = fmt.Errorf("%w: the object store does not return what was put", roost.Unavailable)
	}
	if errors.Is(err, roost.NotFound) {
		err = fmt.Errorf("%w: the object store does not have what was put: %s", roost.Unavailable, err.Error())
	}
	return err
}

var objectForm = lazyregexp.New(`^blobs/([0-9a-f]{64})/(manifest|owners|chunk-[0-9]{6})$`)

// parseObjectName returns the blob and the part that an object belongs to.
func parseObjectName(name string) (digest Digest, part string, ok bool) {
	m := objectForm().FindStringSubmatch(name)
	if m == nil {
		return "", "", false
	}
	return Digest(digestPrefix + m[1]), m[2], true
}

// maxListedBlobs bounds the blobs of an object store.
const maxListedBlobs = 1_000_000

// listedBlob is what a list of the object store has of a blob.
type listedBlob struct {
	isWhole bool // it has a manifest
	changed time.Time
}

// adoptObjects compares the index with the object store. Blobs that only the latter has
// come into the index, and what is no longer there is sent again.
func (c *objectCopies) adoptObjects(ctx context.Context) error {
	d := c.directory
	listed := map[Digest]*listedBlob{}
	err := c.List(ctx, "blobs/", func(name string, changed time.Time) error {
		digest, part, ok := parseObjectName(name)
		if !ok {
			return nil // not ours
		}
		if listed[digest] == nil {
			if len(listed) >= maxListedBlobs {
				return fmt.Errorf("%w: the object store lists more than %d images and packages: is the prefix "+
					"another's?", roost.Exhausted, maxListedBlobs)
			}
			listed[digest] = &listedBlob{}
		}
		l := listed[digest]
		l.isWhole = l.isWhole || part == manifestObject
		if changed.After(l.changed) {
			l.changed = changed
		}
		return nil
	})
	if err != nil {
		return c.counted(err)
	}
	for digest, l := range listed {
		d.mu.Lock()
		here := d.blobs[digest] != nil
		d.mu.Unlock()
		switch {
		case here || d.isRemovalNoted(digest):
		case l.isWhole:
			err = c.adoptBlob(ctx, digest, l.changed)
		case time.Since(l.changed) > abandonedAfter: // of an upload that a crash ended
			err = d.noteRemoval(digest)
		}
		if err != nil && !errors.Is(err, roost.Invalid) { // a forged manifest makes no blob
			return err
		}
	}
	return c.forgetStored(listed)
}

// forgetStored has blobs sent again that were in the object store and are not any more.
func (c *objectCopies) forgetStored(listed map[Digest]*listedBlob) error {
	d := c.directory
	for _, e := range d.List() {
		if l := listed[e.Digest]; l != nil && l.isWhole {
			continue
		}
		d.filesMu.Lock()
		err := ignoreNotExist(os.Remove(d.blobPath(e.Digest) + storedSuffix))
		d.mu.Lock()
		if b := d.blobs[e.Digest]; b != nil && err == nil {
			b.stored = ""
		}
		d.mu.Unlock()
		d.filesMu.Unlock()
		if err != nil {
			return err
		}
	}
	return nil
}

// dropLocal removes what the directory has of stored blobs, until the rest takes at most
// limit bytes of the disk. Those that were used longest ago go first.
func (c *objectCopies) dropLocal(limit int64) error {
	d := c.directory
	list := d.List()
	sizes := make([]int64, len(list))
	var sum int64
	for i, e := range list {
		sizes[i] = AllocatedBytes(d.blobPath(e.Digest))
		sum += sizes[i]
	}
	for i, e := range slices.Backward(list) {
		if sum <= limit {
			return nil
		}
		if sizes[i] == 0 {
			continue
		}
		dropped, err := c.dropLocalBlob(e)
		if err != nil {
			return fmt.Errorf("blob %s: %w", e.Digest.Short(), d.diskError(err))
		}
		if dropped {
			sum -= sizes[i]
		}
	}
	return nil
}

// dropLocalBlob puts a file of holes in the place of a blob that the object store has.
func (c *objectCopies) dropLocalBlob(e Entry) (dropped bool, err error) {
	d := c.directory
	d.filesMu.Lock()
	defer d.filesMu.Unlock()
	d.mu.Lock()
	b := d.blobs[e.Digest]
	ok := b != nil && b.stored != ""
	d.mu.Unlock()
	if !ok {
		return false, nil
	}
	return true, c.placeHoles(e.Digest, e.Size, e.LastUse)
}

// placeHoles gives a blob a file without any chunk. d.filesMu is held.
func (c *objectCopies) placeHoles(digest Digest, size int64, lastUse time.Time) error {
	d := c.directory
	f, err := d.NewFile()
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // it has another name, if all went well
	defer f.Close()
	path := d.blobPath(digest)
	return errors.Join(f.Truncate(size), os.Chtimes(f.Name(), lastUse, lastUse),
		os.MkdirAll(filepath.Dir(path), directoryMode), os.Rename(f.Name(), path))
}
