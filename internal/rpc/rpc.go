package rpc

import (
	"context"
	"net"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/keepalive"

	"github.com/roost-batch/roost/internal/identity/peer"
)

// NewServer returns a server that authenticates every connection and allows each peer
// only what table allows. Peers may send messages of at most 4 MiB, unless more says
// otherwise.
func NewServer(id *Identity, table peer.AccessTable, more ...grpc.ServerOption) *Server {
	refused := new(logLimiter)
	calls := newCallLimiter(table, refused)
	return &Server{grpc.NewServer(append([]grpc.ServerOption{
		grpc.Creds(transportCredentials{id: id, refusals: refused, conns: newConnLimiter()}),
		grpc.ForceServerCodecV2(newCodec(refused)),
		grpc.MaxRecvMsgSize(ordinaryMessageSize),
		grpc.MaxHeaderListSize(maxHeaders),
		grpc.MaxConcurrentStreams(maxStreams),
		grpc.StaticStreamWindowSize(streamWindow),
		grpc.StaticConnWindowSize(streamWindow),
		grpc.ReadBufferSize(serverReadBuffer),
		grpc.ConnectionTimeout(handshakeTimeout),
		grpc.KeepaliveParams(keepalive.ServerParameters{MaxConnectionIdle: maxIdle, Time: pingInterval,
			Timeout: pingTimeout}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: minPingInterval,
			PermitWithoutStream: true}),
		grpc.InTapHandle(calls.beginCall),
		grpc.ChainStreamInterceptor(calls.handleStream),
	}, more...)...)}
}

// Dial connects to a daemon that is verified by its role alone (see CallRules). It does
// not wait for the daemon: calls do, if they request it.
func Dial(addr string, id *Identity, role peer.Role) (*grpc.ClientConn, error) {
	return DialNode(addr, id, role, "")
}

// DialNode is Dial to the daemon of a node. Over the network its certificate must have
// the node's name.
func DialNode(addr string, id *Identity, role peer.Role, node string) (*grpc.ClientConn, error) {
	network, target, err := SplitAddress(addr)
	if err == nil {
		err = checkDialable(network, addr, id, role, node)
	}
	if err != nil {
		return nil, err
	}
	credentials := transportCredentials{id: id, wantRole: role, wantNode: node, refusals: new(logLimiter)}
	pings := keepalive.ClientParameters{Time: pingInterval, Timeout: pingTimeout}
	if role == peer.Startd {
		pings = keepalive.ClientParameters{Time: nodePingInterval, Timeout: nodePingTimeout}
	}
	if network == "unix" { // gRPC holds no buffer while it waits for one
		return dial(target, credentials, dialUnix, grpc.WithKeepaliveParams(pings))
	}
	if network == "relay" {
		return dial(target, credentials, dialRelayed(id, node), grpc.WithReadBufferSize(tlsReadBuffer),
			grpc.WithKeepaliveParams(pings))
	}
	return dial(target, credentials, func(ctx context.Context, target string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, network, target)
	}, grpc.WithReadBufferSize(tlsReadBuffer), grpc.WithKeepaliveParams(pings))
}

// DialTransport is Dial with connections that open makes: from another network namespace,
// or as another user.
func DialTransport(target string, id *Identity, role peer.Role,
	open func(ctx context.Context, target string) (net.Conn, error)) (*grpc.ClientConn, error) {
	return dial(target, transportCredentials{id: id, wantRole: role, refusals: new(logLimiter)}, open)
}

func dial(target string, to transportCredentials,
	open func(ctx context.Context, target string) (net.Conn, error),
	more ...grpc.DialOption) (*grpc.ClientConn, error) {
	return grpc.NewClient("passthrough:///"+target, append([]grpc.DialOption{
		grpc.WithTransportCredentials(to),
		grpc.WithContextDialer(open),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessageSize)),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff: backoff.Config{BaseDelay: 20 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2,
				MaxDelay: 2 * time.Second},
			MinConnectTimeout: handshakeTimeout,
		}),
		grpc.WithStaticStreamWindowSize(clientWindow),
		grpc.WithStaticConnWindowSize(clientWindow),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: pingInterval, Timeout: pingTimeout}),
		grpc.WithUserAgent("roost"),
		grpc.WithAuthority("roost"),
	}, more...)...)
}
