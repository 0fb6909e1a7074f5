package rpc

import (
	"context"
	"io/fs"
	"net"

	"google.golang.org/grpc"

	"github.com/roost-batch/roost/internal/identity/peer"
)

// loginSocketConn hides that a connection is one of a unix socket. So both ends identify
// themselves by TLS, and not by the kernel's credentials.
type loginSocketConn struct{ net.Conn }

// loginSocketListener accepts such connections.
type loginSocketListener struct{ net.Listener }

func (l loginSocketListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return loginSocketConn{conn}, nil
}

// ListenLogins listens on a unix socket whose clients show a login, as those of a network
// address do. A process of one account can then ask for several users, each with their
// own key, and gets no rights from its own account.
func ListenLogins(addr string, mode fs.FileMode) (net.Listener, error) {
	l, err := Listen(addr, mode)
	if err != nil {
		return nil, err
	}
	return loginSocketListener{l}, nil
}

// DialLogins connects to a socket of ListenLogins. The identity has to be pinned to the
// authority of the schedd.
func DialLogins(addr string, id *Identity, more ...grpc.DialOption) (*grpc.ClientConn, error) {
	_, path, err := SplitAddress(addr)
	if err != nil {
		return nil, err
	}
	to := transportCredentials{id: id, wantRole: peer.Schedd, refusals: new(logLimiter)}
	return dial(path, to, func(ctx context.Context, path string) (net.Conn, error) {
		conn, err := dialUnix(ctx, path)
		if err != nil {
			return nil, err
		}
		return loginSocketConn{conn}, nil
	}, more...)
}
