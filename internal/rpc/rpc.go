package rpc

import (
	"context"
	"fmt"
	"net"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/keepalive"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/auth"
)

// Bounds on what one connection may ask for.
const (
	handshakeTimeout = 5 * time.Second
	maxMessage       = 64 << 20
	maxHeaders       = 16 << 10
	maxStreams       = 1024
)

// NewServer returns a server that authenticates every connection and lets each peer call only what table allows it.
func NewServer(id *Identity, table auth.Table, more ...grpc.ServerOption) *grpc.Server {
	refused := new(told)
	return grpc.NewServer(append([]grpc.ServerOption{
		grpc.Creds(transport{id: id, refused: refused}),
		grpc.MaxRecvMsgSize(maxMessage),
		grpc.MaxHeaderListSize(maxHeaders),
		grpc.MaxConcurrentStreams(maxStreams),
		grpc.ConnectionTimeout(handshakeTimeout),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: 20 * time.Second, Timeout: 10 * time.Second}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: 5 * time.Second, PermitWithoutStream: true}),
		grpc.ChainUnaryInterceptor(unaryGuard(table, refused)),
		grpc.ChainStreamInterceptor(streamGuard(table, refused)),
	}, more...)...)
}

func unaryGuard(table auth.Table, refused *told) grpc.UnaryServerInterceptor {
	return func(ctx context.Context, req any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
		if err := authorize(ctx, table, info.FullMethod, refused); err != nil {
			return nil, Status(err)
		}
		reply, err := handle(ctx, req)
		return reply, Status(err)
	}
}

func streamGuard(table auth.Table, refused *told) grpc.StreamServerInterceptor {
	return func(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handle grpc.StreamHandler) error {
		if err := authorize(stream.Context(), table, info.FullMethod, refused); err != nil {
			return Status(err)
		}
		return Status(handle(srv, stream))
	}
}

func authorize(ctx context.Context, table auth.Table, method string, refused *told) error {
	p, ok := auth.FromContext(ctx)
	if !ok {
		return fmt.Errorf("%s: %w", method, roost.Unauthenticated)
	}
	if !table.Allows(p, method) {
		refused.tell("refused a call of "+method, p.String(), "roles", p.Certified)
		return fmt.Errorf("%s: %w", method, roost.PermissionDenied)
	}
	return nil
}

// Dial makes a connection to a daemon of that role. It does not wait for the daemon to be there: calls do, if they are asked to.
func Dial(addr string, id *Identity, role auth.Role) (*grpc.ClientConn, error) {
	network, target, err := SplitAddress(addr)
	if err != nil {
		return nil, err
	}
	return dial(target, id, role, func(ctx context.Context, target string) (net.Conn, error) {
		if network == "unix" {
			return dialUnix(ctx, target)
		}
		var d net.Dialer
		return d.DialContext(ctx, network, target)
	})
}

func dial(target string, id *Identity, role auth.Role, open func(ctx context.Context, target string) (net.Conn, error)) (*grpc.ClientConn, error) {
	return grpc.NewClient("passthrough:///"+target,
		grpc.WithTransportCredentials(transport{id: id, want: role}),
		grpc.WithContextDialer(open),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessage)),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: 20 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: 2 * time.Second},
			MinConnectTimeout: handshakeTimeout,
		}),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: 20 * time.Second, Timeout: 10 * time.Second}),
		grpc.WithUserAgent("roost"),
		grpc.WithAuthority("roost"),
	)
}
