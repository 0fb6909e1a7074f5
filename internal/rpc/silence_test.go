package rpc

import (
	"context"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/roost-batch/roost"
)

// cutConn is a connection whose packets get lost from some time on.
type cutConn struct {
	net.Conn
	cut <-chan struct{}
}

func (c cutConn) Write(b []byte) (int, error) {
	select {
	case <-c.cut:
		return len(b), nil
	default:
		return c.Conn.Write(b)
	}
}

// openIdleStream opens a stream to a server with the pings of a startd, over a connection
// that wrap changes.
func openIdleStream(t *testing.T, wrap func(net.Conn) net.Conn, more ...grpc.ServerOption) grpc.ClientStream {
	t.Helper()
	l := bufconn.Listen(1 << 16)
	server := grpc.NewServer(append(more,
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: minPingInterval}),
		grpc.UnknownServiceHandler(func(_ any, s grpc.ServerStream) error {
			<-s.Context().Done()
			return nil
		}))...)
	go server.Serve(l)
	t.Cleanup(server.Stop)
	conn, err := grpc.NewClient("passthrough:///server", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: nodePingInterval, Timeout: nodePingTimeout}),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
			c, err := l.DialContext(ctx)
			return wrap(c), err
		}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	stream, err := conn.NewStream(t.Context(), &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}, "/a/b")
	if err != nil {
		t.Fatal(err)
	}
	return stream
}

// TestSilenceBefore checks for how long a server was silent whose machine is cut off, and
// one that ends the connection.
func TestSilenceBefore(t *testing.T) {
	for _, more := range [][]grpc.ServerOption{nil, {WithMachinePings()}} {
		synctest.Test(t, func(t *testing.T) {
			cut := make(chan struct{})
			stream := openIdleStream(t, func(c net.Conn) net.Conn { return cutConn{c, cut} }, more...)
			time.Sleep(time.Hour)
			close(cut)
			at := time.Now()
			err := stream.RecvMsg(&emptypb.Empty{})
			got, want, took := SilenceBefore(err), roost.SilentAfter, time.Since(at)
			if err == nil || got != want || took > want || took < want-nodePingInterval {
				t.Errorf("%v after %v: silent for %v, want %v", err, took, got, want)
			}
		})
	}
	for _, err := range []error{nil, io.EOF, net.ErrClosed} {
		if got := SilenceBefore(err); got != 0 {
			t.Errorf("%v: silent for %v", err, got)
		}
	}
}

// busyConn is a connection to a machine that is too busy to send between two times.
type busyConn struct {
	net.Conn
	from, until time.Time
}

func (c busyConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if now := time.Now(); !now.Before(c.from) && now.Before(c.until) {
		time.Sleep(c.until.Sub(now))
	}
	return n, err
}

// TestBusyMachine checks that a session outlasts a machine that is busy for eleven
// seconds, whenever these begin. Names last as long: a machine renews them after four.
func TestBusyMachine(t *testing.T) {
	const busy = roost.SilentAfter - machinePingInterval - 100*time.Millisecond
	for begin := range 40 {
		synctest.Test(t, func(t *testing.T) {
			from := time.Now().Add(time.Minute + time.Duration(begin)*500*time.Millisecond)
			stream := openIdleStream(t, func(c net.Conn) net.Conn { return busyConn{c, from, from.Add(busy)} },
				WithMachinePings())
			broken := make(chan error, 1)
			go func() { broken <- stream.RecvMsg(&emptypb.Empty{}) }()
			select {
			case err := <-broken:
				t.Errorf("busy from %v: %v", from, err)
			case <-time.After(2 * time.Minute):
			}
		})
	}
}
