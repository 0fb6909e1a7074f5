package server

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/identity/peer"
	"github.com/roost-batch/roost/internal/rpc"
	blobstore "github.com/roost-batch/roost/internal/store"
	"github.com/roost-batch/roost/internal/store/transfer"
	"github.com/roost-batch/roost/internal/wire"
)

// chunkMachine is a machine that fetches blobs, and sends chunks to others.
type chunkMachine struct {
	wire.UnimplementedStartdServer
	pool          *testPool
	name, address string
	identity      *rpc.Identity
	blobs         *blobstore.Directory
	uploads       *transfer.Uploads
	fetcher       *transfer.Fetcher
	spoil         func(context.Context, *wire.BlobPart) error // what happens to a part on its way out

	mu                                 sync.Mutex
	fromServer, fromMachines, sentAway int
	failed                             map[wire.ChunkResult_Outcome]int
}

func (m *chunkMachine) Received(bytes int, fromServer bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if fromServer {
		m.fromServer += bytes
	} else {
		m.fromMachines += bytes
	}
}

func (m *chunkMachine) Failed(outcome wire.ChunkResult_Outcome) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.failed[outcome]++
}

func (m *chunkMachine) Sent(bytes int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.sentAway += bytes
}

func (m *chunkMachine) GetChunks(req *wire.BlobRequest, stream grpc.ServerStreamingServer[wire.BlobPart]) error {
	return m.uploads.Send(stream.Context(), m.blobs, req, func(part *wire.BlobPart) error {
		if m.spoil != nil {
			if err := m.spoil(stream.Context(), part); err != nil {
				return err
			}
		}
		return stream.Send(part)
	})
}

// machine starts a machine of the pool, in a rack.
func (p *testPool) machine(name, rack string) *chunkMachine {
	p.Helper()
	l, err := rpc.Listen("127.0.0.1:0", 0o600)
	if err != nil {
		p.Fatal(err)
	}
	m := &chunkMachine{pool: p, name: name, address: l.Addr().String(), identity: p.identity(name, peer.Startd),
		failed: map[wire.ChunkResult_Outcome]int{}}
	m.blobs, _ = openBlobs(p.T, blobstore.Options{})
	m.uploads = transfer.NewUploads(1<<30, m)
	m.fetcher = &transfer.Fetcher{Server: p.callAs(m.identity), Counter: m,
		Machine: &wire.ChunkPlanRequest{Node: name, Machine: name, Address: m.address, Rack: rack},
		Dial: func(node, address string) (wire.StartdClient, func(), error) {
			conn, err := rpc.DialNode(address, m.identity, peer.Startd, node)
			if err != nil {
				return nil, nil, err
			}
			return wire.NewStartdClient(conn), func() { conn.Close() }, nil
		}}
	server := rpc.NewServer(m.identity, peer.MethodAccess(), grpc.WaitForHandlers(true))
	wire.RegisterStartdServer(server, m)
	done := make(chan error, 1)
	go func() { done <- server.Serve(l) }()
	p.Cleanup(func() { server.Stop(); <-done })
	return m
}

// fetch has the machine fetch a blob, and checks its bytes.
func (m *chunkMachine) fetch(digest blobstore.Digest, want []byte) {
	m.pool.Helper()
	ctx, cancel := context.WithTimeout(m.pool.Context(), time.Minute)
	defer cancel()
	if err := m.fetcher.Fetch(ctx, digest, m.blobs, nil); err != nil {
		m.pool.Fatalf("%s: %v", m.name, err)
	}
	path, _ := m.blobs.Path(digest)
	if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, want) {
		m.pool.Fatalf("%s has %d bytes, want %d: %v", m.name, len(got), len(want), err)
	}
}

// newChunkPool is a pool whose server has a blob of 6 chunks.
func newChunkPool(t *testing.T) (p *testPool, digest blobstore.Digest, data []byte) {
	t.Helper()
	p = newPool(t, 0)
	p.blobs, _ = openBlobs(t, blobstore.Options{})
	data = make([]byte, 5*blobstore.ChunkBytes+1000)
	rand.NewChaCha8([32]byte{2}).Read(data)
	m, err := p.blobs.Add(t.Context(), bytes.NewReader(data), "")
	if err != nil {
		t.Fatal(err)
	}
	return p, m.Digest(), data
}

// TestMachinesServeEachOther: the first machine has a blob from the server, the others
// have it from machines. A server that starts anew learns who has it.
func TestMachinesServeEachOther(t *testing.T) {
	p, digest, data := newChunkPool(t)
	one, two, three := p.machine("m1", "r1"), p.machine("m2", "r1"), p.machine("m3", "r2")
	one.fetch(digest, data)
	if one.fromServer != len(data) || one.fromMachines != 0 {
		t.Errorf("the first has %d bytes from the server and %d from machines", one.fromServer, one.fromMachines)
	}
	for _, m := range []*chunkMachine{two, three} {
		if m.fetch(digest, data); m.fromServer != 0 || m.fromMachines != len(data) {
			t.Errorf("%s has %d bytes from the server and %d from machines", m.name, m.fromServer, m.fromMachines)
		}
	}
	if sent := one.sentAway + two.sentAway; sent != 2*len(data) {
		t.Errorf("they sent %d bytes", sent)
	}
	p.planner.mu.Lock()
	p.planner.tracker = newChunkPlanner().tracker
	p.planner.mu.Unlock()
	list := &wire.ChunkPlanRequest{Node: "m1", Machine: "m1", Address: one.address, ListsWhole: true,
		Whole: []string{string(digest), "sha256:none"}}
	if _, err := one.fetcher.Server.PlanChunks(t.Context(), list); err != nil {
		t.Fatal(err)
	}
	four := p.machine("m4", "r2")
	if four.fetch(digest, data); four.fromServer != 0 {
		t.Errorf("after the server's restart %d bytes come from it", four.fromServer)
	}
}

// TestManyMachinesAtOnce: all fetch at the same time, and the server sends few copies.
func TestManyMachinesAtOnce(t *testing.T) {
	p, digest, data := newChunkPool(t)
	var machines []*chunkMachine
	for i, rack := range []string{"r1", "r1", "r2", "r2", "r2", "r2", "r2", ""} {
		machines = append(machines, p.machine(fmt.Sprintf("m%d", i), rack))
	}
	var all sync.WaitGroup
	for _, m := range machines {
		all.Go(func() {
			if err := m.fetcher.Fetch(t.Context(), digest, m.blobs, nil); err != nil {
				t.Errorf("%s: %v", m.name, err)
			}
		})
	}
	all.Wait()
	fromServer := 0
	for _, m := range machines {
		fromServer += m.fromServer
		if m.fromServer+m.fromMachines != len(data) {
			t.Errorf("%s has %d bytes from the server and %d from machines", m.name, m.fromServer, m.fromMachines)
		}
	}
	if fromServer < len(data) || fromServer > 4*len(data) {
		t.Errorf("the server sent %d bytes of %d", fromServer, len(data))
	}
}

// TestBadMachines: a machine that lies, is silent, gone or full costs time only. So does
// one that has nothing.
func TestBadMachines(t *testing.T) {
	for name, x := range map[string]struct {
		spoil   func(context.Context, *wire.BlobPart) error
		address string
		empty   bool
		want    wire.ChunkResult_Outcome
	}{
		"poisoned": {want: wire.ChunkResult_OUTCOME_DAMAGED, spoil: func(_ context.Context, part *wire.BlobPart) error {
			if len(part.Data) > 0 {
				part.Data[0] ^= 1
			}
			return nil
		}},
		"another": {want: wire.ChunkResult_OUTCOME_DAMAGED, spoil: func(_ context.Context, part *wire.BlobPart) error {
			part.Chunk = (part.Chunk + 1) % 5
			return nil
		}},
		"silent": {want: wire.ChunkResult_OUTCOME_SLOW, spoil: func(ctx context.Context, _ *wire.BlobPart) error {
			<-ctx.Done()
			return ctx.Err()
		}},
		"full": {want: wire.ChunkResult_OUTCOME_BUSY, spoil: func(context.Context, *wire.BlobPart) error {
			return roost.Exhausted
		}},
		"gone":    {want: wire.ChunkResult_OUTCOME_SLOW, address: "127.0.0.1:1"},
		"nothing": {want: wire.ChunkResult_OUTCOME_MISSING, empty: true},
	} {
		t.Run(name, func(t *testing.T) {
			p, digest, data := newChunkPool(t)
			bad, good := p.machine("bad", "r1"), p.machine("good", "r1")
			bad.spoil = x.spoil
			good.fetcher.StallTime = time.Second
			if x.address != "" {
				bad.fetcher.Machine.Address = x.address
			}
			if x.empty {
				list := &wire.ChunkPlanRequest{Node: "bad", Machine: "bad", Address: bad.address, Rack: "r1",
					ListsWhole: true, Whole: []string{string(digest)}}
				if _, err := bad.fetcher.Server.PlanChunks(t.Context(), list); err != nil {
					t.Fatal(err)
				}
			} else {
				bad.fetch(digest, data)
			}
			good.fetch(digest, data)
			if good.failed[x.want] == 0 || good.fromServer == 0 {
				t.Errorf("failed: %v, %d bytes from the server and %d from the bad machine", good.failed,
					good.fromServer, good.fromMachines)
			}
		})
	}
}

// TestWhoPlansChunks: a node asks for its own machines only, and only machines get
// chunks.
func TestWhoPlansChunks(t *testing.T) {
	p, digest, data := newChunkPool(t)
	m := p.machine("m1", "r1")
	m.fetch(digest, data)
	req := &wire.ChunkPlanRequest{Digest: string(digest), Node: "m1", Machine: "m1", Address: "127.0.0.1:1", Streams: 4}
	for name, c := range map[string]wire.CheckpointServerClient{
		"another machine": p.node("m2", peer.Startd), "a submit node": p.node("n1", peer.Schedd),
		"a central manager": p.node("n3", peer.Negotiator, peer.Collector),
	} {
		if _, err := c.PlanChunks(t.Context(), req); !errors.Is(rpc.FromStatus(err), roost.PermissionDenied) {
			t.Errorf("%s asks as m1: %v", name, err)
		}
	}
	for _, role := range []peer.Role{peer.Schedd, peer.Negotiator, peer.CheckpointServer} {
		conn, err := rpc.DialNode(m.address, p.identity("n-"+string(role), role), peer.Startd, "m1")
		if err != nil {
			t.Fatal(err)
		}
		stream, err := wire.NewStartdClient(conn).GetChunks(t.Context(), &wire.BlobRequest{Digest: string(digest),
			Chunks: []uint32{0}})
		if err == nil {
			_, err = stream.Recv()
		}
		if !errors.Is(rpc.FromStatus(err), roost.PermissionDenied) {
			t.Errorf("a %s gets chunks from a machine: %v", role, err)
		}
		conn.Close()
	}
	own := m.fetcher.Server
	for name, bad := range map[string]*wire.ChunkPlanRequest{
		"no name":        {Digest: string(digest), Node: "m1"},
		"a long name":    {Digest: string(digest), Node: "m1", Machine: string(make([]byte, 256))},
		"no digest":      {Digest: "sha256:1", Node: "m1", Machine: "m1"},
		"too many":       {Node: "m1", Machine: "m1", ListsWhole: true, Whole: make([]string, 257)},
		"unknown":        {Digest: "sha256:" + string(bytes.Repeat([]byte("0"), 64)), Node: "m1", Machine: "m1"},
		"not its node's": {Digest: string(digest), Node: "m2", Machine: "m1"},
	} {
		if _, err := own.PlanChunks(t.Context(), bad); err == nil {
			t.Errorf("%s: there is a plan", name)
		}
	}
}

// earlierServer is a checkpoint server of the release before plans, or one whose tracker
// is silent.
type earlierServer struct {
	wire.CheckpointServerClient
	err error
}

func (s earlierServer) PlanChunks(ctx context.Context, _ *wire.ChunkPlanRequest, _ ...grpc.CallOption) (
	*wire.ChunkPlan, error) {
	return nil, s.err
}

// TestNoPlans: without plans everything comes from the server.
func TestNoPlans(t *testing.T) {
	for _, code := range []codes.Code{codes.Unimplemented, codes.PermissionDenied, codes.Unavailable} {
		t.Run(code.String(), func(t *testing.T) {
			p, digest, data := newChunkPool(t)
			m := p.machine("m1", "")
			m.fetcher.Server = earlierServer{m.fetcher.Server, status.Error(code, "no plan")}
			if m.fetch(digest, data); m.fromServer != len(data) {
				t.Errorf("%d bytes came from the server", m.fromServer)
			}
		})
	}
}
