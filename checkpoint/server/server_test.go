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
	"github.com/roost-batch/roost/internal/auth"
	"github.com/roost-batch/roost/internal/config"
	"github.com/roost-batch/roost/internal/pki"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/wire"
)

// pool is a server, and what nodes need to call it.
type pool struct {
	*testing.T
	authority, address string
	dir                string // of the images
	images             *store.Store
	submits            map[string]*rpc.Identity
}

func newPool(t *testing.T, most int64) *pool {
	p := &pool{T: t, authority: filepath.Join(t.TempDir(), "ca"), submits: map[string]*rpc.Identity{}}
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
	id := p.identity("store", auth.CheckpointServer)
	server := rpc.NewServer(id, auth.Methods(), grpc.WaitForHandlers(true))
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	s := New(p.images, id)
	wire.RegisterCheckpointServerServer(server, s)
	go func() { done <- server.Serve(l) }()
	go s.expire(ctx, slog.New(slog.DiscardHandler))
	t.Cleanup(func() {
		cancel()
		server.Stop()
		<-done
	})
	return p
}

func (p *pool) identity(name string, roles ...auth.Role) *rpc.Identity {
	p.Helper()
	files, err := pki.IssueTo(p.authority, name, roles)
	if err != nil {
		p.Fatal(err)
	}
	id, err := pki.Load(&config.TLS{CA: files.CA, Certificate: files.Certificate, Key: files.Key})
	if err != nil {
		p.Fatal(err)
	}
	return id
}

// node is how a node with those roles calls the server.
func (p *pool) node(name string, roles ...auth.Role) wire.CheckpointServerClient {
	p.Helper()
	return p.as(p.identity(name, roles...))
}

// right is a right of a node's that a submit node has signed: to put images of attempt 3 of a task, and to get image 4 of it.
func (p *pool) right(schedd, node string, job uint64) []byte {
	p.Helper()
	return p.signed(p.submit(schedd), &wire.ImageRight{
		Schedd: schedd, Node: node, Attempt: &wire.AttemptRef{Job: job, Index: 2, Attempt: 3}, Origin: 3, Sequence: 4,
	})
}

func (p *pool) signed(by *rpc.Identity, r *wire.ImageRight) []byte {
	p.Helper()
	text, err := store.SignRight(by, r)
	if err != nil {
		p.Fatal(err)
	}
	return text
}

// submit is the identity of a submit node.
func (p *pool) submit(name string) *rpc.Identity {
	p.Helper()
	if p.submits[name] == nil {
		p.submits[name] = p.identity(name, auth.Schedd)
	}
	return p.submits[name]
}

// as calls with an identity.
func (p *pool) as(id *rpc.Identity) wire.CheckpointServerClient {
	p.Helper()
	conn, err := rpc.Dial(p.address, id, auth.CheckpointServer)
	if err != nil {
		p.Fatal(err)
	}
	p.Cleanup(func() { conn.Close() })
	return wire.NewCheckpointServerClient(conn)
}

func put(c wire.CheckpointServerClient, right []byte, schedd string, job uint64, sequence string, data []byte) error {
	to, err := c.Put(context.Background())
	if err != nil {
		return rpc.FromStatus(err)
	}
	sum := sha256.Sum256(data)
	for _, chunk := range []*wire.FileChunk{
		{Schedd: schedd, Capability: right, Attempt: &wire.AttemptRef{Job: job, Index: 2, Attempt: 3}, Entry: &wire.FileEntry{Name: sequence, Size: int64(len(data))}},
		{Data: data}, {Eof: true, Sha256: sum[:]},
	} {
		if err := to.Send(chunk); err != nil {
			break
		}
	}
	_, err = to.CloseAndRecv()
	return rpc.FromStatus(err)
}

func imageOf(schedd string, job uint64) *wire.FetchImageRequest { return shown(nil, schedd, job) }

// shown is a request for an image that shows a right.
func shown(right []byte, schedd string, job uint64) *wire.FetchImageRequest {
	return &wire.FetchImageRequest{Capability: right, Schedd: schedd, Attempt: &wire.AttemptRef{Job: job, Index: 2, Attempt: 3}, Sequence: 4}
}

func get(c wire.CheckpointServerClient, r *wire.FetchImageRequest) (data []byte, err error) {
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

func remove(c wire.CheckpointServerClient, r *wire.FetchImageRequest) error {
	_, err := c.Remove(context.Background(), r)
	return rpc.FromStatus(err)
}

// An execute node puts an image, another one gets it, each with the right that the submit node has signed for it, and that submit node removes it; nobody else
// does any of that.
func TestWhoMay(t *testing.T) {
	p := newPool(t, 0)
	n1, n2 := p.node("n1", auth.Startd), p.node("n2", auth.Startd)
	submit, other, manager := p.as(p.submit("submit")), p.as(p.submit("other")), p.node("central", auth.Collector, auth.Negotiator)
	right1, right2 := p.right("submit", "n1", 7), p.right("submit", "n2", 7)
	data := bytes.Repeat([]byte("image"), 100_000)
	if err := put(n1, right1, "submit", 7, "4", data); err != nil {
		t.Fatal(err)
	}
	of := func(attempt, origin uint32, sequence uint64) *wire.ImageRight {
		return &wire.ImageRight{Schedd: "submit", Node: "n2", Attempt: &wire.AttemptRef{Job: 7, Index: 2, Attempt: attempt}, Origin: origin, Sequence: sequence}
	}
	later := p.signed(p.submit("submit"), of(5, 2, 4))
	spoiled := bytes.Clone(right2)
	spoiled[len(spoiled)/8] ^= 1
	stranger := filepath.Join(t.TempDir(), "ca")
	if err := pki.Init(stranger, "elsewhere"); err != nil {
		t.Fatal(err)
	}
	foreign := (&pool{T: t, authority: stranger}).identity("submit", auth.Schedd)
	for name, c := range map[string]struct {
		got  error
		want roost.Kind
	}{
		"put over it":                            {put(n2, right2, "submit", 7, "4", []byte("worse")), roost.Conflict},
		"a submit node puts another's":           {put(other, nil, "submit", 8, "4", data), roost.PermissionDenied},
		"a submit node gets another's":           {second(get(other, imageOf("submit", 7))), roost.PermissionDenied},
		"a submit node gets its own":             {second(get(submit, imageOf("submit", 7))), 0},
		"a central manager puts":                 {put(manager, nil, "central", 8, "4", data), roost.PermissionDenied},
		"an execute node removes":                {remove(n1, imageOf("submit", 7)), roost.PermissionDenied},
		"another submit node removes":            {remove(other, imageOf("submit", 7)), roost.PermissionDenied},
		"a schedd with a path for its name":      {put(n1, right1, "..", 7, "4", data), roost.PermissionDenied},
		"a sequence number that is a path":       {put(n1, right1, "submit", 7, "../../4", data), roost.Invalid},
		"a sequence number with a sign":          {put(n1, right1, "submit", 7, "-4", data), roost.Invalid},
		"no job":                                 {put(submit, nil, "submit", 0, "4", data), roost.Invalid},
		"no schedd":                              {put(n1, right1, "", 7, "4", data), roost.Invalid},
		"nothing":                                {put(submit, nil, "submit", 9, "4", nil), roost.Invalid},
		"what is not there, for its schedd":      {remove(submit, imageOf("submit", 9)), 0},
		"a central manager gets":                 {second(get(manager, imageOf("submit", 7))), roost.PermissionDenied},
		"an execute node gets without a right":   {second(get(n2, imageOf("submit", 7))), roost.Unavailable},
		"an execute node puts without a right":   {put(n2, nil, "submit", 8, "4", data), roost.Unavailable},
		"with another node's right":              {second(get(n2, shown(right1, "submit", 7))), roost.PermissionDenied},
		"with a right to another job":            {second(get(n2, shown(p.right("submit", "n2", 8), "submit", 7))), roost.PermissionDenied},
		"puts with a right to another job":       {put(n2, right2, "submit", 8, "4", data), roost.PermissionDenied},
		"with a right to an earlier image":       {second(get(n2, shown(later, "submit", 7))), roost.PermissionDenied},
		"puts an image of an earlier attempt":    {put(n2, later, "submit", 7, "5", data), roost.PermissionDenied},
		"with another submit node's word":        {second(get(n2, shown(p.signed(p.submit("other"), of(3, 3, 4)), "submit", 7))), roost.PermissionDenied},
		"with another submit node's right":       {second(get(n2, shown(p.right("other", "n2", 7), "submit", 7))), roost.PermissionDenied},
		"with its own word":                      {second(get(n2, shown(p.signed(p.identity("n2", auth.Startd), of(3, 3, 4)), "submit", 7))), roost.PermissionDenied},
		"with the word of an execute node":       {second(get(n2, shown(p.signed(p.identity("submit", auth.Startd), of(3, 3, 4)), "submit", 7))), roost.PermissionDenied},
		"with the word of another pool":          {second(get(n2, shown(p.signed(foreign, of(3, 3, 4)), "submit", 7))), roost.PermissionDenied},
		"with a right that was changed":          {second(get(n2, shown(spoiled, "submit", 7))), roost.PermissionDenied},
		"with something that is no right at all": {second(get(n2, shown([]byte("right"), "submit", 7))), roost.Invalid},
	} {
		if c.want == 0 && c.got != nil || c.want != 0 && !errors.Is(c.got, c.want) {
			t.Errorf("%s: got %v, want %v", name, c.got, c.want)
		}
	}
	got, err := get(n2, shown(right2, "submit", 7))
	if err != nil || !bytes.Equal(got, data) {
		t.Fatalf("%d bytes, %v", len(got), err)
	}
	if err := put(submit, nil, "submit", 8, "4", data); err != nil {
		t.Errorf("a submit node puts its own: %v", err)
	}
	if err := remove(submit, imageOf("submit", 7)); err != nil {
		t.Fatal(err)
	}
	if _, err := get(n2, shown(right2, "submit", 7)); !errors.Is(err, roost.NotFound) {
		t.Errorf("after it was removed: %v", err)
	}
}

func second[T any](_ T, err error) error { return err }

// A server that is full says so, and has room again when something was removed.
func TestFull(t *testing.T) {
	p := newPool(t, 1000)
	n1, submit := p.node("n1", auth.Startd), p.as(p.submit("submit"))
	if err := put(n1, p.right("submit", "n1", 1), "submit", 1, "4", make([]byte, 600)); err != nil {
		t.Fatal(err)
	}
	if err := put(n1, p.right("submit", "n1", 2), "submit", 2, "4", make([]byte, 600)); !errors.Is(err, roost.Exhausted) {
		t.Fatalf("got %v", err)
	}
	if err := remove(submit, imageOf("submit", 1)); err != nil {
		t.Fatal(err)
	}
	if err := put(n1, p.right("submit", "n1", 2), "submit", 2, "4", make([]byte, 600)); err != nil {
		t.Fatal(err)
	}
}
