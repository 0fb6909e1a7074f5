package containerimage

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/store"
)

// Source brings images to a machine.
type Source interface {
	// Fetch brings a blob into a store, and tells progress how many of its bytes are
	// there. A source that cannot be reached is roost.Unavailable, one that has no such
	// blob roost.NotFound, and a store without room for it roost.Exhausted.
	Fetch(ctx context.Context, digest store.Digest, to *store.Directory, progress func(have, size int64)) error
}

// Cache has the images of a machine. Its methods may be called concurrently.
type Cache struct {
	log    *slog.Logger
	mounts string // directory
	roots  imageRoots
	blobs  *store.Directory
	source Source

	mu     sync.Mutex
	images map[store.Digest]*cachedImage // that are used, on their way, or mounted
}

// imageRoots makes the root directories of images.
type imageRoots interface {
	list() ([]store.Digest, error)                   // those that are there
	make(ctx context.Context, file, at string) error // roost.Exhausted: there is no room
	remove(at string) error                          // takes little time
	sweep() error                                    // completes remove
	stays() bool                                     // reports whether unused ones stay when the process ends
}

// cachedImage is an image of the cache. The cache's lock guards what is not of the
// goroutine that brings it.
type cachedImage struct {
	users  int
	cancel context.CancelFunc // of what brings it
	ready  chan struct{}      // closed when it is mounted or has failed; then err is set
	err    error
	have   int64 // bytes that are here
	size   int64 // bytes; 0 while nobody knows
}

// Options are what a cache works with.
type Options struct {
	Log      *slog.Logger
	Dir      string
	Source   Source
	MaxBytes int64 // of all images; 0: what the disk has room for
	Unpack   bool  // have their files in directories, where nothing can be mounted
}

// pinOwner is the owner of the pins on images that tasks use.
const pinOwner = "tasks"

// Open opens the images of a machine. Those that an earlier process has mounted stay
// mounted, for its tasks.
func Open(o Options) (*Cache, error) {
	c := &Cache{log: o.Log, mounts: filepath.Join(o.Dir, "mounts"), source: o.Source,
		images: map[store.Digest]*cachedImage{}}
	c.roots = kernelMounts{c.mounts}
	if o.Unpack { // each image is here twice
		c.mounts, o.MaxBytes = filepath.Join(o.Dir, "unpacked"), o.MaxBytes/2
		c.roots = unpackedTrees{c.mounts}
	}
	if err := os.MkdirAll(c.mounts, 0o700); err != nil {
		return nil, err
	}
	list, err := c.roots.list()
	if err != nil {
		return nil, err
	}
	for _, digest := range list {
		c.images[digest] = &cachedImage{ready: closedChannel, cancel: func() {}}
	}
	c.blobs, err = store.OpenDirectory(filepath.Join(o.Dir, "blobs"), store.Options{MaxBytes: o.MaxBytes})
	return c, err
}

var closedChannel = func() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

// Close lets another process open the images. Those that tasks use stay mounted.
func (c *Cache) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	var all error
	for digest, i := range c.images {
		select {
		case <-i.ready:
			if i.users == 0 && i.err == nil && !c.roots.stays() {
				all = errors.Join(all, c.roots.remove(c.root(digest)))
			}
		default:
			i.cancel()
		}
	}
	return errors.Join(all, c.blobs.Close())
}

// Acquire returns the directory where an image is mounted, after it was fetched if need
// be. The image stays until Release, which is called once for each Acquire that
// succeeded. It is roost.Unavailable if the source could not be reached.
func (c *Cache) Acquire(ctx context.Context, digest store.Digest) (root string, err error) {
	i := c.use(digest)
	select {
	case <-i.ready:
		err = i.err
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	if err != nil {
		c.Release(digest)
		return "", fmt.Errorf("container image %s: %w", digest.Short(), err)
	}
	return c.root(digest), nil
}

// Adopt counts a task of an earlier process as a user of its image.
func (c *Cache) Adopt(digest store.Digest) {
	c.mu.Lock()
	defer c.mu.Unlock()
	i := c.images[digest]
	if i == nil { // unmounted by somebody else; the task goes on all the same
		i = &cachedImage{ready: closedChannel, cancel: func() {}, err: errUnmounted}
		c.images[digest] = i
	}
	i.users++
}

// errUnmounted says that the image of a running task is not to be seen any more.
var errUnmounted = fmt.Errorf("%w: it was unmounted by somebody else", roost.Unavailable)

// ReleaseUnused lets the images be removed that no task uses. It is called when all tasks
// of an earlier process are adopted.
func (c *Cache) ReleaseUnused() error {
	err := c.releaseUnused()
	return errors.Join(err, c.roots.sweep())
}

func (c *Cache) releaseUnused() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	var all error
	for digest, i := range c.images { // nothing would remove the tree of an image that is not here
		if _, here := c.blobs.Path(digest); !here && i.users == 0 && c.roots.stays() {
			delete(c.images, digest)
			all = errors.Join(all, c.roots.remove(c.root(digest)))
		}
	}
	for _, e := range c.blobs.List() {
		if i := c.images[e.Digest]; (i == nil || i.users == 0) && slices.Contains(e.Pins, pinOwner) {
			all = errors.Join(all, c.blobs.Unpin(e.Digest, pinOwner))
		}
	}
	return all
}

// Blobs returns the images as they are stored, for other machines.
func (c *Cache) Blobs() *store.Directory { return c.blobs }

// Progress returns how many bytes of an image are here, and how many it has; 0 while
// nobody knows.
func (c *Cache) Progress(digest store.Digest) (have, size int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if i := c.images[digest]; i != nil {
		return i.have, i.size
	}
	return 0, 0
}

// Digests lists the images that are here, those used last first.
func (c *Cache) Digests() (list []store.Digest) {
	for _, e := range c.blobs.List() {
		list = append(list, e.Digest)
	}
	return list
}

func (c *Cache) root(digest store.Digest) string {
	return filepath.Join(c.mounts, strings.TrimPrefix(string(digest), "sha256:"))
}

// use returns an image with one more user. It begins to bring one that is not there.
func (c *Cache) use(digest store.Digest) *cachedImage {
	c.mu.Lock()
	defer c.mu.Unlock()
	i := c.images[digest]
	if i == nil || i.err != nil && i.users == 0 {
		ctx, cancel := context.WithCancel(context.Background())
		i = &cachedImage{cancel: cancel, ready: make(chan struct{})}
		c.images[digest] = i
		go c.bring(ctx, digest, i)
	}
	if i.users++; i.users == 1 {
		if err := c.blobs.Pin(digest, pinOwner); err != nil {
			c.log.Warn("cannot pin an image", "digest", digest, "err", err)
		}
	}
	return i
}

// Release ends a use of an image. One that is on its way is not brought for nobody.
func (c *Cache) Release(digest store.Digest) {
	c.mu.Lock()
	defer c.mu.Unlock()
	i := c.images[digest]
	if i == nil {
		return
	}
	if i.users--; i.users > 0 {
		return
	}
	select {
	case <-i.ready:
	default: // the next user begins anew
		i.cancel()
		delete(c.images, digest)
	}
	if err := c.blobs.Unpin(digest, pinOwner); err != nil && !errors.Is(err, roost.NotFound) {
		c.log.Warn("cannot unpin an image", "digest", digest, "err", err)
	}
	if i.err != nil {
		delete(c.images, digest) // likewise
	}
}

// bring fetches, verifies and mounts an image.
func (c *Cache) bring(ctx context.Context, digest store.Digest, i *cachedImage) {
	err := c.fetchAndMount(ctx, digest, i)
	c.mu.Lock()
	defer c.mu.Unlock()
	i.err = err
	close(i.ready)
	if i.users == 0 && err != nil && c.images[digest] == i {
		delete(c.images, digest)
	}
}

func (c *Cache) fetchAndMount(ctx context.Context, digest store.Digest, i *cachedImage) error {
	path, here := c.blobs.Path(digest)
	if here { // it may be damaged since
		err := c.blobs.Verify(ctx, digest)
		if here = err == nil; ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			c.log.Error("a container image is damaged on disk, and is fetched again", "digest", digest, "err", err)
		}
	}
	if !here {
		if err := c.fetch(ctx, digest, i); err != nil {
			return err
		}
		if path, here = c.blobs.Path(digest); !here {
			return fmt.Errorf("%w: it was brought and is not there", roost.NotFound)
		}
	}
	if ctx.Err() != nil { // nobody wants it any more, or others bring it themselves
		return ctx.Err()
	}
	err := c.roots.make(ctx, path, c.root(digest))
	if !errors.Is(err, roost.Exhausted) {
		return err
	}
	info, serr := os.Stat(path)
	if serr != nil {
		return err
	}
	if cerr := c.makeRoom(info.Size()); cerr != nil {
		return errors.Join(err, cerr)
	}
	return c.roots.make(ctx, path, c.root(digest))
}

// fetch brings an image. If there is no room for it, images that no task uses make room.
func (c *Cache) fetch(ctx context.Context, digest store.Digest, i *cachedImage) error {
	progress := func(have, size int64) {
		c.mu.Lock()
		defer c.mu.Unlock()
		i.have, i.size = have, size
	}
	err := c.source.Fetch(ctx, digest, c.blobs, progress)
	if !errors.Is(err, roost.Exhausted) {
		return err
	}
	c.mu.Lock()
	size := i.size
	c.mu.Unlock()
	if size == 0 {
		return err
	}
	if cerr := c.makeRoom(size); cerr != nil {
		return errors.Join(err, cerr)
	}
	return c.source.Fetch(ctx, digest, c.blobs, progress)
}

// makeRoom removes images that no task uses, used longest ago first, until one of size
// bytes fits.
func (c *Cache) makeRoom(size int64) error {
	removed, err := c.blobs.CollectFor(size)
	err = errors.Join(err, c.forget(removed))
	return errors.Join(err, c.roots.sweep())
}

// forget removes the roots of images whose blobs were removed.
func (c *Cache) forget(removed []store.Digest) (err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, digest := range removed {
		c.log.Info("a container image made room", "digest", digest)
		if i := c.images[digest]; i == nil || i.users > 0 {
			continue // not mounted, or wanted again meanwhile: the mount has the file still
		}
		delete(c.images, digest)
		if uerr := c.roots.remove(c.root(digest)); uerr != nil {
			err = errors.Join(err, uerr)
		}
	}
	return err
}
