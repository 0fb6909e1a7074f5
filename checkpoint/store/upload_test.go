package store

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/wire"
)

// slowUpload is an upload whose chunks the test sends one by one, like a node that holds
// its stream open.
type slowUpload struct {
	chunks chan *wire.FileChunk
	result chan error
}

func upload(s *Store, k ImageKey, size int) *slowUpload {
	u := &slowUpload{make(chan *wire.FileChunk), make(chan error, 1)}
	go func() {
		u.result <- s.ReceiveNew(k, int64(size), func() (*wire.FileChunk, error) {
			c, ok := <-u.chunks
			if !ok {
				return nil, io.EOF
			}
			return c, nil
		})
	}()
	return u
}

// finish sends the rest of an image and returns the result of the upload.
func (u *slowUpload) finish(data []byte) error {
	sum := sha256.Sum256(data)
	u.chunks <- &wire.FileChunk{Data: data[1:]}
	u.chunks <- &wire.FileChunk{Eof: true, Sha256: sum[:]}
	return <-u.result
}

// TestTwoUploads holds one upload open while another one of the same image is
// acknowledged. The first must neither damage nor replace the image.
func TestTwoUploads(t *testing.T) {
	s := open(t, 0)
	good, bad := bytes.Repeat([]byte("good"), 1000), bytes.Repeat([]byte("evil"), 1000)
	early, late := upload(s, testKey, len(bad)), upload(s, testKey, len(bad))
	early.chunks <- &wire.FileChunk{Data: bad[:1]}
	if err := s.ReceiveNew(testKey, int64(len(good)), chunkStream(imageMessages(good)...)); err != nil {
		t.Fatal(err)
	}
	late.chunks <- &wire.FileChunk{Data: bad[:1]}
	for name, u := range map[string]*slowUpload{"early": early, "late": late} {
		if err := u.finish(bad); !errors.Is(err, roost.Conflict) {
			t.Errorf("%s: got %v, want it refused", name, err)
		}
	}
	path, err := s.imagePath(testKey)
	if err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(path); err != nil || !bytes.Equal(text, good) {
		t.Errorf("the acknowledged image: got %.8q and %d bytes, %v", text, len(text), err)
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(path), "*"+partialSuffix)); len(left) > 0 {
		t.Errorf("left over: %v", left)
	}
	if err := s.ReceiveNew(testKey, int64(len(bad)), chunkStream(imageMessages(bad)...)); !errors.Is(err,
		roost.Conflict) {
		t.Errorf("once more: got %v", err)
	}
}

// TestWrittenElsewhere changes a file between its last byte and its digest. A faulty disk
// does that, or a process that has the file open. The upload is not acknowledged.
func TestWrittenElsewhere(t *testing.T) {
	s, data := open(t, 0), bytes.Repeat([]byte("image"), 1000)
	chunks := chunkStream(imageMessages(data)...)
	err := s.Receive(testKey, int64(len(data)), func() (*wire.FileChunk, error) {
		c, err := chunks()
		if c.GetEof() {
			path, _ := s.imagePath(testKey)
			parts, _ := filepath.Glob(path + "*" + partialSuffix)
			if len(parts) != 1 {
				t.Fatalf("parts: %v", parts)
			}
			f, err := os.OpenFile(parts[0], os.O_WRONLY, 0)
			if err == nil {
				_, err = f.WriteAt([]byte("x"), 100)
				f.Close()
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		return c, err
	})
	if !errors.Is(err, roost.Invalid) {
		t.Errorf("got %v, want it refused", err)
	}
	if _, err := s.Size(testKey); !errors.Is(err, roost.NotFound) {
		t.Errorf("it is there: %v", err)
	}
}
