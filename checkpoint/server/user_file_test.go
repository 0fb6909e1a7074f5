package server

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"testing"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/identity/peer"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/wire"
)

func putUserFile(t *testing.T, c wire.CheckpointServerClient, f *wire.UserFile, text []byte) error {
	t.Helper()
	to, err := c.PutFile(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	part := &wire.UserFilePart{File: f, Size: int64(len(text))}
	for to.Send(part) == nil && len(text) > 0 {
		n := min(len(text), 1000)
		part, text = &wire.UserFilePart{Data: text[:n]}, text[n:]
	}
	_, err = to.CloseAndRecv()
	return rpc.FromStatus(err)
}

func getUserFile(t *testing.T, c wire.CheckpointServerClient, f *wire.UserFile) (text []byte, err error) {
	t.Helper()
	from, err := c.GetFile(t.Context(), f)
	for err == nil {
		var part *wire.UserFilePart
		if part, err = from.Recv(); err == nil {
			text = append(text, part.GetData()...)
		}
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return text, rpc.FromStatus(err)
}

// TestUserFileRights checks who may put and get the files of users.
func TestUserFileRights(t *testing.T) {
	p := newPool(t, 0)
	script := bytes.Repeat([]byte("x"), 600<<10)
	sum := sha256.Sum256(script)
	f := &wire.UserFile{Node: "n1", Uid: 1000, Digest: hex.EncodeToString(sum[:])}
	n1, n2 := p.node("n1", peer.Schedd), p.node("n2", peer.Schedd)
	central := p.node("c1", peer.Schedd, peer.CellQueue)
	if err := putUserFile(t, n2, f, script); !errors.Is(err, roost.PermissionDenied) {
		t.Errorf("another submit node puts it: %v", err)
	}
	output := &wire.UserFile{Node: "n1", Uid: 1000, Digest: hex.EncodeToString(make([]byte, sha256.Size))}
	if err := putUserFile(t, central, output, script); !errors.Is(err, roost.Invalid) {
		t.Errorf("a member of the queue puts it under the name of other contents: %v", err)
	}
	if err := putUserFile(t, p.node("n3", peer.Startd), f, script); !errors.Is(err, roost.PermissionDenied) {
		t.Errorf("a startd puts it: %v", err)
	}
	if _, err := getUserFile(t, central, f); !errors.Is(err, roost.NotFound) {
		t.Errorf("it is got before it is there: %v", err)
	}
	for range 2 { // the same contents again are the same file
		if err := putUserFile(t, n1, f, script); err != nil {
			t.Errorf("its submit node puts it: %v", err)
		}
	}
	for name, c := range map[string]wire.CheckpointServerClient{"n1": n1, "c1": central} {
		for _, at := range []int{1, 300 << 10, 600 << 10, 600<<10 + 1} {
			f.Offset = int64(at)
			want := script[min(at, len(script)):]
			if got, err := getUserFile(t, c, f); err != nil || !bytes.Equal(got, want) {
				t.Errorf("%s gets %d bytes from offset %d, %v", name, len(got), at, err)
			}
		}
		f.Offset = -1
		if got, err := getUserFile(t, c, f); !errors.Is(err, roost.Invalid) {
			t.Errorf("%s gets %d bytes from offset -1, %v", name, len(got), err)
		}
		f.Offset = 0
		if got, err := getUserFile(t, c, f); err != nil || !bytes.Equal(got, script) {
			t.Errorf("%s gets %d bytes, %v", name, len(got), err)
		}
	}
	if _, err := getUserFile(t, n2, f); !errors.Is(err, roost.PermissionDenied) {
		t.Errorf("another submit node gets it: %v", err)
	}
	absent := &wire.UserFile{Node: "n1", Uid: 1001, Digest: f.Digest}
	output.Uid, output.Digest = 7, f.Digest
	if err := putUserFile(t, central, output, script); err != nil {
		t.Errorf("a member of the queue puts what a job has written: %v", err)
	}
	if got, err := getUserFile(t, n1, output); err != nil || !bytes.Equal(got, script) {
		t.Errorf("the submit node gets %d bytes of it, %v", len(got), err)
	}
	reply, err := central.RetainFiles(t.Context(), &wire.RetainFilesRequest{Files: []*wire.UserFile{f, absent}})
	if err != nil || len(reply.GetMissing()) != 1 || reply.GetMissing()[0].GetUid() != 1001 {
		t.Errorf("files in use: %v, %v", reply, err)
	}
	_, err = n2.RetainFiles(t.Context(), &wire.RetainFilesRequest{Files: []*wire.UserFile{f}})
	if !errors.Is(rpc.FromStatus(err), roost.PermissionDenied) {
		t.Errorf("another submit node keeps it: %v", err)
	}
	_, err = n1.RetainFiles(t.Context(), &wire.RetainFilesRequest{Files: make([]*wire.UserFile, maxRetainFiles+1)})
	if !errors.Is(rpc.FromStatus(err), roost.Exhausted) {
		t.Errorf("too many at once: %v", err)
	}
}
