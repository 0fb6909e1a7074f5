package store

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/roost-batch/roost"
)

func open(t *testing.T, path string, o Options) *Directory {
	t.Helper()
	d, err := OpenDirectory(path, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}

// randomBytes returns n bytes that a seed decides.
func randomBytes(seed uint64, n int) []byte {
	b := make([]byte, n)
	rand.NewChaCha8([32]byte{byte(seed)}).Read(b)
	return b
}

func add(t *testing.T, d *Directory, data []byte, owner string) Digest {
	t.Helper()
	m, err := d.Add(context.Background(), bytes.NewReader(data), owner)
	if err != nil {
		t.Fatal(err)
	}
	return m.Digest()
}

// manifestOf returns the manifest of some bytes.
func manifestOf(t *testing.T, data []byte) Manifest {
	t.Helper()
	m, err := copyChunks(context.Background(), &bytes.Buffer{}, bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func chunkOf(data []byte, i int) []byte {
	return data[i*ChunkBytes : min(len(data), (i+1)*ChunkBytes)]
}

func checkBlob(t *testing.T, d *Directory, digest Digest, want []byte) {
	t.Helper()
	path, ok := d.Path(digest)
	if !ok {
		t.Fatalf("%s is not there", digest)
	}
	if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, want) {
		t.Fatalf("%s: got %d bytes, %v, want %d others", digest, len(got), err, len(want))
	}
}

// incomingFiles are the names of what has not arrived.
func incomingFiles(t *testing.T, d *Directory) (names []string) {
	t.Helper()
	list, err := os.ReadDir(filepath.Join(d.path, incomingDir))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range list {
		names = append(names, e.Name())
	}
	return names
}

// TestDigest holds the digests of known bytes: other releases and machines use them.
func TestDigest(t *testing.T) {
	for _, c := range []struct {
		data   []byte
		digest Digest
		chunks int
	}{
		{nil, "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855", 0},
		{[]byte("roost"), "sha256:5bf1c5d77f5d100a58f63d96301a2bd2be0ed26b8ee11738458bf4b50ce429b0", 1},
		{make([]byte, ChunkBytes), "sha256:c7e946d101855255d919ef0c70718633adf77d3dfb3adeeecf5d0cb4e951be58", 1},
		{make([]byte, ChunkBytes+1), "sha256:14a4d47f23a30177885d9820122f17d2d3a55fe63f7f5c27b95f689e0b2accd6", 2},
	} {
		m := manifestOf(t, c.data)
		if m.Digest() != c.digest || len(m.Chunks) != c.chunks {
			t.Errorf("%d bytes: got %s and %d chunks, want %s and %d", len(c.data), m.Digest(), len(m.Chunks), c.digest,
				c.chunks)
		}
		again, err := DecodeManifest(m.Encode())
		if err != nil || again.Digest() != m.Digest() || again.Size != m.Size {
			t.Errorf("%d bytes: decoded %v, %v", len(c.data), again, err)
		}
	}
	for _, bad := range []string{"", "sha256:", "sha256:00", "md5:" + strings.Repeat("0", 64),
		"sha256:" + strings.Repeat("A", 64), "sha256:../" + strings.Repeat("0", 61)} {
		if _, err := ParseDigest(bad); !errors.Is(err, roost.Invalid) {
			t.Errorf("%q: got %v, want it refused", bad, err)
		}
	}
}

func FuzzDecodeManifest(f *testing.F) {
	f.Add(Manifest{}.Encode())
	f.Add(Manifest{Size: 1, Chunks: make([][32]byte, 1)}.Encode())
	f.Fuzz(func(t *testing.T, b []byte) {
		if m, err := DecodeManifest(b); err == nil && !bytes.Equal(m.Encode(), b) {
			t.Fatalf("%q is read as %v", b, m)
		}
	})
}

// TestAdd stores bytes twice, opens the directory again, and reads them.
func TestAdd(t *testing.T) {
	path := t.TempDir()
	d := open(t, path, Options{})
	data := randomBytes(1, 2*ChunkBytes+77)
	digest := add(t, d, data, "ada")
	if again := add(t, d, data, "bob"); again != digest {
		t.Fatalf("the same bytes are %s and %s", digest, again)
	}
	f, err := d.NewFile()
	if err != nil {
		t.Fatal(err)
	}
	other := randomBytes(2, 10)
	if _, err := f.Write(other); err != nil {
		t.Fatal(err)
	}
	m, err := d.AddFile(context.Background(), f, "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.NewFile(); err != nil { // whoever made it is gone with a crash
		t.Fatal(err)
	}
	if _, err := OpenDirectory(path, Options{}); !errors.Is(err, roost.Conflict) {
		t.Errorf("a second process: got %v", err)
	}
	d.Close()
	d = open(t, path, Options{})
	checkBlob(t, d, digest, data)
	checkBlob(t, d, m.Digest(), other)
	list := d.List()
	if len(list) != 2 || d.UsedBytes() != int64(len(data)+len(other)) {
		t.Fatalf("got %v and %d bytes", list, d.UsedBytes())
	}
	if e := list[1]; e.Digest != digest || !slices.Equal(e.Owners, []string{"ada", "bob"}) {
		t.Errorf("got %v, want %s of ada and bob", e, digest.Short())
	}
	if left := incomingFiles(t, d); len(left) != 0 {
		t.Errorf("left over: %v", left)
	}
	b, err := d.OpenBlob(digest)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	for i := range b.Manifest.Chunks {
		if got, err := b.ReadChunk(i, nil); err != nil || !bytes.Equal(got, chunkOf(data, i)) {
			t.Errorf("chunk %d: got %d bytes, %v", i, len(got), err)
		}
	}
	if _, err := b.ReadChunk(3, nil); !errors.Is(err, roost.Invalid) {
		t.Errorf("chunk 3: got %v", err)
	}
}

// TestCancelledAdd ends an Add early. Nothing remains.
func TestCancelledAdd(t *testing.T) {
	d := open(t, t.TempDir(), Options{})
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := d.Add(ctx, bytes.NewReader(make([]byte, ChunkBytes)), ""); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if left := incomingFiles(t, d); len(left) != 0 || len(d.List()) != 0 {
		t.Errorf("left over: %v, %v", left, d.List())
	}
}

// TestReceive sends chunks in another order, wrong ones, some twice, and none after a
// crash that had come before it.
func TestReceive(t *testing.T) {
	path := t.TempDir()
	d := open(t, path, Options{})
	data := randomBytes(3, 4*ChunkBytes+5)
	m := manifestOf(t, data)
	in, err := d.Receive(context.Background(), m, "ada")
	if err != nil {
		t.Fatal(err)
	}
	if got := in.Missing(); !slices.Equal(got, []int{0, 1, 2, 3, 4}) {
		t.Fatalf("missing at first: %v", got)
	}
	for _, i := range []int{4, 1, 1} {
		if err := in.Put(i, chunkOf(data, i)); err != nil {
			t.Fatal(err)
		}
	}
	wrong := bytes.Clone(chunkOf(data, 2))
	wrong[1234]++
	for i, data := range map[int][]byte{2: wrong, 0: chunkOf(data, 3), 3: chunkOf(data, 3)[1:], -1: nil, 5: nil} {
		if err := in.Put(i, data); !errors.Is(err, roost.Invalid) {
			t.Errorf("a wrong chunk %d: got %v", i, err)
		}
	}
	if _, err := in.Finish(); !errors.Is(err, roost.Conflict) {
		t.Errorf("unfinished: got %v", err)
	}
	if _, ok := d.Path(m.Digest()); ok {
		t.Error("an unfinished blob is there")
	}
	// The process dies: a chunk is written in part, another one is not what was sent.
	file := filepath.Join(path, incomingDir, m.Digest().hex()+incomingSuffix)
	f, err := os.OpenFile(file, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt(wrong[:5000], 2*ChunkBytes); err != nil {
		t.Fatal(err)
	}
	f.Close()
	d.Close()
	d = open(t, path, Options{})
	if in, err = d.Receive(context.Background(), m, "ada"); err != nil {
		t.Fatal(err)
	}
	if got := in.Missing(); !slices.Equal(got, []int{0, 2, 3}) {
		t.Fatalf("missing after the crash: %v", got)
	}
	for _, i := range in.Missing() {
		if err := in.Put(i, chunkOf(data, i)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := in.Finish(); err != nil {
		t.Fatal(err)
	}
	if err := in.Close(); err != nil {
		t.Fatal(err)
	}
	checkBlob(t, d, m.Digest(), data)
	if left := incomingFiles(t, d); len(left) != 0 {
		t.Errorf("left over: %v", left)
	}
	if d.arriving != 0 || len(d.arrivingOf) != 0 {
		t.Errorf("%d bytes are still reserved, %v", d.arriving, d.arrivingOf)
	}
}

// TestManyReceivers has sixteen goroutines want one blob at once. Each chunk comes once.
func TestManyReceivers(t *testing.T) {
	d := open(t, t.TempDir(), Options{})
	data := randomBytes(4, 3*ChunkBytes)
	m := manifestOf(t, data)
	var puts, open atomic.Int32
	var all sync.WaitGroup
	for range 16 {
		all.Go(func() {
			in, err := d.Receive(context.Background(), m, "")
			if err != nil {
				t.Error(err)
				return
			}
			defer in.Close()
			if open.Add(1) > 1 {
				t.Error("two receive one blob")
			}
			for _, i := range in.Missing() {
				puts.Add(1)
				if err := in.Put(i, chunkOf(data, i)); err != nil {
					t.Error(err)
				}
			}
			if _, err := in.Finish(); err != nil {
				t.Error(err)
			}
			open.Add(-1)
		})
	}
	all.Wait()
	if puts.Load() != 3 {
		t.Errorf("%d chunks were put, want 3", puts.Load())
	}
	checkBlob(t, d, m.Digest(), data)
}

// TestReceiverGivesUp has the first receiver close without the blob. The next one, which
// waited, continues; one whose context ends does not.
func TestReceiverGivesUp(t *testing.T) {
	d := open(t, t.TempDir(), Options{})
	data := randomBytes(5, 2*ChunkBytes)
	m := manifestOf(t, data)
	first, err := d.Receive(context.Background(), m, "")
	if err != nil {
		t.Fatal(err)
	}
	if err := first.Put(1, chunkOf(data, 1)); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
	defer cancel()
	if _, err := d.Receive(ctx, m, ""); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	missing := make(chan []int)
	go func() {
		in, err := d.Receive(context.Background(), m, "")
		if err != nil {
			t.Error(err)
			close(missing)
			return
		}
		defer in.Close()
		missing <- in.Missing()
	}()
	first.Close()
	if got := <-missing; !slices.Equal(got, []int{0}) {
		t.Errorf("missing for the second: %v", got)
	}
	if err := first.Put(0, chunkOf(data, 0)); !errors.Is(err, roost.Conflict) {
		t.Errorf("a chunk after Close: got %v", err)
	}
	if _, err := first.Finish(); !errors.Is(err, roost.Conflict) {
		t.Errorf("Finish after Close: got %v", err)
	}
}

// TestFormat refuses a directory of a later release, and a damaged version.
func TestFormat(t *testing.T) {
	path := t.TempDir()
	open(t, path, Options{}).Close()
	file := filepath.Join(path, formatFile)
	good, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"roost store 2\n", strings.Replace(string(good), "1", "3", 1)} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if d, err := OpenDirectory(path, Options{}); err == nil {
			t.Errorf("%q is accepted", text)
			d.Close()
		}
	}
	if err := os.WriteFile(file, good, 0o600); err != nil {
		t.Fatal(err)
	}
	open(t, path, Options{})
}

// TestReadChunkWhileReceiving: a chunk that has come is read before the blob is whole.
func TestReadChunkWhileReceiving(t *testing.T) {
	d, err := OpenDirectory(t.TempDir(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	data := make([]byte, 2*ChunkBytes+10)
	data[ChunkBytes] = 1
	m := Manifest{Size: int64(len(data))}
	for i := range 3 {
		m.Chunks = append(m.Chunks, sha256.Sum256(data[i*ChunkBytes:min((i+1)*ChunkBytes, len(data))]))
	}
	digest := m.Digest()
	if _, err := d.ReadChunk(digest, 0, nil); !errors.Is(err, roost.NotFound) {
		t.Errorf("of an unknown blob: %v", err)
	}
	in, err := d.Receive(t.Context(), m, "")
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	read := func(i int) error {
		got, err := d.ReadChunk(digest, i, nil)
		if err == nil && !bytes.Equal(got, data[i*ChunkBytes:][:m.ChunkSize(i)]) {
			t.Errorf("chunk %d has other bytes", i)
		}
		return err
	}
	for i := range 3 {
		if err := read(i); !errors.Is(err, roost.NotFound) {
			t.Errorf("chunk %d before it came: %v", i, err)
		}
		if err := in.Put(i, data[i*ChunkBytes:][:m.ChunkSize(i)]); err != nil {
			t.Fatal(err)
		}
		if err := read(i); err != nil {
			t.Errorf("chunk %d after it came: %v", i, err)
		}
	}
	if _, err := in.Finish(); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		for i := range 3 {
			if err := read(i); err != nil {
				t.Errorf("chunk %d of the whole blob: %v", i, err)
			}
		}
		if err := read(3); err == nil {
			t.Error("there is no chunk 3")
		}
		in.Close()
	}
}
