package relay

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/identity/peer"
	"github.com/roost-batch/roost/internal/identity/pki"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/wire"
)

// testPool is a pool with one relay.
type testPool struct {
	testing.TB
	dir   string
	relay string // its address
	tap   *tapListener
	stop  func() // stops the relay
	log   *slog.Logger
}

func newTestPool(t testing.TB) *testPool {
	p := &testPool{TB: t, dir: t.TempDir(), log: slog.New(slog.NewTextHandler(t.Output(), nil))}
	if err := pki.Init(p.dir, "lab"); err != nil {
		t.Fatal(err)
	}
	p.relay = p.startRelay("127.0.0.1:0")
	return p
}

func (p *testPool) identity(name string, roles ...peer.Role) *rpc.Identity {
	p.Helper()
	files, err := pki.IssueTo(p.dir, name, roles)
	if err != nil {
		p.Fatal(err)
	}
	id, err := pki.Load(&files)
	if err != nil {
		p.Fatal(err)
	}
	return id
}

// tapListener records every byte that comes to a relay after its own TLS was taken off.
type tapListener struct {
	*Server
	mu   sync.Mutex
	off  bool // it records nothing
	seen bytes.Buffer
}

type tappedStream struct {
	bytesServer
	tap *tapListener
}

func (s tappedStream) Recv() (*wire.RelayBytes, error) {
	m, err := s.bytesServer.Recv()
	s.tap.mu.Lock()
	defer s.tap.mu.Unlock()
	if !s.tap.off {
		s.tap.seen.Write(m.GetData())
	}
	return m, err
}

func (l *tapListener) Dial(stream bytesServer) error { return l.Server.Dial(tappedStream{stream, l}) }

func (l *tapListener) Accept(stream bytesServer) error {
	return l.Server.Accept(tappedStream{stream, l})
}

// startRelay starts a relay, with the certificate of central1.
func (p *testPool) startRelay(addr string) string {
	p.Helper()
	id := p.identity("central1", peer.Collector)
	l, err := rpc.Listen(addr, 0)
	if err != nil {
		p.Fatal(err)
	}
	server := rpc.NewServer(id, peer.MethodAccess())
	p.tap = &tapListener{Server: NewServer(p.log)}
	wire.RegisterRelayServer(server, p.tap)
	served := make(chan struct{})
	go func() { defer close(served); server.Serve(l) }()
	stop := sync.OnceFunc(func() { server.Stop(); <-served })
	p.Cleanup(stop)
	p.stop = stop
	return l.Addr().String()
}

// echoStartd answers a Tail with the name that the request has, which is enough of a
// startd here.
type echoStartd struct{ wire.UnimplementedStartdServer }

func (echoStartd) Tail(req *wire.TailRequest, stream grpc.ServerStreamingServer[wire.LogChunk]) error {
	caller, _ := peer.FromContext(stream.Context())
	return stream.Send(&wire.LogChunk{Data: []byte(caller.Name + " " + req.GetSchedd())})
}

func (echoStartd) Fetch(_ *wire.FetchRequest, stream grpc.ServerStreamingServer[wire.FileChunk]) error {
	for range 64 {
		if err := stream.Send(&wire.FileChunk{Data: make([]byte, 256<<10)}); err != nil {
			return err
		}
	}
	return nil
}

// startNode runs a startd that is reached through the relay only.
func (p *testPool) startNode(id *rpc.Identity) *Listener {
	p.Helper()
	l, err := Listen(p.relay, id, p.log)
	if err != nil {
		p.Fatal(err)
	}
	server := rpc.NewServer(id, peer.MethodAccess())
	wire.RegisterStartdServer(server, echoStartd{})
	served := make(chan struct{})
	go func() { defer close(served); server.Serve(l) }()
	p.Cleanup(func() { server.Stop(); l.Close(); <-served })
	return l
}

// dialNode connects to the startd of a node through the relay.
func (p *testPool) dialNode(id *rpc.Identity, node string) wire.StartdClient {
	p.Helper()
	d := NewDialer(id)
	p.Cleanup(d.Close)
	id.DialRelay = d.Dial
	conn, err := rpc.DialNode(rpc.RelayPrefix+p.relay, id, peer.Startd, node)
	if err != nil {
		p.Fatal(err)
	}
	p.Cleanup(func() { conn.Close() })
	return wire.NewStartdClient(conn)
}

// tail returns what the startd at the other end has answered.
func tail(ctx context.Context, c wire.StartdClient, text string, wait bool) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	stream, err := c.Tail(ctx, &wire.TailRequest{Schedd: text}, grpc.WaitForReady(wait))
	if err != nil {
		return "", err
	}
	m, err := stream.Recv()
	return string(m.GetData()), rpc.FromStatus(err)
}

// TestCarries checks that calls reach a node that only the relay reaches. Both ends know
// each other by their certificates, and the relay can read nothing of what they send.
func TestCarries(t *testing.T) {
	p := newTestPool(t)
	p.startNode(p.identity("n1", peer.Startd))
	c := p.dialNode(p.identity("login1", peer.Schedd), "n1")
	const secret = "a word that nobody else may read"
	if got, err := tail(t.Context(), c, secret, true); got != "login1 "+secret || err != nil {
		t.Fatalf("got %q, %v", got, err)
	}
	n := fetchAll(t, c)
	p.tap.mu.Lock()
	defer p.tap.mu.Unlock()
	if n != 16<<20 || p.tap.seen.Len() < n {
		t.Errorf("%d bytes came, and %d through the relay", n, p.tap.seen.Len())
	}
	for _, word := range []string{secret, "login1", "roost.wire"} {
		if bytes.Contains(p.tap.seen.Bytes(), []byte(word)) {
			t.Errorf("the relay sees %q", word)
		}
	}
}

// TestRelayRestarts checks that the node calls again, and that new calls get through.
func TestRelayRestarts(t *testing.T) {
	p := newTestPool(t)
	p.startNode(p.identity("n1", peer.Startd))
	c := p.dialNode(p.identity("login1", peer.Schedd), "n1")
	if _, err := tail(t.Context(), c, "x", true); err != nil {
		t.Fatal(err)
	}
	p.stop()
	p.relay = p.startRelay(p.relay)
	var err error
	for range 100 {
		var got string
		if got, err = tail(t.Context(), c, "y", true); err == nil {
			if got != "login1 y" {
				t.Errorf("got %q", got)
			}
			return
		}
	}
	t.Errorf("the node is not reached again: %v", err)
}

// TestSecondConnection checks that a node can connect anew while the relay still has its
// first connection. Calls that were there before go on.
func TestSecondConnection(t *testing.T) {
	p := newTestPool(t)
	id := p.identity("n1", peer.Startd)
	p.startNode(id)
	c := p.dialNode(p.identity("login1", peer.Schedd), "n1")
	if _, err := tail(t.Context(), c, "x", true); err != nil {
		t.Fatal(err)
	}
	conn, err := rpc.Dial(p.relay, id, peer.Collector)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	calls, err := wire.NewRelayClient(conn).Listen(t.Context(), &wire.RelayListen{Node: "n1"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := calls.Recv(); err != nil {
		t.Fatal(err)
	}
	if got, err := tail(t.Context(), c, "z", true); got != "login1 z" || err != nil {
		t.Errorf("the connection that was there: %q, %v", got, err)
	}
}

// TestImpostors checks what a node gets that wants the connections of another.
func TestImpostors(t *testing.T) {
	p := newTestPool(t)
	client := func(id *rpc.Identity) wire.RelayClient {
		conn, err := rpc.Dial(p.relay, id, peer.Collector)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		return wire.NewRelayClient(conn)
	}
	evil := client(p.identity("evil", peer.Startd))
	calls, err := evil.Listen(t.Context(), &wire.RelayListen{Node: "n1"})
	if err == nil {
		_, err = calls.Recv()
	}
	if !errors.Is(rpc.FromStatus(err), roost.PermissionDenied) {
		t.Errorf("listens for another: %v", err)
	}
	stream, err := evil.Dial(t.Context())
	if err == nil {
		err = openStream(stream, &wire.RelayBytes{Node: "n1"})
	}
	if !errors.Is(err, roost.PermissionDenied) {
		t.Errorf("a startd dials: %v", err)
	}

	// n1 waits for a call, and another node tries to take it by its id.
	n1 := client(p.identity("n1", peer.Startd))
	calls, err = n1.Listen(t.Context(), &wire.RelayListen{Node: "n1"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := calls.Recv(); err != nil {
		t.Fatal(err)
	}
	d := NewDialer(p.identity("login1", peer.Schedd))
	defer d.Close()
	dialled := make(chan net.Conn, 1)
	go func() {
		conn, err := d.Dial(t.Context(), p.relay, "n1")
		if err != nil {
			t.Error(err)
		}
		dialled <- conn
	}()
	call, err := calls.Recv()
	if err != nil || call.GetFrom() != "login1" {
		t.Fatalf("got %v, %v", call, err)
	}
	for _, id := range [][]byte{call.GetId(), nil, []byte("guessed")} {
		stream, err := evil.Accept(t.Context())
		if err == nil {
			err = openStream(stream, &wire.RelayBytes{Id: id})
		}
		if !errors.Is(err, roost.NotFound) {
			t.Errorf("accepts another's connection: %v", err)
		}
	}
	accepted, err := n1.Accept(t.Context())
	if err == nil {
		err = openStream(accepted, &wire.RelayBytes{Id: call.GetId()})
	}
	if err != nil {
		t.Fatal(err)
	}
	if conn := <-dialled; conn != nil {
		conn.Close()
	}
	if _, err := accepted.Recv(); err == nil {
		t.Error("the closed connection lives at the other end")
	}
	again, err := n1.Accept(t.Context())
	if err == nil {
		err = openStream(again, &wire.RelayBytes{Id: call.GetId()})
	}
	if !errors.Is(err, roost.NotFound) {
		t.Errorf("accepts it twice: %v", err)
	}
}

// TestWrongNode checks that a node that answers in another's place is not believed. So a
// relay that connects a schedd with the wrong node can do no harm.
func TestWrongNode(t *testing.T) {
	p := newTestPool(t)
	p.startNode(p.identity("n1", peer.Startd))
	id := p.identity("login1", peer.Schedd)
	d := NewDialer(id)
	defer d.Close()
	id.DialRelay = func(ctx context.Context, target, _ string) (net.Conn, error) {
		return d.Dial(ctx, target, "n1") // as a relay would do that lies
	}
	conn, err := rpc.DialNode(rpc.RelayPrefix+p.relay, id, peer.Startd, "n2")
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if got, err := tail(t.Context(), wire.NewStartdClient(conn), "x", false); err == nil ||
		!strings.Contains(err.Error(), "n1 answers there") {
		t.Errorf("got %q, %v", got, err)
	}
}

// TestAbsentNode checks that the error says who is not there, and where.
func TestAbsentNode(t *testing.T) {
	p := newTestPool(t)
	d := NewDialer(p.identity("login1", peer.Schedd))
	defer d.Close()
	_, err := d.Dial(t.Context(), p.relay+","+p.relay, "n9")
	if !errors.Is(err, roost.Unavailable) || strings.Count(err.Error(), "n9 is not connected") != 2 {
		t.Errorf("got %v", err)
	}
	if nodes, conns := p.tap.Counts(); nodes != 0 || conns != 0 {
		t.Errorf("%d nodes and %d connections are left", nodes, conns)
	}
	for _, target := range []string{"", "x", "unix:/a", "a:1,", strings.Repeat("a:1,", 8) + "a:1"} {
		if _, err := ParseTarget(target); !errors.Is(err, roost.Invalid) {
			t.Errorf("%q: %v", target, err)
		}
	}
}
