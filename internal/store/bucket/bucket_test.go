package bucket

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/store"
)

// objectServer is an object store in this process.
type objectServer struct {
	*testing.T
	*httptest.Server
	*Bucket
	down atomic.Pointer[http.HandlerFunc] // answers instead; nil: the object store answers
}

// setDown has another answer than the object store, or, with nil, that again.
func (s *objectServer) setDown(answer http.HandlerFunc) {
	s.down.Store(&answer)
}

func startObjects(t *testing.T) *objectServer {
	t.Helper()
	backend := s3mem.New()
	if err := backend.CreateBucket("roost"); err != nil {
		t.Fatal(err)
	}
	s := &objectServer{T: t}
	real := gofakes3.New(backend, gofakes3.WithLogger(gofakes3.DiscardLog())).Server()
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if down := s.down.Load(); down != nil && *down != nil {
			(*down)(w, r)
			return
		}
		real.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	s.Bucket = openBucket(t, s.URL)
	return s
}

func openBucket(t *testing.T, endpoint string) *Bucket {
	t.Helper()
	b, err := Open(Options{Endpoint: endpoint, Bucket: "roost", Prefix: "pools/a", CredentialsFile: keyFile(t)})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func keyFile(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "keys")
	text := "[other]\naws_access_key_id = no\n[default]\n# ours\naws_access_key_id = me\naws_secret_access_key=secret\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func open(t *testing.T, path string, o store.Options) *store.Directory {
	t.Helper()
	d, err := store.OpenDirectory(path, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}

func randomBytes(seed byte, n int) []byte {
	b := make([]byte, n)
	rand.NewChaCha8([32]byte{seed}).Read(b)
	return b
}

func add(t *testing.T, d *store.Directory, data []byte, owner string) store.Digest {
	t.Helper()
	m, err := d.Add(t.Context(), bytes.NewReader(data), owner)
	if err != nil {
		t.Fatal(err)
	}
	return m.Digest()
}

func sync(t *testing.T, d *store.Directory) {
	t.Helper()
	if err := d.SyncObjects(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// read returns a whole blob.
func read(d *store.Directory, digest store.Digest) (data []byte, err error) {
	b, err := d.OpenBlob(digest)
	if err != nil {
		return nil, err
	}
	defer b.Close()
	for i := range b.Manifest.Chunks {
		chunk, err := b.ReadChunk(i, nil)
		if err != nil {
			return nil, err
		}
		data = append(data, chunk...)
	}
	return data, nil
}

func checkBlob(t *testing.T, d *store.Directory, digest store.Digest, want []byte) {
	t.Helper()
	if got, err := read(d, digest); err != nil || !bytes.Equal(got, want) {
		t.Errorf("blob %s: %d bytes, want %d: %v", digest.Short(), len(got), len(want), err)
	}
}

// names lists the objects of the bucket.
func (s *objectServer) names() (all []string) {
	s.Helper()
	if err := s.List(s.Context(), "", func(name string, _ time.Time) error {
		all = append(all, name)
		return nil
	}); err != nil {
		s.Fatal(err)
	}
	return all
}

func testObject(digest store.Digest, part string) string {
	return "blobs/" + strings.TrimPrefix(string(digest), "sha256:") + "/" + part
}

// TestMoves has blobs move to the object store and go from the disk. They come back into
// an empty directory, with their owners. What is removed goes there too.
func TestMoves(t *testing.T) {
	s := startObjects(t)
	path := t.TempDir()
	d := open(t, path, store.Options{Objects: s, MaxLocalBytes: 1})
	large, small := randomBytes(1, 2*store.ChunkBytes+1000), randomBytes(2, 500)
	one, two, none := add(t, d, large, "uid 7"), add(t, d, small, "uid 8"), add(t, d, nil, "")
	sync(t, d)
	want := []string{testObject(one, "chunk-000000"), testObject(one, "chunk-000001"),
		testObject(one, "chunk-000002"),
		testObject(one, "manifest"), testObject(one, "owners"), testObject(two, "chunk-000000"),
		testObject(two, "manifest"),
		testObject(two, "owners"), testObject(none, "manifest"), testObject(none, "owners")}
	slices.Sort(want)
	if got := s.names(); !slices.Equal(got, want) {
		t.Errorf("objects: %q, want %q", got, want)
	}
	file, _ := d.Path(one)
	if n := store.AllocatedBytes(file); n != 0 {
		t.Errorf("%d bytes are on the disk, and 1 is the most", n)
	}
	checkBlob(t, d, one, large)
	if n := store.AllocatedBytes(file); n < int64(len(large)) {
		t.Errorf("after a read are %d bytes on the disk", n)
	}
	s.setDown(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) })
	checkBlob(t, d, one, large) // from the disk
	s.setDown(nil)
	if err := d.Pin(one, "job"); err != nil {
		t.Fatal(err)
	}
	add(t, d, large, "uid 9")
	sync(t, d)
	if got, err := s.Get(t.Context(), testObject(one, "owners"), 1000); err != nil ||
		!strings.HasPrefix(string(got), "\"uid 7\"\n\"uid 9\"\n") {
		t.Errorf("owners: %q, %v", got, err)
	}
	d.Close()
	if _, err := store.OpenDirectory(path, store.Options{}); !errors.Is(err, roost.BadConfig) ||
		!strings.Contains(err.Error(), "objects block") {
		t.Errorf("without the object store: %v", err)
	}
	checkAfterLoss(t, s, one, two, large)
}

// checkAfterLoss opens an empty directory, which gets all from the object store.
func checkAfterLoss(t *testing.T, s *objectServer, one, two store.Digest, large []byte) {
	t.Helper()
	path := t.TempDir()
	d := open(t, path, store.Options{Objects: s, MaxBytesOfOwner: 10 << 20})
	if err := d.AdoptObjects(t.Context()); err != nil {
		t.Fatal(err)
	}
	list := d.List()
	if len(list) != 3 {
		t.Fatalf("listed: %v", list)
	}
	if size, ok := d.OwnedSize(one, "uid 9"); !ok || size != int64(len(large)) {
		t.Errorf("uid 9 has %d bytes, %v", size, ok)
	}
	d.Close()
	d = open(t, path, store.Options{Objects: s, MaxBytesOfOwner: 10 << 20}) // the index is on the disk now
	checkBlob(t, d, one, large)
	if err := d.Pin(one, "job"); err != nil {
		t.Fatal(err)
	}
	if removed, err := d.Collect(0); err != nil || len(removed) != 2 {
		t.Errorf("collected %v, %v", removed, err)
	}
	sync(t, d)
	for _, name := range s.names() {
		if !strings.HasPrefix(name, testObject(one, "")) {
			t.Errorf("%s is left", name)
		}
	}
	add(t, d, randomBytes(2, 500), "")
	sync(t, d)
	if _, err := s.Get(t.Context(), testObject(two, "manifest"), 1000); err != nil {
		t.Errorf("a blob that came back: %v", err)
	}
}

// TestHostileObjects has an object store that lies: nothing of it is served as a blob.
func TestHostileObjects(t *testing.T) {
	s := startObjects(t)
	ctx := t.Context()
	d := open(t, t.TempDir(), store.Options{Objects: s})
	data := randomBytes(3, 2*store.ChunkBytes)
	digest, other := add(t, d, data, "uid 7"), add(t, d, randomBytes(4, 100), "uid 8")
	sync(t, d)
	d.Close()
	first, second := testObject(digest, "chunk-000000"), testObject(digest, "chunk-000001")
	for what, spoil := range map[string]func() error{
		"another chunk":   func() error { return s.Put(ctx, first, data[store.ChunkBytes:]) },
		"cut":             func() error { return s.Put(ctx, first, data[:1000]) },
		"longer":          func() error { return s.Put(ctx, first, data[:store.ChunkBytes+1]) },
		"one byte":        func() error { return s.Put(ctx, first, data[:1]) },
		"missing":         func() error { return s.Remove(ctx, first) },
		"the second gone": func() error { return s.Remove(ctx, second) },
	} {
		if err := spoil(); err != nil {
			t.Fatal(err)
		}
		d := open(t, t.TempDir(), store.Options{Objects: s})
		if err := d.AdoptObjects(ctx); err != nil {
			t.Fatal(err)
		}
		if got, err := read(d, digest); !errors.Is(err, store.ErrDamaged) {
			t.Errorf("%s: read %d bytes, %v", what, len(got), err)
		}
		if n := d.Totals().DamagedChunks; n != 1 {
			t.Errorf("%s: %d damaged chunks are counted", what, n)
		}
		for _, err := range []error{s.Put(ctx, first, data[:store.ChunkBytes]),
			s.Put(ctx, second, data[store.ChunkBytes:])} {
			if err != nil {
				t.Fatal(err)
			}
		}
		checkBlob(t, d, digest, data)
		d.Close()
	}
	manifest, err := s.Get(ctx, testObject(other, "manifest"), 1000)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string][]byte{testObject(digest, "manifest"): manifest,
		testObject(digest, "owners"): []byte("\"root\"\n"), testObject(other, "owners"): randomBytes(5, 2<<20),
		"blobs/../../etc/passwd/manifest": manifest, "blobs/" + strings.Repeat("A", 64) + "/manifest": manifest,
		testObject(other, "x\n\x1b[31m"): manifest, "blobs/manifest": manifest,
		testObject(other, "manifest/manifest"):           manifest,
		"blobs/" + strings.Repeat("0", 64) + "/manifest": []byte("<html>")} {
		if err := s.Put(ctx, name, text); err != nil {
			t.Fatal(err)
		}
	}
	d = open(t, t.TempDir(), store.Options{Objects: s})
	if err := d.AdoptObjects(ctx); err != nil {
		t.Fatal(err)
	}
	if list := d.List(); len(list) != 1 || list[0].Digest != other || len(list[0].Owners) != 0 {
		t.Errorf("listed: %+v", list)
	}
}

// TestUnreachable has an endpoint that answers wrongly or not at all. The blob stays, the
// error says what to do, and the next pass moves the blob.
func TestUnreachable(t *testing.T) {
	for what, c := range map[string]struct {
		answer http.HandlerFunc
		want   string
	}{
		"HTML": {func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, "<html><body>hello</body></html>")
		}, "endpoint"},
		"error":    {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) }, "endpoint"},
		"no right": {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(403) }, "it refuses the keys of "},
		"cut off":  {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, "endpoint"},
		"hangs": {func(_ http.ResponseWriter, r *http.Request) {
			io.Copy(io.Discard, r.Body) // else nobody notices that the client is gone
			<-r.Context().Done()
		}, "endpoint"},
	} {
		t.Run(what, func(t *testing.T) {
			s := startObjects(t)
			d := open(t, t.TempDir(), store.Options{Objects: s, MaxLocalBytes: 1})
			data := randomBytes(6, 5000)
			digest := add(t, d, data, "uid 7")
			for _, adopted := range []bool{false, true} {
				if adopted {
					if err := d.AdoptObjects(t.Context()); err != nil {
						t.Fatal(err)
					}
				}
				s.setDown(c.answer)
				ask, stop := context.WithTimeout(t.Context(), 3*time.Second)
				err := d.SyncObjects(ask)
				stop()
				if !errors.Is(err, roost.Unavailable) || !strings.Contains(err.Error(), s.URL) ||
					!strings.Contains(err.Error(), c.want) {
					t.Errorf("got %v, want %q", err, c.want)
				}
				checkBlob(t, d, digest, data)
				if n := d.Totals(); n.Unsent != 1 || n.ObjectFailures == 0 {
					t.Errorf("counted: %+v", n)
				}
				s.setDown(nil)
			}
			sync(t, d)
			if n := d.Totals().Unsent; n != 0 {
				t.Errorf("%d are not sent", n)
			}
		})
	}
}

func TestCredentials(t *testing.T) {
	path := keyFile(t)
	if a, err := readCredentials(path); err != nil || a != (accessKey{key: "me", secret: "secret"}) {
		t.Errorf("got %v, %v", a, err)
	}
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := readCredentials(path); !errors.Is(err, roost.BadConfig) ||
		!strings.Contains(err.Error(), "chmod 600") {
		t.Errorf("readable by all: %v", err)
	}
	others := []byte("[other]\naws_access_key_id = a\naws_secret_access_key = s3cret\n")
	if err := errors.Join(os.WriteFile(path, others, 0o600), os.Chmod(path, 0o600)); err != nil {
		t.Fatal(err)
	}
	if _, err := readCredentials(path); !errors.Is(err, roost.BadConfig) || strings.Contains(err.Error(), "s3cret") {
		t.Errorf("without ours: %v", err)
	}
}
