package containerimage

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/image/imagetest"
	"github.com/roost-batch/roost/internal/store"
)

// fakeServer is a source that has its blobs in another store.
type fakeServer struct {
	blobs   *store.Directory
	fetches atomic.Int32
	gate    chan struct{} // closed when it may answer; nil: at once
	err     atomic.Pointer[error]
}

func (s *fakeServer) Fetch(ctx context.Context, digest store.Digest, to *store.Directory,
	progress func(have, size int64)) error {
	s.fetches.Add(1)
	if s.gate != nil {
		select {
		case <-s.gate:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if err := s.err.Load(); err != nil {
		return *err
	}
	from, err := s.blobs.OpenBlob(digest)
	if err != nil {
		return err
	}
	defer from.Close()
	manifest, err := s.blobs.Manifest(digest)
	if err != nil {
		return err
	}
	progress(0, manifest.Size)
	in, err := to.Receive(ctx, manifest, "")
	if err != nil {
		return err
	}
	defer in.Close()
	for _, i := range in.Missing() {
		data, err := from.ReadChunk(i, nil)
		if err == nil {
			err = in.Put(i, data)
		}
		if err != nil {
			return err
		}
	}
	progress(manifest.Size, manifest.Size)
	_, err = in.Finish()
	return err
}

func newFakeServer(t *testing.T) *fakeServer {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("SKIPPED: only root mounts images")
	}
	blobs, err := store.OpenDirectory(filepath.Join(t.TempDir(), "server"), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { blobs.Close() })
	return &fakeServer{blobs: blobs}
}

// addImage makes an image with a file of so many bytes, and one with its name.
func (s *fakeServer) addImage(t *testing.T, name string, size int) store.Digest {
	t.Helper()
	root := t.TempDir()
	for path, text := range map[string][]byte{"name": []byte(name),
		"data": bytes.Repeat([]byte(name), size/len(name))} {
		if err := os.WriteFile(filepath.Join(root, path), text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return imagetest.StoreTree(t, s.blobs, root)
}

// open opens a cache, and unmounts at the end of the test what is left.
func open(t *testing.T, dir string, source Source, maxBytes int64) *Cache {
	t.Helper()
	c, err := Open(Options{Log: slog.New(slog.DiscardHandler), Dir: dir, Source: source, MaxBytes: maxBytes})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.Close()
		for _, name := range mounted(t, c) {
			unix.Unmount(filepath.Join(c.mounts, name), unix.MNT_DETACH)
		}
	})
	return c
}

func mounted(t *testing.T, c *Cache) []string {
	t.Helper()
	info, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	return mountsIn(string(info), c.mounts)
}

func acquire(t *testing.T, c *Cache, digest store.Digest, want string) {
	t.Helper()
	root, err := c.Acquire(t.Context(), digest)
	if err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(filepath.Join(root, "name")); err != nil || string(text) != want {
		t.Fatalf("the image has %q, %v, want %q", text, err, want)
	}
}

// TestAcquireOnce: however many tasks want an image at once, it is fetched and mounted
// once (C2).
func TestAcquireOnce(t *testing.T) {
	s := newFakeServer(t)
	s.gate = make(chan struct{})
	digest := s.addImage(t, "blue", 10<<20)
	c := open(t, t.TempDir(), s, 0)
	var all sync.WaitGroup
	for range 16 {
		all.Go(func() { acquire(t, c, digest, "blue") })
	}
	close(s.gate)
	all.Wait()
	if n, m := s.fetches.Load(), mounted(t, c); n != 1 || len(m) != 1 {
		t.Errorf("%d fetches, mounts %v", n, m)
	}
	if have, size := c.Progress(digest); have != size || size < 10<<20 {
		t.Errorf("progress %d of %d", have, size)
	}
	if err := os.WriteFile(c.root(digest)+"/name", nil, 0o644); !errors.Is(err, unix.EROFS) {
		t.Errorf("the image can be written: %v", err)
	}
}

// TestAcquireFails: a failure is everybody's who waits, and the next user tries again.
func TestAcquireFails(t *testing.T) {
	s := newFakeServer(t)
	digest := s.addImage(t, "blue", 100)
	c := open(t, t.TempDir(), s, 0)
	failure := fmt.Errorf("%w: the server is away", roost.Unavailable)
	s.err.Store(&failure)
	for range 2 {
		if _, err := c.Acquire(t.Context(), digest); !errors.Is(err, roost.Unavailable) {
			t.Errorf("got %v", err)
		}
	}
	s.err.Store(nil)
	acquire(t, c, digest, "blue")
	if n := s.fetches.Load(); n != 3 {
		t.Errorf("%d fetches", n)
	}
	other := store.Digest("sha256:" + strings.Repeat("0", 64))
	if _, err := c.Acquire(t.Context(), other); !errors.Is(err, roost.NotFound) {
		t.Errorf("an image that nobody has: %v", err)
	}
}

// TestAcquireCanceled: an image that nobody waits for any more is not brought. Who comes
// then does not get the failure of the others.
func TestAcquireCanceled(t *testing.T) {
	s := newFakeServer(t)
	s.gate = make(chan struct{})
	digest := s.addImage(t, "blue", 100)
	c := open(t, t.TempDir(), s, 0)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.Acquire(ctx, digest); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	close(s.gate)
	acquire(t, c, digest, "blue")
}

// TestMakeRoom: images that no task uses make room, used longest ago first, and one that
// is used never does (C5).
func TestMakeRoom(t *testing.T) {
	s := newFakeServer(t)
	const size = 1 << 20
	a, b, d, e := s.addImage(t, "a", size), s.addImage(t, "b", size), s.addImage(t, "d", size), s.addImage(t, "e", size)
	c := open(t, t.TempDir(), s, 5*size/2)
	acquire(t, c, a, "a")
	acquire(t, c, b, "b")
	c.Release(b)
	acquire(t, c, d, "d") // in the place of b
	if list := c.Digests(); len(list) != 2 || len(mounted(t, c)) != 2 {
		t.Errorf("there are %v, mounted %v", list, mounted(t, c))
	}
	if _, err := c.Acquire(t.Context(), e); !errors.Is(err, roost.Exhausted) {
		t.Errorf("with all in use: %v", err)
	}
	c.Release(a)
	acquire(t, c, e, "e")
	acquire(t, c, d, "d")
}

// TestReopen: what an earlier process has mounted is used on. What it used is free when
// nobody adopts it, and what was damaged meanwhile is fetched again (C1).
func TestReopen(t *testing.T) {
	s := newFakeServer(t)
	const size = 1 << 20
	a, b := s.addImage(t, "a", size), s.addImage(t, "b", size)
	dir := t.TempDir()
	c := open(t, dir, s, 3*size/2)
	acquire(t, c, a, "a")
	c.Close()
	c = open(t, dir, s, 3*size/2)
	c.Adopt(a)
	if err := c.ReleaseUnused(); err != nil {
		t.Error(err)
	}
	if _, err := c.Acquire(t.Context(), b); !errors.Is(err, roost.Exhausted) {
		t.Errorf("an adopted task's image made room: %v", err)
	}
	acquire(t, c, a, "a")
	if n := len(mounted(t, c)); n != 1 {
		t.Errorf("%d mounts", n)
	}
	c.Close()
	c = open(t, dir, s, 3*size/2)
	if err := c.ReleaseUnused(); err != nil {
		t.Error(err)
	}
	acquire(t, c, b, "b")
	c.Release(b)
	path, ok := c.blobs.Path(b)
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if n := len(mounted(t, c)); n != 0 {
		t.Errorf("%d images are left mounted that nobody uses", n)
	}
	if f, err := os.OpenFile(path, os.O_WRONLY, 0); !ok || err != nil {
		t.Fatal(ok, err)
	} else if _, err := f.WriteAt([]byte("damage"), 9000); err != nil {
		t.Fatal(err)
	}
	before := s.fetches.Load()
	c = open(t, dir, s, 3*size/2)
	acquire(t, c, b, "b")
	if n := s.fetches.Load() - before; n != 1 {
		t.Errorf("the damaged image was fetched %d times", n)
	}
}
