package rpc

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/url"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc/credentials"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/identity/peer"
)

// Identity is a node's key and certificate, and its trusted authorities. A nil Identity
// can only use unix sockets.
type Identity struct {
	Name  string
	Roles []peer.Role
	// CellQueue is the name of the cell's queue, which is that of the pool. Peers with
	// that role may speak for it.
	CellQueue string
	// TLS returns a configuration for either side of a connection. It has the node's
	// certificate and the pool's authorities, and requires TLS 1.3 and client
	// certificates. Each handshake calls it.
	TLS func() *tls.Config
	// Refresh reads changed files of the node. CheckValid returns why a peer's
	// certificate that was valid at the handshake is no longer valid: it expired or was
	// revoked. Nil: nothing changes.
	Refresh    func()
	CheckValid func(leaf *x509.Certificate) error
	// IsRevoked reports whether a certificate is revoked, by its serial number as in
	// auth.Peer. Nil: none is.
	IsRevoked func(serial string) bool

	// IdentifyUser, if set, returns the peer of a connection that is not to be served as
	// a node, and whether it is such a connection. TLS has verified the certificate, if
	// any; a peer without one may be an auth.Anonymous.
	IdentifyUser func(tls.ConnectionState) (peer.Peer, bool)

	// DialRelay makes a connection to a node through the relays of a target, as
	// relay.Dialer does. Nil: nodes behind relays cannot be reached.
	DialRelay func(ctx context.Context, target, node string) (net.Conn, error)

	// PinnedAuthority means that TLS alone verifies the other end, because the trusted
	// authority signs for no other server.
	PinnedAuthority bool

	revocations revocationWatcher
	anonymous   anonymousConns
}

// transportCredentials authenticates both kinds of connection.
type transportCredentials struct {
	id       *Identity
	wantRole peer.Role // dialling: the role that the other end must have; "" for any
	wantNode string    // dialling: whose certificate it must have; "" for anybody's who has the role

	refusals *logLimiter
	conns    *connLimiter // server
}

func (t transportCredentials) ClientHandshake(ctx context.Context, authority string,
	raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	if u, ok := raw.(*net.UnixConn); ok {
		p, err := peerCredentials(u)
		return raw, p, err
	}
	if t.id == nil {
		return nil, nil, fmt.Errorf("%s: %w: this node has no certificate (join the pool first)", raw.RemoteAddr(),
			roost.Unauthenticated)
	}
	conn, p, err := t.handshake(ctx, tls.Client(raw, t.id.TLS()))
	return conn, p, err
}

func (t transportCredentials) ServerHandshake(raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	conn, p, err := t.acceptConn(raw)
	if err == nil {
		var in net.Conn
		if in, err = t.conns.countConn(conn, p); err == nil {
			return in, p, nil
		}
		conn.Close()
	}
	from := hostOf(raw.RemoteAddr())
	if p.Local {
		from = p.String()
	} else if p.Name != "" {
		from += " as " + p.Name[:min(len(p.Name), 64)]
	}
	t.refusals.log("refused a connection", from, "why", err)
	return nil, nil, err
}

// acceptConn identifies the other end of an accepted connection.
func (t transportCredentials) acceptConn(raw net.Conn) (net.Conn, peer.Peer, error) {
	if u, ok := raw.(*net.UnixConn); ok {
		p, err := peerCredentials(u)
		return raw, p, err
	}
	if t.id == nil {
		return nil, peer.Peer{}, fmt.Errorf("%s: %w: this daemon serves unix sockets only", raw.RemoteAddr(),
			roost.Unauthenticated)
	}
	s, victim := t.conns.handshakes.Add(raw)
	defer s.StopCounting()
	if victim != nil {
		victim.Conn.Close()
		t.refusals.log("closed a connection that had not identified itself: too many at once", victim.Addr.String())
	}
	ctx, cancel := context.WithTimeout(context.Background(), handshakeTimeout)
	defer cancel()
	server := t
	server.wantRole, server.wantNode = "", ""
	return server.handshake(ctx, tls.Server(raw, t.id.TLS()))
}

func (t transportCredentials) handshake(ctx context.Context, conn *tls.Conn) (net.Conn, peer.Peer, error) {
	if err := conn.HandshakeContext(ctx); err != nil {
		conn.Close()
		var p peer.Peer
		if shown := conn.ConnectionState().PeerCertificates; len(shown) > 0 {
			p.Name = shown[0].Subject.CommonName // claimed by the peer and not verified
		}
		return nil, p, err
	}
	chain := conn.ConnectionState().PeerCertificates
	if t.wantRole == "" && t.id.IdentifyUser != nil {
		if p, ok := t.id.IdentifyUser(conn.ConnectionState()); ok && len(chain) > 0 {
			return t.id.watchConn(conn, chain[0]), p, nil
		} else if ok && isAnonymous(p) {
			return t.id.anonymous.add(conn), p, nil
		}
	}
	if len(chain) == 0 {
		conn.Close()
		return nil, peer.Peer{}, fmt.Errorf("%s: %w: no certificate", conn.RemoteAddr(), roost.Unauthenticated)
	}
	p := t.id.peerOf(chain[0])
	p.SecurityLevel = credentials.PrivacyAndIntegrity
	if err := t.checkWanted(p); err != nil {
		conn.Close()
		t.refusals.log("reached another daemon than the one called",
			p.Name, "address", conn.RemoteAddr().String(), "why", err)
		return nil, p, fmt.Errorf("%s: %w", conn.RemoteAddr(), err)
	}
	return t.id.watchConn(conn, chain[0]), p, nil
}

// peerOf returns the peer that a verified certificate names.
func (id *Identity) peerOf(leaf *x509.Certificate) peer.Peer {
	p := peer.Peer{Name: leaf.Subject.CommonName, Serial: leaf.SerialNumber.Text(16), Owner: PilotOwner(leaf),
		GuestOf: GuestPool(leaf)}
	for _, unit := range leaf.Subject.OrganizationalUnit {
		p.Certified = append(p.Certified, peer.Role(unit))
	}
	if p.Plays(peer.CellQueue) {
		p.CellQueue = id.CellQueue
	}
	return p
}

// OwnerScheme is the scheme of the URI in a pilot's certificate that says whose tasks it
// runs, "roost-owner:user@schedd".
const OwnerScheme = "roost-owner"

// GuestScheme is the scheme of the URI in a guest's certificate that says of which pool
// it is, "roost-guest:pool".
const GuestScheme = "roost-guest"

// PilotOwner returns the owner of the pilot that a certificate names, "" where it is of
// no pilot.
func PilotOwner(leaf *x509.Certificate) string { return uriOf(leaf, OwnerScheme) }

// GuestPool returns the pool of the guest that a certificate names, "" where it is of no
// guest.
func GuestPool(leaf *x509.Certificate) string { return uriOf(leaf, GuestScheme) }

// uriOf returns the text of the first URI of a scheme.
func uriOf(leaf *x509.Certificate, scheme string) string {
	for _, uri := range leaf.URIs {
		if text, err := url.PathUnescape(uri.Opaque); uri.Scheme == scheme && err == nil {
			return text
		}
	}
	return ""
}

// checkWanted returns why a server with a certificate of the pool is not the wanted one,
// or nil.
func (t transportCredentials) checkWanted(p peer.Peer) error {
	switch {
	case t.wantRole != "" && !p.Plays(t.wantRole) && !(t.wantRole == peer.Startd && p.Plays(peer.Pilot)):
		return fmt.Errorf("%w: %s is not a %s", roost.Unauthenticated, p.Name, t.wantRole)
	case t.wantNode != "" && !p.SpeaksFor(t.wantNode):
		return fmt.Errorf("%w: %s answers there, and %s was wanted: has it taken that address?", roost.Unauthenticated,
			p.Name, t.wantNode)
	}
	return nil
}

func (t transportCredentials) Info() credentials.ProtocolInfo {
	return credentials.ProtocolInfo{SecurityProtocol: "roost"}
}

func (t transportCredentials) Clone() credentials.TransportCredentials { return t }

func (t transportCredentials) OverrideServerName(string) error { return nil }

// peerCredentials returns the kernel's credentials of the other end of a unix socket.
func peerCredentials(conn *net.UnixConn) (peer.Peer, error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return peer.Peer{}, err
	}
	var cred *unix.Ucred
	var cerr error
	if err := raw.Control(func(fd uintptr) {
		cred, cerr = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	}); err != nil {
		return peer.Peer{}, err
	}
	if cerr != nil {
		return peer.Peer{}, fmt.Errorf("peer credentials: %w", cerr)
	}
	return peer.Peer{Local: true, UID: cred.Uid, GID: cred.Gid, PID: cred.Pid,
		SecurityLevel: credentials.PrivacyAndIntegrity}, nil
}
