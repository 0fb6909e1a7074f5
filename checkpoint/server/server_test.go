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
	images             *store.Store
}

func newPool(t *testing.T, most int64) *pool {
	p := &pool{T: t, authority: filepath.Join(t.TempDir(), "ca")}
	if err := pki.Init(p.authority, "lab"); err != nil {
		t.Fatal(err)
	}
	var err error
	if p.images, err = store.Open(filepath.Join(t.TempDir(), "images"), most); err != nil {
		t.Fatal(err)
	}
	l, err := rpc.Listen("127.0.0.1:0", 0o600)
	if err != nil {
		t.Fatal(err)
	}
	p.address = l.Addr().String()
	server := rpc.NewServer(p.identity("store", auth.CheckpointServer), auth.Methods(), grpc.WaitForHandlers(true))
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	s := New(p.images)
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
	conn, err := rpc.Dial(p.address, p.identity(name, roles...), auth.CheckpointServer)
	if err != nil {
		p.Fatal(err)
	}
	p.Cleanup(func() { conn.Close() })
	return wire.NewCheckpointServerClient(conn)
}

func put(c wire.CheckpointServerClient, schedd string, job uint64, sequence string, data []byte) error {
	to, err := c.Put(context.Background())
	if err != nil {
		return rpc.FromStatus(err)
	}
	sum := sha256.Sum256(data)
	for _, chunk := range []*wire.FileChunk{
		{Schedd: schedd, Attempt: &wire.AttemptRef{Job: job, Index: 2, Attempt: 3}, Entry: &wire.FileEntry{Name: sequence, Size: int64(len(data))}},
		{Data: data}, {Eof: true, Sha256: sum[:]},
	} {
		if err := to.Send(chunk); err != nil {
			break
		}
	}
	_, err = to.CloseAndRecv()
	return rpc.FromStatus(err)
}

func image(schedd string, job uint64) *wire.FetchImageRequest {
	return &wire.FetchImageRequest{Schedd: schedd, Attempt: &wire.AttemptRef{Job: job, Index: 2, Attempt: 3}, Sequence: 4}
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

// An execute node puts an image, another one gets it, and the submit node whose it is removes it; nobody else does any of that.
func TestWhoMay(t *testing.T) {
	p := newPool(t, 0)
	n1, n2 := p.node("n1", auth.Startd), p.node("n2", auth.Startd)
	submit, other, manager := p.node("submit", auth.Schedd), p.node("other", auth.Schedd), p.node("central", auth.Collector, auth.Negotiator)
	data := bytes.Repeat([]byte("image"), 100_000)
	if err := put(n1, "submit", 7, "4", data); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		got  error
		want roost.Kind
	}{
		"put over it":                          {put(n2, "submit", 7, "4", []byte("worse")), roost.Conflict},
		"a submit node puts another's":         {put(other, "submit", 8, "4", data), roost.PermissionDenied},
		"a submit node gets another's":         {second(get(other, image("submit", 7))), roost.PermissionDenied},
		"a submit node gets its own":           {second(get(submit, image("submit", 7))), 0},
		"a central manager puts":               {put(manager, "central", 8, "4", data), roost.PermissionDenied},
		"an execute node removes":              {remove(n1, image("submit", 7)), roost.PermissionDenied},
		"another submit node removes":          {remove(other, image("submit", 7)), roost.PermissionDenied},
		"a schedd with a path for its name":    {put(n1, "..", 7, "4", data), roost.Invalid},
		"a sequence number that is a path":     {put(n1, "submit", 7, "../../4", data), roost.Invalid},
		"a sequence number with a sign":        {put(n1, "submit", 7, "-4", data), roost.Invalid},
		"no job":                               {put(n1, "submit", 0, "4", data), roost.Invalid},
		"no schedd":                            {put(n1, "", 7, "4", data), roost.Invalid},
		"nothing":                              {put(n1, "submit", 9, "4", nil), roost.Invalid},
		"what is not there, for its schedd":    {remove(submit, image("submit", 9)), 0},
		"a central manager gets":               {second(get(manager, image("submit", 7))), roost.PermissionDenied},
		"an image of a path that is no schedd": {second(get(n1, image("../submit", 7))), roost.Invalid},
	} {
		if c.want == 0 && c.got != nil || c.want != 0 && !errors.Is(c.got, c.want) {
			t.Errorf("%s: got %v, want %v", name, c.got, c.want)
		}
	}
	got, err := get(n2, image("submit", 7))
	if err != nil || !bytes.Equal(got, data) {
		t.Fatalf("%d bytes, %v", len(got), err)
	}
	if err := put(submit, "submit", 8, "4", data); err != nil {
		t.Errorf("a submit node puts its own: %v", err)
	}
	if err := remove(submit, image("submit", 7)); err != nil {
		t.Fatal(err)
	}
	if _, err := get(n2, image("submit", 7)); !errors.Is(err, roost.NotFound) {
		t.Errorf("after it was removed: %v", err)
	}
}

func second[T any](_ T, err error) error { return err }

// A server that is full says so, and has room again when something was removed.
func TestFull(t *testing.T) {
	p := newPool(t, 1000)
	n1, submit := p.node("n1", auth.Startd), p.node("submit", auth.Schedd)
	if err := put(n1, "submit", 1, "4", make([]byte, 600)); err != nil {
		t.Fatal(err)
	}
	if err := put(n1, "submit", 2, "4", make([]byte, 600)); !errors.Is(err, roost.Exhausted) {
		t.Fatalf("got %v", err)
	}
	if err := remove(submit, image("submit", 1)); err != nil {
		t.Fatal(err)
	}
	if err := put(n1, "submit", 2, "4", make([]byte, 600)); err != nil {
		t.Fatal(err)
	}
}
