package server

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/identity/peer"
	"github.com/roost-batch/roost/internal/rpc"
	blobstore "github.com/roost-batch/roost/internal/store"
	"github.com/roost-batch/roost/internal/store/transfer"
	"github.com/roost-batch/roost/internal/wire"
)

func openBlobs(t *testing.T, o blobstore.Options) (d *blobstore.Directory, path string) {
	t.Helper()
	path = t.TempDir()
	d, err := blobstore.OpenDirectory(path, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d, path
}

// TestBlobs has a submit node push a blob, and two machines fetch it. What is damaged on
// the way or on a disk arrives nowhere.
func TestBlobs(t *testing.T) {
	p := newPool(t, 0)
	var path string
	p.blobs, path = openBlobs(t, blobstore.Options{MaxBytesOfOwner: 20 << 20})
	data := make([]byte, 2*blobstore.ChunkBytes+300<<10)
	rand.NewChaCha8([32]byte{1}).Read(data)
	ctx := t.Context()
	source, _ := openBlobs(t, blobstore.Options{})
	m, err := source.Add(ctx, bytes.NewReader(data), "")
	if err != nil {
		t.Fatal(err)
	}
	digest := m.Digest()
	n1, n2, machine := p.node("n1", peer.Schedd), p.node("n2", peer.Schedd), p.node("m1", peer.Startd)
	one, _ := openBlobs(t, blobstore.Options{})
	if err := transfer.Fetch(ctx, machine, digest, one, nil); !errors.Is(err, roost.NotFound) {
		t.Errorf("fetched before it is there: %v", err)
	}
	if err := push(ctx, machine, source, digest, 7); !errors.Is(err, roost.PermissionDenied) {
		t.Errorf("a startd pushes it: %v", err)
	}
	for _, c := range []wire.CheckpointServerClient{n1, n1, n2} {
		if err := push(ctx, c, source, digest, 7); err != nil {
			t.Fatal(err)
		}
	}
	var steps []int64
	if err := transfer.Fetch(ctx, machine, digest, one, func(have, size int64) {
		if steps = append(steps, have); size != int64(len(data)) {
			t.Errorf("its size is %d", size)
		}
	}); err != nil {
		t.Fatal(err)
	}
	if len(steps) != 4 || steps[0] != 0 || steps[3] != int64(len(data)) {
		t.Errorf("progress: %v", steps)
	}
	got, _ := one.Path(digest)
	if text, err := os.ReadFile(got); err != nil || !bytes.Equal(text, data) {
		t.Errorf("got %d bytes, %v", len(text), err)
	}
	p.checkBlobOwners(n1, n2, digest)
	h := string(digest)[len("sha256:"):]
	f, err := os.OpenFile(filepath.Join(path, "blobs", h[:2], h), os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt([]byte{data[blobstore.ChunkBytes+5] + 1}, blobstore.ChunkBytes+5); err != nil {
		t.Fatal(err)
	}
	f.Close()
	two, _ := openBlobs(t, blobstore.Options{})
	if err := transfer.Fetch(ctx, machine, digest, two, nil); err == nil {
		t.Error("a damaged blob is fetched")
	}
	in, err := two.Receive(ctx, m, "")
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	if missing := in.Missing(); len(missing) != 2 || missing[0] != 1 {
		t.Errorf("after the damaged chunk are missing %v", missing)
	}
}

// push puts a blob on a server for a user.
func push(ctx context.Context, to wire.CheckpointServerClient, from *blobstore.Directory, digest blobstore.Digest,
	uid uint32) error {
	b, err := from.OpenBlob(digest)
	if err != nil {
		return err
	}
	defer b.Close()
	stream, err := to.PutBlob(ctx)
	if err == nil {
		err = transfer.Push(stream, b, uid, nil)
	}
	return rpc.FromStatus(err)
}

// checkBlobOwners checks who is charged for a blob that the users 7 of two nodes have.
func (p *testPool) checkBlobOwners(n1, n2 wire.CheckpointServerClient, digest blobstore.Digest) {
	p.Helper()
	ctx := p.Context()
	for uid, want := range map[uint32]int{7: 1, 8: 0} {
		list, err := n1.ListBlobs(ctx, &wire.BlobRequest{Uid: uid})
		if err != nil || len(list.GetBlobs()) != want {
			p.Errorf("uid %d has %v, %v, want %d", uid, list, err, want)
		}
	}
	if _, err := n1.RemoveBlob(ctx, &wire.BlobRequest{Digest: string(digest), Uid: 8}); !errors.Is(rpc.FromStatus(err),
		roost.NotFound) {
		p.Errorf("another user removes it: %v", err)
	}
	reply, err := n2.RemoveBlob(ctx, &wire.BlobRequest{Digest: string(digest), Uid: 7})
	if err != nil || reply.GetWhole() {
		p.Errorf("one of two owners removes it: got %v, %v", reply, err)
	}
}

// TestHostilePush has a submit node send other bytes than its manifest says, too many,
// and none. Nothing of it can be fetched.
func TestHostilePush(t *testing.T) {
	p := newPool(t, 0)
	p.blobs, _ = openBlobs(t, blobstore.Options{MaxBytesOfOwner: 100})
	data := []byte("the contents")
	source, _ := openBlobs(t, blobstore.Options{})
	m, err := source.Add(t.Context(), bytes.NewReader(data), "")
	if err != nil {
		t.Fatal(err)
	}
	large, err := source.Add(t.Context(), bytes.NewReader(make([]byte, 101)), "")
	if err != nil {
		t.Fatal(err)
	}
	n1 := p.node("n1", peer.Schedd)
	if err := push(t.Context(), n1, source, large.Digest(), 7); !errors.Is(err, roost.Exhausted) {
		t.Errorf("more than a user may have: %v", err)
	}
	for name, parts := range map[string][]*wire.BlobPart{
		"no manifest":          {{Manifest: []byte("x")}},
		"other bytes":          {{Manifest: m.Encode()}, {Data: []byte("the Contents"), Last: true}},
		"too many":             {{Manifest: m.Encode()}, {Data: []byte("the contents!"), Last: true}},
		"too few":              {{Manifest: m.Encode()}, {Data: []byte("the content"), Last: true}},
		"a chunk that is none": {{Manifest: m.Encode()}, {Chunk: 9, Data: data, Last: true}},
		"nothing in a part":    {{Manifest: m.Encode()}, {Data: data}, {}},
		"half":                 {{Manifest: m.Encode()}, {Data: data[:3]}},
	} {
		ctx, cancel := context.WithCancel(t.Context())
		stream, err := n1.PutBlob(ctx)
		if err != nil {
			t.Fatal(err)
		}
		for _, part := range parts {
			if stream.Send(part) != nil {
				break // Recv has the reason
			}
		}
		stream.CloseSend()
		var reply *wire.BlobMissing
		for err == nil && !reply.GetWhole() {
			reply, err = stream.Recv()
		}
		cancel()
		if err == nil {
			t.Errorf("%s: it is stored", name)
		}
	}
	if list := p.blobs.List(); len(list) != 0 {
		t.Errorf("stored: %v", list)
	}
}
