package ca

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"google.golang.org/grpc/credentials"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/identity/peer"
	"github.com/roost-batch/roost/internal/rpc"
)

const handshakeTimeout = 5 * time.Second

// tlsServer is the authority's side of TLS. It shows a certificate with the authority's
// role, and requests one of the client without requiring it: a client without one is
// anonymous, a client with an invalid one is refused.
type tlsServer struct {
	store   *certStore
	mu      *sync.Mutex
	ownCert *tls.Certificate // replaced after half of its validity; the key is never on a disk
	log     func(from net.Addr, err error)
}

func newTLSServer(s *certStore, log func(net.Addr, error)) *tlsServer {
	return &tlsServer{store: s, mu: new(sync.Mutex), log: log}
}

// certificate returns the authority's own certificate, followed by the certificate that
// signed it. Anonymous clients know the latter by its digest.
func (d *tlsServer) certificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.ownCert != nil && time.Until(d.ownCert.Leaf.NotAfter) > CertValidity/2 {
		return d.ownCert, nil
	}
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, err
	}
	leaf, err := d.store.ca.Certify(public, d.store.ownName, []peer.Role{peer.Authority}, CertValidity)
	if err != nil {
		return nil, err
	}
	d.ownCert = &tls.Certificate{Certificate: [][]byte{leaf.Raw, d.store.ca.Certificate().Raw}, PrivateKey: private,
		Leaf: leaf}
	return d.ownCert, nil
}

func (d *tlsServer) tlsConfig() *tls.Config {
	return &tls.Config{
		MinVersion:             tls.VersionTLS13,
		GetCertificate:         d.certificate,
		NextProtos:             []string{"h2"},
		SessionTicketsDisabled: true,
		ClientAuth:             tls.RequestClientCert,
		VerifyConnection: func(cs tls.ConnectionState) error {
			if len(cs.PeerCertificates) == 0 {
				return nil
			}
			leaf := cs.PeerCertificates[0]
			if err := d.store.ca.Check(leaf); err != nil {
				return fmt.Errorf("peer %q: %w: %w", leaf.Subject.CommonName, roost.Unauthenticated, err)
			}
			why, err := d.store.isRevoked(leaf.SerialNumber)
			if err == nil && why != nil {
				err = revokedError(why.Name, why)
			}
			return err
		},
	}
}

// ServerHandshake implements credentials.TransportCredentials.
func (d *tlsServer) ServerHandshake(raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	ctx, cancel := context.WithTimeout(context.Background(), handshakeTimeout)
	defer cancel()
	conn := tls.Server(raw, d.tlsConfig())
	if err := conn.HandshakeContext(ctx); err != nil {
		conn.Close()
		d.log(raw.RemoteAddr(), err)
		return nil, nil, err
	}
	p := peer.Peer{SecurityLevel: credentials.PrivacyAndIntegrity, Certified: []peer.Role{peer.Anonymous}}
	if shown := conn.ConnectionState().PeerCertificates; len(shown) > 0 {
		p.Name, p.Certified, p.Serial = shown[0].Subject.CommonName, rolesOf(shown[0].Subject.OrganizationalUnit),
			shown[0].SerialNumber.Text(16)
		if c, ok := raw.(*rpc.AnonymousConn); ok {
			c.StopCounting()
		}
	}
	return conn, p, nil
}

// ClientHandshake implements credentials.TransportCredentials. The authority makes no
// calls.
func (d *tlsServer) ClientHandshake(context.Context, string, net.Conn) (net.Conn, credentials.AuthInfo, error) {
	return nil, nil, errors.New("the authority makes no calls")
}

// Info implements credentials.TransportCredentials.
func (d *tlsServer) Info() credentials.ProtocolInfo {
	return credentials.ProtocolInfo{SecurityProtocol: "roost"}
}

// Clone implements credentials.TransportCredentials.
func (d *tlsServer) Clone() credentials.TransportCredentials { return d }

// OverrideServerName implements credentials.TransportCredentials.
func (d *tlsServer) OverrideServerName(string) error { return nil }
