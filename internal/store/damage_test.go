package store

import (
	"bytes"
	"context"
	"errors"
	"os"
	"slices"
	"testing"

	"github.com/roost-batch/roost/internal/damage"
)

// TestVerify damages one chunk. It is found, it is not sent on, and only it is received
// once more.
func TestVerify(t *testing.T) {
	d := open(t, t.TempDir(), Options{})
	ctx := context.Background()
	data := randomBytes(1, 3*ChunkBytes)
	digest := add(t, d, data, "")
	if err := d.Verify(ctx, digest); err != nil {
		t.Fatal(err)
	}
	path, _ := d.Path(digest)
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt([]byte{data[ChunkBytes+9] + 1}, ChunkBytes+9); err != nil {
		t.Fatal(err)
	}
	f.Close()
	b, err := d.OpenBlob(digest)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	if _, err := b.ReadChunk(1, nil); !errors.Is(err, ErrDamaged) {
		t.Errorf("the damaged chunk: got %v", err)
	}
	if err := d.Verify(ctx, digest); !errors.Is(err, ErrDamaged) {
		t.Errorf("verified: got %v", err)
	}
	if _, ok := d.Path(digest); ok {
		t.Error("the damaged blob is still there")
	}
	in, err := d.Receive(ctx, b.Manifest, "")
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	if got := in.Missing(); !slices.Equal(got, []int{1}) {
		t.Errorf("missing: %v", got)
	}
	if err := in.Put(1, chunkOf(data, 1)); err != nil {
		t.Fatal(err)
	}
	if _, err := in.Finish(); err != nil {
		t.Fatal(err)
	}
	checkBlob(t, d, digest, data)
}

// TestDamage damages the files of a store at random. A damaged blob is never verified and
// never sent; a damaged manifest neither; owners are lost, and never others'.
func TestDamage(t *testing.T) {
	dir := t.TempDir()
	d := open(t, dir, Options{})
	ctx := context.Background()
	data := randomBytes(1, 20000)
	digest := add(t, d, data, "ada")
	path, _ := d.Path(digest)
	manifest, err := os.ReadFile(path + manifestSuffix)
	if err != nil {
		t.Fatal(err)
	}
	restore := func() {
		t.Helper()
		if err := os.WriteFile(path+manifestSuffix, manifest, 0o600); err != nil {
			t.Fatal(err)
		}
		d.blobs[digest] = &storedBlob{size: int64(len(data))}
	}
	for _, file := range []string{path, path + manifestSuffix} {
		damage.ForEach(t, file, 40, func(what string) {
			if b, err := d.OpenBlob(digest); err == nil {
				if got, err := b.ReadChunk(0, nil); err == nil && !bytes.Equal(got, data) {
					t.Errorf("%s: %s: other bytes are sent", file, what)
				}
				b.Close()
			}
			if err := d.Verify(ctx, digest); !errors.Is(err, ErrDamaged) {
				t.Errorf("%s: %s: got %v", file, what, err)
			}
			if err := os.WriteFile(path, data, 0o600); err != nil {
				t.Fatal(err)
			}
			restore()
		})
	}
	add(t, d, data, "ada")
	damage.ForEach(t, path+ownersSuffix, 40, func(what string) {
		if got := readOwners(path + ownersSuffix); len(got) > 0 && !slices.Equal(got, []string{"ada"}) {
			t.Errorf("%s: the owners are %q", what, got)
		}
	})
}
