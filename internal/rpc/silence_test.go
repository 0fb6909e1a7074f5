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

// TestSilenceBefore checks for how long a server was silent whose machine is cut off, and
// one that ends the connection.
func TestSilenceBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, cut := bufconn.Listen(1<<16), make(chan struct{})
		server := grpc.NewServer(grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: minPingInterval}),
			grpc.UnknownServiceHandler(func(_ any, s grpc.ServerStream) error {
				<-s.Context().Done()
				return nil
			}))
		go server.Serve(l)
		defer server.Stop()
		conn, err := grpc.NewClient("passthrough:///server", grpc.WithTransportCredentials(insecure.NewCredentials()),
			grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: pingInterval, Timeout: pingTimeout}),
			grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
				c, err := l.DialContext(ctx)
				return cutConn{c, cut}, err
			}))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		stream, err := conn.NewStream(t.Context(), &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}, "/a/b")
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		close(cut)
		at := time.Now()
		err = stream.RecvMsg(&emptypb.Empty{})
		got, want, took := SilenceBefore(err), pingInterval+pingTimeout, time.Since(at)
		if err == nil || got != want || took > want {
			t.Errorf("%v after %v: silent for %v, want %v", err, took, got, want)
		}
	})
	for _, err := range []error{nil, io.EOF, net.ErrClosed} {
		if got := SilenceBefore(err); got != 0 {
			t.Errorf("%v: silent for %v", err, got)
		}
	}
}
