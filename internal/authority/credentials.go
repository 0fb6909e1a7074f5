package authority

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
	"github.com/roost-batch/roost/internal/auth"
)

const handshakeTimeout = 5 * time.Second

// doorway is the authority's side of TLS. It has a certificate of its own that says so, and asks for one without insisting: who shows none is a stranger, who
// shows one that does not hold is sent away.
type doorway struct {
	store *store
	mu    *sync.Mutex
	own   *tls.Certificate // made anew when half of its life is over; the key is never on a disk
	log   func(from net.Addr, err error)
}

func newDoorway(s *store, log func(net.Addr, error)) *doorway {
	return &doorway{store: s, mu: new(sync.Mutex), log: log}
}

// certificate is the authority's own: with its role, and followed by the certificate that signed it, by whose digest strangers know it.
func (d *doorway) certificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.own != nil && time.Until(d.own.Leaf.NotAfter) > Validity/2 {
		return d.own, nil
	}
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, err
	}
	leaf, err := d.store.ca.Certify(public, d.store.self, []auth.Role{auth.Authority}, Validity)
	if err != nil {
		return nil, err
	}
	d.own = &tls.Certificate{Certificate: [][]byte{leaf.Raw, d.store.ca.Certificate().Raw}, PrivateKey: private, Leaf: leaf}
	return d.own, nil
}

func (d *doorway) config() *tls.Config {
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
			why, err := d.store.revoked(leaf.SerialNumber)
			if err == nil && why != nil {
				err = errRevoked(why.Name, why)
			}
			return err
		},
	}
}

// ServerHandshake implements credentials.TransportCredentials.
func (d *doorway) ServerHandshake(raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	ctx, cancel := context.WithTimeout(context.Background(), handshakeTimeout)
	defer cancel()
	conn := tls.Server(raw, d.config())
	if err := conn.HandshakeContext(ctx); err != nil {
		conn.Close()
		d.log(raw.RemoteAddr(), err)
		return nil, nil, err
	}
	p := auth.Peer{SecurityLevel: credentials.PrivacyAndIntegrity, Certified: []auth.Role{auth.Stranger}}
	if shown := conn.ConnectionState().PeerCertificates; len(shown) > 0 {
		p.Name, p.Certified, p.Serial = shown[0].Subject.CommonName, rolesOf(shown[0].Subject.OrganizationalUnit), shown[0].SerialNumber.Text(16)
		if c, ok := raw.(*guest); ok {
			c.known()
		}
	}
	return conn, p, nil
}

// ClientHandshake implements credentials.TransportCredentials. The authority calls nobody.
func (d *doorway) ClientHandshake(context.Context, string, net.Conn) (net.Conn, credentials.AuthInfo, error) {
	return nil, nil, errors.New("the authority calls nobody")
}

// Info implements credentials.TransportCredentials.
func (d *doorway) Info() credentials.ProtocolInfo {
	return credentials.ProtocolInfo{SecurityProtocol: "roost"}
}

// Clone implements credentials.TransportCredentials.
func (d *doorway) Clone() credentials.TransportCredentials { return d }

// OverrideServerName implements credentials.TransportCredentials.
func (d *doorway) OverrideServerName(string) error { return nil }
