package rpc

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc/credentials"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/auth"
)

// Identity is a node's key and certificate, and the authorities it believes. A nil Identity speaks over unix sockets only.
type Identity struct {
	Name  string
	Roles []auth.Role
	// TLS returns a configuration for either side of a connection, with the node's certificate and the pool's authorities, TLS 1.3 and
	// client certificates required. Each handshake asks for one.
	TLS func() *tls.Config
	// Refresh looks whether the node's files have changed, and Holds says why a peer's certificate, which held when the peer came, does not hold any
	// more: it ended or was revoked. Nil: nothing changes.
	Refresh func()
	Holds   func(leaf *x509.Certificate) error
	// Revoked reports whether the certificate of that number, as auth.Peer has it, was revoked. Nil: none is.
	Revoked func(serial string) bool

	// Guest, where there is one, says who has come to be served as something else than a node, and whether that is so. TLS has looked at what certificate
	// there is; a peer without one may be an auth.Stranger.
	Guest func(tls.ConnectionState) (auth.Peer, bool)

	// Pinned says that TLS looks at who the other end is by itself: the authority that it believes signs for nobody else.
	Pinned bool

	live    live
	passers passers
}

// transport authenticates both kinds of connection.
type transport struct {
	id   *Identity
	want auth.Role // dialling: the role that the other end must have; "" for any
	node string    // dialling: whose certificate it must have; "" for anybody's who has the role

	refused *told
	gate    *gate // serving
}

func (t transport) ClientHandshake(ctx context.Context, authority string, raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	if u, ok := raw.(*net.UnixConn); ok {
		p, err := kernelPeer(u)
		return raw, p, err
	}
	if t.id == nil {
		return nil, nil, fmt.Errorf("%s: %w: this node has no certificate (join the pool first)", raw.RemoteAddr(), roost.Unauthenticated)
	}
	conn, p, err := t.finish(ctx, tls.Client(raw, t.id.TLS()))
	return conn, p, err
}

func (t transport) ServerHandshake(raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	conn, p, err := t.receive(raw)
	if err == nil {
		var in net.Conn
		if in, err = t.gate.admit(conn, p); err == nil {
			return in, p, nil
		}
		conn.Close()
	}
	from := host(raw.RemoteAddr())
	if p.Local {
		from = p.String()
	} else if p.Name != "" {
		from += " as " + p.Name[:min(len(p.Name), 64)]
	}
	t.refused.tell("refused a connection", from, "why", err)
	return nil, nil, err
}

// receive finds out who is at the other end.
func (t transport) receive(raw net.Conn) (net.Conn, auth.Peer, error) {
	if u, ok := raw.(*net.UnixConn); ok {
		p, err := kernelPeer(u)
		return raw, p, err
	}
	if t.id == nil {
		return nil, auth.Peer{}, fmt.Errorf("%s: %w: this daemon serves unix sockets only", raw.RemoteAddr(), roost.Unauthenticated)
	}
	s, victim := t.gate.enter(raw)
	defer t.gate.leave(s)
	if victim != nil {
		victim.conn.Close()
		t.refused.tell("hung up on a peer that did not say who it is: too many at once", victim.addr.String())
	}
	ctx, cancel := context.WithTimeout(context.Background(), handshakeTimeout)
	defer cancel()
	server := t
	server.want, server.node = "", ""
	return server.finish(ctx, tls.Server(raw, t.id.TLS()))
}

func (t transport) finish(ctx context.Context, conn *tls.Conn) (net.Conn, auth.Peer, error) {
	if err := conn.HandshakeContext(ctx); err != nil {
		conn.Close()
		var p auth.Peer
		if shown := conn.ConnectionState().PeerCertificates; len(shown) > 0 {
			p.Name = shown[0].Subject.CommonName // says the peer, and nobody else
		}
		return nil, p, err
	}
	chain := conn.ConnectionState().PeerCertificates
	if t.want == "" && t.id.Guest != nil {
		if p, ok := t.id.Guest(conn.ConnectionState()); ok && len(chain) > 0 {
			return t.id.watch(conn, chain[0]), p, nil
		} else if ok && isStranger(p) {
			return t.id.passers.admit(conn), p, nil
		}
	}
	if len(chain) == 0 {
		conn.Close()
		return nil, auth.Peer{}, fmt.Errorf("%s: %w: no certificate", conn.RemoteAddr(), roost.Unauthenticated)
	}
	p := auth.Peer{Name: chain[0].Subject.CommonName, Serial: chain[0].SerialNumber.Text(16), SecurityLevel: credentials.PrivacyAndIntegrity}
	for _, unit := range chain[0].Subject.OrganizationalUnit {
		p.Certified = append(p.Certified, auth.Role(unit))
	}
	if err := t.meant(p); err != nil {
		conn.Close()
		t.refused.tell("called another than was wanted", p.Name, "address", conn.RemoteAddr().String(), "why", err)
		return nil, p, fmt.Errorf("%s: %w", conn.RemoteAddr(), err)
	}
	return t.id.watch(conn, chain[0]), p, nil
}

// meant says why the other end, whose certificate is of the pool, is not who was wanted.
func (t transport) meant(p auth.Peer) error {
	switch {
	case t.want != "" && !p.Plays(t.want):
		return fmt.Errorf("%w: %s is not a %s", roost.Unauthenticated, p.Name, t.want)
	case t.node != "" && p.Name != t.node:
		return fmt.Errorf("%w: %s answers there, and %s was wanted: has it taken that address?", roost.Unauthenticated, p.Name, t.node)
	}
	return nil
}

func (t transport) Info() credentials.ProtocolInfo {
	return credentials.ProtocolInfo{SecurityProtocol: "roost"}
}

func (t transport) Clone() credentials.TransportCredentials { return t }

func (t transport) OverrideServerName(string) error { return nil }

// kernelPeer asks the kernel who opened the other end of a unix socket.
func kernelPeer(conn *net.UnixConn) (auth.Peer, error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return auth.Peer{}, err
	}
	var cred *unix.Ucred
	var cerr error
	if err := raw.Control(func(fd uintptr) {
		cred, cerr = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	}); err != nil {
		return auth.Peer{}, err
	}
	if cerr != nil {
		return auth.Peer{}, fmt.Errorf("peer credentials: %w", cerr)
	}
	return auth.Peer{Local: true, UID: cred.Uid, GID: cred.Gid, PID: cred.Pid, SecurityLevel: credentials.PrivacyAndIntegrity}, nil
}
