package server

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"log/slog"
	"path/filepath"
	"testing"

	"google.golang.org/grpc"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/checkpoint/store"
	"github.com/roost-batch/roost/internal/config"
	"github.com/roost-batch/roost/internal/identity/peer"
	"github.com/roost-batch/roost/internal/identity/pki"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/wire"
)

// testPool is a server with what nodes need to call it.
type testPool struct {
	*testing.T
	authority, address string
	dir                string // directory of the images
	images             *store.Store
	*Service
	submitNodes map[string]*rpc.Identity
}

func newPool(t *testing.T, most int64) *testPool {
	p := &testPool{T: t, authority: filepath.Join(t.TempDir(), "ca"), submitNodes: map[string]*rpc.Identity{}}
	if err := pki.Init(p.authority, "lab"); err != nil {
		t.Fatal(err)
	}
	p.dir = filepath.Join(t.TempDir(), "images")
	var err error
	if p.images, err = store.Open(p.dir, most); err != nil {
		t.Fatal(err)
	}
	l, err := rpc.Listen("127.0.0.1:0", 0o600)
	if err != nil {
		t.Fatal(err)
	}
	p.address = l.Addr().String()
	id := p.identity("store", peer.CheckpointServer)
	server := rpc.NewServer(id, peer.MethodAccess(), grpc.WaitForHandlers(true))
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	s := New(p.images, id)
	p.Service = s
	wire.RegisterCheckpointServerServer(server, s)
	go func() { done <- server.Serve(l) }()
	go s.runExpiry(ctx, slog.New(slog.DiscardHandler))
	t.Cleanup(func() {
		cancel()
		server.Stop()
		<-done
	})
	return p
}

func (p *testPool) identity(name string, roles ...peer.Role) *rpc.Identity {
	p.Helper()
	files, err := pki.IssueTo(p.authority, name, roles)
	if err != nil {
		p.Fatal(err)
	}
	id, err := pki.Load(&config.TLSFiles{CA: files.CA, Certificate: files.Certificate, Key: files.Key})
	if err != nil {
		p.Fatal(err)
	}
	return id
}

// node returns a client of a node with roles.
func (p *testPool) node(name string, roles ...peer.Role) wire.CheckpointServerClient {
	p.Helper()
	return p.callAs(p.identity(name, roles...))
}

// signedRight returns a right of a node that a submit node has signed. The node may put
// images of attempt 3 of a task, and get image 4 of it.
func (p *testPool) signedRight(schedd, node string, job uint64) []byte {
	p.Helper()
	return p.signRight(p.submit(schedd), &wire.ImageRight{
		Schedd: schedd, Node: node, Attempt: &wire.AttemptRef{Job: job, Index: 2, Attempt: 3}, Origin: 3, Sequence: 4,
	})
}

func (p *testPool) signRight(by *rpc.Identity, r *wire.ImageRight) []byte {
	p.Helper()
	text, err := store.SignRight(by, r)
	if err != nil {
		p.Fatal(err)
	}
	return text
}

// submit returns the identity of a submit node.
func (p *testPool) submit(name string) *rpc.Identity {
	p.Helper()
	if p.submitNodes[name] == nil {
		p.submitNodes[name] = p.identity(name, peer.Schedd)
	}
	return p.submitNodes[name]
}

// callAs returns a client with an identity.
func (p *testPool) callAs(id *rpc.Identity) wire.CheckpointServerClient {
	p.Helper()
	conn, err := rpc.Dial(p.address, id, peer.CheckpointServer)
	if err != nil {
		p.Fatal(err)
	}
	p.Cleanup(func() { conn.Close() })
	return wire.NewCheckpointServerClient(conn)
}

func putImage(c wire.CheckpointServerClient, right []byte, schedd string, job uint64, sequence string,
	data []byte) error {
	to, err := c.Put(context.Background())
	if err != nil {
		return rpc.FromStatus(err)
	}
	sum := sha256.Sum256(data)
	for _, chunk := range []*wire.FileChunk{
		{Schedd: schedd, Capability: right, Attempt: &wire.AttemptRef{Job: job, Index: 2, Attempt: 3},
			Entry: &wire.FileEntry{Name: sequence, Size: int64(len(data))}},
		{Data: data}, {Eof: true, Sha256: sum[:]},
	} {
		if err := to.Send(chunk); err != nil {
			break
		}
	}
	_, err = to.CloseAndRecv()
	return rpc.FromStatus(err)
}

func imageOf(schedd string, job uint64) *wire.FetchImageRequest {
	return requestWithRight(nil, schedd, job)
}

// requestWithRight returns a request for an image with a right.
func requestWithRight(right []byte, schedd string, job uint64) *wire.FetchImageRequest {
	return &wire.FetchImageRequest{Capability: right, Schedd: schedd,
		Attempt: &wire.AttemptRef{Job: job, Index: 2, Attempt: 3}, Sequence: 4}
}

func getImage(c wire.CheckpointServerClient, r *wire.FetchImageRequest) (data []byte, err error) {
	from, err := c.Get(context.Background(), r)
	for err == nil {
		var chunk *wire.FileChunk
		if chunk, err = from.Recv(); err == nil {
			data = append(data, chunk.GetData()...)
		}
	}
	if errors.Is(err, io.EOF) {
		return data, nil
	}
	return nil, rpc.FromStatus(err)
}

func removeImage(c wire.CheckpointServerClient, r *wire.FetchImageRequest) error {
	_, err := c.Remove(context.Background(), r)
	return rpc.FromStatus(err)
}

// TestWhoMay lets an execute node put an image, another one get it, and the submit node
// remove it. The execute nodes have rights that the submit node has signed; no other
// caller may do any of that.
func TestWhoMay(t *testing.T) {
	p := newPool(t, 0)
	n1, n2 := p.node("n1", peer.Startd), p.node("n2", peer.Startd)
	submit, other, manager := p.callAs(p.submit("submit")), p.callAs(p.submit("other")),
		p.node("central", peer.Collector, peer.Negotiator)
	right1, right2 := p.signedRight("submit", "n1", 7), p.signedRight("submit", "n2", 7)
	data := bytes.Repeat([]byte("image"), 100_000)
	if err := putImage(n1, right1, "submit", 7, "4", data); err != nil {
		t.Fatal(err)
	}
	of := func(attempt, origin uint32, sequence uint64) *wire.ImageRight {
		return &wire.ImageRight{Schedd: "submit", Node: "n2",
			Attempt: &wire.AttemptRef{Job: 7, Index: 2, Attempt: attempt}, Origin: origin, Sequence: sequence}
	}
	later := p.signRight(p.submit("submit"), of(5, 2, 4))
	spoiled := bytes.Clone(right2)
	spoiled[len(spoiled)/8] ^= 1
	otherAuthority := filepath.Join(t.TempDir(), "ca")
	if err := pki.Init(otherAuthority, "elsewhere"); err != nil {
		t.Fatal(err)
	}
	foreign := (&testPool{T: t, authority: otherAuthority}).identity("submit", peer.Schedd)
	for name, c := range map[string]struct {
		got  error
		want roost.ErrorKind
	}{
		"put over it": {putImage(n2, right2, "submit", 7, "4", []byte("worse")),
			roost.Conflict},
		"a submit node puts another's": {putImage(other, nil, "submit", 8, "4", data),
			roost.PermissionDenied},
		"a submit node gets another's": {secondImage(getImage(other, imageOf("submit", 7))),
			roost.PermissionDenied},
		"a submit node gets its own": {secondImage(getImage(submit, imageOf("submit", 7))), 0},
		"a central manager puts": {putImage(manager, nil, "central", 8, "4", data),
			roost.PermissionDenied},
		"an execute node removes":           {removeImage(n1, imageOf("submit", 7)), roost.PermissionDenied},
		"another submit node removes":       {removeImage(other, imageOf("submit", 7)), roost.PermissionDenied},
		"a schedd with a path for its name": {putImage(n1, right1, "..", 7, "4", data), roost.PermissionDenied},
		"a sequence number that is a path":  {putImage(n1, right1, "submit", 7, "../../4", data), roost.Invalid},
		"a sequence number with a sign":     {putImage(n1, right1, "submit", 7, "-4", data), roost.Invalid},
		"no job":                            {putImage(submit, nil, "submit", 0, "4", data), roost.Invalid},
		"no schedd":                         {putImage(n1, right1, "", 7, "4", data), roost.Invalid},
		"nothing":                           {putImage(submit, nil, "submit", 9, "4", nil), roost.Invalid},
		"what is not there, for its schedd": {removeImage(submit, imageOf("submit", 9)), 0},
		"a central manager gets": {secondImage(getImage(manager, imageOf("submit", 7))),
			roost.PermissionDenied},
		"an execute node gets without a right": {secondImage(getImage(n2, imageOf("submit", 7))), roost.Unavailable},
		"an execute node puts without a right": {putImage(n2, nil, "submit", 8, "4", data), roost.Unavailable},
		"with another node's right": {secondImage(getImage(n2, requestWithRight(right1, "submit", 7))),
			roost.PermissionDenied},
		"with a right to another job": {secondImage(getImage(n2,
			requestWithRight(p.signedRight("submit", "n2", 8), "submit", 7))), roost.PermissionDenied},
		"puts with a right to another job": {putImage(n2, right2, "submit", 8, "4", data),
			roost.PermissionDenied},
		"with a right to an earlier image": {secondImage(getImage(n2, requestWithRight(later, "submit", 7))),
			roost.PermissionDenied},
		"puts an image of an earlier attempt": {putImage(n2, later, "submit", 7, "5", data), roost.PermissionDenied},
		"with another submit node's word": {secondImage(getImage(n2,
			requestWithRight(p.signRight(p.submit("other"), of(3, 3, 4)), "submit", 7))), roost.PermissionDenied},
		"with another submit node's right": {secondImage(getImage(n2,
			requestWithRight(p.signedRight("other", "n2", 7), "submit", 7))), roost.PermissionDenied},
		"with its own word": {secondImage(getImage(n2,
			requestWithRight(p.signRight(p.identity("n2", peer.Startd), of(3, 3, 4)), "submit", 7))),
			roost.PermissionDenied},
		"with the word of an execute node": {secondImage(getImage(n2,
			requestWithRight(p.signRight(p.identity("submit", peer.Startd), of(3, 3, 4)), "submit", 7))),
			roost.PermissionDenied},
		"with the word of another pool": {secondImage(getImage(n2,
			requestWithRight(p.signRight(foreign, of(3, 3, 4)), "submit", 7))), roost.PermissionDenied},
		"with a right that was changed": {secondImage(getImage(n2, requestWithRight(spoiled, "submit", 7))),
			roost.PermissionDenied},
		"with something that is no right at all": {
			secondImage(getImage(n2, requestWithRight([]byte("right"), "submit", 7))), roost.Invalid,
		},
	} {
		if c.want == 0 && c.got != nil || c.want != 0 && !errors.Is(c.got, c.want) {
			t.Errorf("%s: got %v, want %v", name, c.got, c.want)
		}
	}
	got, err := getImage(n2, requestWithRight(right2, "submit", 7))
	if err != nil || !bytes.Equal(got, data) {
		t.Fatalf("%d bytes, %v", len(got), err)
	}
	if err := putImage(submit, nil, "submit", 8, "4", data); err != nil {
		t.Errorf("a submit node puts its own: %v", err)
	}
	if err := removeImage(submit, imageOf("submit", 7)); err != nil {
		t.Fatal(err)
	}
	if _, err := getImage(n2, requestWithRight(right2, "submit", 7)); !errors.Is(err, roost.NotFound) {
		t.Errorf("after it was removed: %v", err)
	}
}

func secondImage[T any](_ T, err error) error { return err }

// TestFull checks that a full server refuses images, and has room again after a removal.
func TestFull(t *testing.T) {
	p := newPool(t, 1000)
	n1, submit := p.node("n1", peer.Startd), p.callAs(p.submit("submit"))
	if err := putImage(n1, p.signedRight("submit", "n1", 1), "submit", 1, "4", make([]byte, 600)); err != nil {
		t.Fatal(err)
	}
	if err := putImage(n1, p.signedRight("submit", "n1", 2), "submit", 2, "4", make([]byte, 600)); !errors.Is(err,
		roost.Exhausted) {
		t.Fatalf("got %v", err)
	}
	if err := removeImage(submit, imageOf("submit", 1)); err != nil {
		t.Fatal(err)
	}
	if err := putImage(n1, p.signedRight("submit", "n1", 2), "submit", 2, "4", make([]byte, 600)); err != nil {
		t.Fatal(err)
	}
}
