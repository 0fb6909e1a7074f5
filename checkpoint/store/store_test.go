package store

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"io"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/wire"
)

var testKey = ImageKey{Job: 7, Index: 3, Attempt: 2, Sequence: 5}

func open(t *testing.T, most int64) *Store {
	t.Helper()
	s, err := Open(filepath.Join(t.TempDir(), "images"), most)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// chunkStream returns chunks one after the other.
func chunkStream(chunks ...*wire.FileChunk) func() (*wire.FileChunk, error) {
	return func() (*wire.FileChunk, error) {
		if len(chunks) == 0 {
			return nil, io.EOF
		}
		c := chunks[0]
		chunks = chunks[1:]
		return c, nil
	}
}

// imageMessages returns an image as the messages of a transfer.
func imageMessages(data []byte) []*wire.FileChunk {
	sum := sha256.Sum256(data)
	return []*wire.FileChunk{{Entry: &wire.FileEntry{Name: "5"}}, {Data: data[:len(data)/2]},
		{Data: data[len(data)/2:]}, {Eof: true, Sha256: sum[:]}}
}

func TestThereAndBack(t *testing.T) {
	s, data := open(t, 0), bytes.Repeat([]byte("image"), 200_000)
	for _, k := range []ImageKey{testKey, {Schedd: "submit.example", Job: 7, Index: 3, Attempt: 2, Sequence: 5}} {
		if err := s.Receive(k, int64(len(data)), chunkStream(imageMessages(data)...)); err != nil {
			t.Fatal(err)
		}
		var chunks []*wire.FileChunk
		if err := s.Send(k, func(c *wire.FileChunk) error { chunks = append(chunks, c); return nil }); err != nil {
			t.Fatal(err)
		}
		again := k
		again.Sequence++
		if err := s.Receive(again, int64(len(data)), chunkStream(chunks...)); err != nil {
			t.Fatalf("what was sent is not taken: %v", err)
		}
		if there, err := s.Remove(k); !there || err != nil {
			t.Errorf("remove: %v, %v", there, err)
		}
		if there, err := s.Remove(k); there || err != nil {
			t.Errorf("remove what is not there: %v, %v", there, err)
		}
		if _, err := s.Size(k); !errors.Is(err, roost.NotFound) {
			t.Errorf("size of what was removed: %v", err)
		}
	}
}

// TestWriteAndRemove checks that no file remains of an image that is incomplete or is not
// what was announced. An image finds its directory even if others are removed
// concurrently.
func TestWriteAndRemove(t *testing.T) {
	s := open(t, 0)
	var all sync.WaitGroup
	for job := range uint64(8) {
		all.Go(func() {
			k := ImageKey{Schedd: "submit", Job: job + 1, Attempt: 1, Sequence: 1}
			for range 200 {
				err := s.Write(k, func(w io.Writer) error { _, err := w.Write([]byte("x")); return err })
				if err == nil {
					_, err = s.Remove(k)
				}
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
}

func TestRefused(t *testing.T) {
	data := []byte("an image of some size")
	size := int64(len(data))
	for name, c := range map[string]struct {
		key    ImageKey
		size   int64
		chunks []*wire.FileChunk
		want   roost.ErrorKind
	}{
		"cut short": {testKey, size, imageMessages(data)[:2], roost.Unavailable},
		"another digest": {testKey, size,
			append(imageMessages(data)[:3], &wire.FileChunk{Eof: true, Sha256: make([]byte, 32)}), roost.Invalid},
		"no digest":        {testKey, size, append(imageMessages(data)[:3], &wire.FileChunk{Eof: true}), roost.Invalid},
		"too large":        {testKey, size - 1, imageMessages(data), roost.Invalid},
		"too small":        {testKey, size + 1, imageMessages(data), roost.Invalid},
		"larger than disk": {testKey, 1 << 60, imageMessages(data), roost.Exhausted},
		"of nothing":       {testKey, 0, imageMessages(data), roost.Invalid},
		"no sequence":      {ImageKey{Job: 1, Attempt: 1}, size, imageMessages(data), roost.Invalid},
		"a path": {ImageKey{Schedd: "..", Job: 1, Attempt: 1, Sequence: 1}, size, imageMessages(data),
			roost.Invalid},
	} {
		s := open(t, 0)
		if err := s.Receive(c.key, c.size, chunkStream(c.chunks...)); !errors.Is(err, c.want) {
			t.Errorf("%s: got %v, want %v", name, err, c.want)
		}
		if used, err := s.UsedBytes(); used != 0 || err != nil {
			t.Errorf("%s: it left %d bytes, %v", name, used, err)
		}
	}
}

func TestBound(t *testing.T) {
	s, data := open(t, 40), []byte("an image of 24 bytes....")
	if err := s.Receive(testKey, 24, chunkStream(imageMessages(data)...)); err != nil {
		t.Fatal(err)
	}
	two := testKey
	two.Sequence++
	if err := s.Receive(two, 24, chunkStream(imageMessages(data)...)); !errors.Is(err, roost.Exhausted) {
		t.Fatalf("got %v", err)
	}
}

func TestSweep(t *testing.T) {
	s, data := open(t, 0), []byte("image")
	two := testKey
	two.Schedd, two.Sequence = "a/b", 9
	for _, k := range []ImageKey{testKey, two} {
		if err := s.Receive(k, 5, chunkStream(imageMessages(data)...)); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"7/3.2.6.part", "7/3.2.7x", "stray"} {
		if err := os.WriteFile(filepath.Join(s.dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var seen []ImageKey
	n, err := s.Sweep(func(k ImageKey) bool { seen = append(seen, k); return k == two })
	if err != nil || n != 4 || len(seen) != 2 {
		t.Fatalf("%d were deleted of %v, %v", n, seen, err)
	}
	if size, err := s.Size(two); size != 5 || err != nil {
		t.Fatalf("what was to be kept: %d, %v", size, err)
	}
}

// TestExpire checks that images which were neither put nor got for long are removed.
func TestExpire(t *testing.T) {
	s, data := open(t, 0), []byte("image")
	two := testKey
	two.Sequence++
	old := time.Now().Add(-time.Hour)
	for _, k := range []ImageKey{testKey, two} {
		if err := s.Receive(k, 5, chunkStream(imageMessages(data)...)); err != nil {
			t.Fatal(err)
		}
		path, _ := s.imagePath(k)
		if err := os.Chtimes(path, old, old); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Send(two, func(*wire.FileChunk) error { return nil }); err != nil {
		t.Fatal(err)
	}
	if n, err := s.Expire(old.Add(time.Minute)); n != 1 || err != nil {
		t.Fatalf("%d, %v", n, err)
	}
	if _, err := s.Size(two); err != nil {
		t.Error(err)
	}
}
