package rpc_test

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/identity/peer"
	"github.com/roost-batch/roost/internal/identity/pki"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/wire"
)

// echoSchedd is a schedd that reports its callers.
type echoSchedd struct {
	wire.UnimplementedScheddServer
	peer chan peer.Peer
}

func (a *echoSchedd) Health(ctx context.Context, _ *wire.HealthRequest) (*wire.HealthReply, error) {
	p, _ := peer.FromContext(ctx)
	a.peer <- p
	return &wire.HealthReply{Name: "here"}, nil
}

// fakeCollector is a collector with a single ad.
type fakeCollector struct {
	wire.UnimplementedCollectorServer
}

func (fakeCollector) Query(_ *wire.AdQuery, stream grpc.ServerStreamingServer[wire.AdText]) error {
	return stream.Send(&wire.AdText{Ad: "[]"})
}

// startServer starts both services on addr until the test ends. It returns the address
// and a channel with the callers of Health.
func startServer(t *testing.T, addr string, id *rpc.Identity) (string, <-chan peer.Peer) {
	t.Helper()
	l, err := rpc.Listen(addr, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	if addr[:5] != "unix:" {
		addr = l.Addr().String()
	}
	a := &echoSchedd{peer: make(chan peer.Peer, 10)}
	s := rpc.NewServer(id, peer.MethodAccess())
	wire.RegisterScheddServer(s, a)
	wire.RegisterCollectorServer(s, fakeCollector{})
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.Serve(l)
	}()
	t.Cleanup(func() {
		s.Stop()
		<-done
	})
	return addr, a.peer
}

func dial(t *testing.T, addr string, id *rpc.Identity, role peer.Role) *grpc.ClientConn {
	t.Helper()
	conn, err := rpc.Dial(addr, id, role)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

// callHealth calls a method for users; callQuery calls one for daemons.
func callHealth(t *testing.T, conn *grpc.ClientConn) error {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	_, err := wire.NewScheddClient(conn).Health(ctx, &wire.HealthRequest{})
	return rpc.FromStatus(err)
}

func callQuery(t *testing.T, conn *grpc.ClientConn) error {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	stream, err := wire.NewCollectorClient(conn).Query(ctx, &wire.AdQuery{})
	if err == nil {
		_, err = stream.Recv()
	}
	return rpc.FromStatus(err)
}

func TestPeerCredentials(t *testing.T) {
	dir := filepath.Join(t.TempDir(), strings.Repeat("long/", 40))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	addr, peers := startServer(t, "unix:"+dir+"/x.sock", nil)
	conn := dial(t, addr, nil, peer.Schedd)
	if err := callHealth(t, conn); err != nil {
		t.Fatal(err)
	}
	p := <-peers
	if !p.Local || p.UID != uint32(os.Getuid()) || p.GID != uint32(os.Getgid()) || p.PID != int32(os.Getpid()) {
		t.Errorf("got %+v", p)
	}
	if err := callQuery(t, conn); err != nil {
		t.Errorf("the daemons' own user: got %v", err)
	}
}

// identity issues a certificate with roles.
func identity(t *testing.T, dir, name string, roles ...peer.Role) *rpc.Identity {
	t.Helper()
	files, err := pki.IssueTo(dir, name, roles)
	if err != nil {
		t.Fatal(err)
	}
	id, err := pki.Load(&files)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func authority(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := pki.Init(dir, "lab"); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestCertificateIdentifiesCaller(t *testing.T) {
	ours, theirs := authority(t), authority(t)
	addr, _ := startServer(t, "127.0.0.1:0", identity(t, ours, "central", peer.Collector))
	startd := identity(t, ours, "n1", peer.Startd)
	tests := []struct {
		name string
		id   *rpc.Identity
		role peer.Role // that the server is asked to have
		call func(*testing.T, *grpc.ClientConn) error
		want error
		says string
	}{
		{"a role that may", startd, peer.Collector, callQuery, nil, ""},
		{"a user's method", startd, peer.Collector, callHealth, roost.PermissionDenied, "Health"},
		{"no role", identity(t, ours, "n2"), peer.Collector, callQuery, roost.PermissionDenied, "Query"},
		{"a server of another role", startd, peer.Negotiator, callQuery, roost.Unavailable,
			"central is not a negotiator"},
		{"another pool's node", identity(t, theirs, "n1", peer.Startd), peer.Collector, callQuery, roost.Unavailable,
			"another pool's authority"},
		{"no identity", nil, peer.Collector, callQuery, roost.Unavailable, "no certificate"},
	}
	for _, tt := range tests {
		err := tt.call(t, dial(t, addr, tt.id, tt.role))
		if !errors.Is(err, tt.want) || (err != nil && !strings.Contains(err.Error(), tt.says)) {
			t.Errorf("%s: got %v, want %v with %q", tt.name, err, tt.want, tt.says)
		}
	}
}

func TestUnauthenticatedRefused(t *testing.T) {
	id := identity(t, authority(t), "central", peer.Collector)
	withIdentity, _ := startServer(t, "127.0.0.1:0", id)
	without, _ := startServer(t, "127.0.0.1:0", nil)
	for name, addr := range map[string]string{"with an identity": withIdentity, "without": without} {
		conn, err := grpc.NewClient(addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			t.Fatal(err)
		}
		if err := callHealth(t, conn); err == nil {
			t.Errorf("%s: a call in the clear was answered", name)
		}
		conn.Close()
	}
}

func TestSilentPeerDisconnected(t *testing.T) {
	t.Parallel() // it takes as long as a handshake may
	addr, _ := startServer(t, "127.0.0.1:0", identity(t, authority(t), "central", peer.Collector))
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	conn.SetReadDeadline(time.Now().Add(time.Minute))
	if n, err := conn.Read(make([]byte, 1)); n > 0 || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("got %d bytes, %v", n, err)
	}
}
