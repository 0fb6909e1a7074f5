package pki

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/auth"
	"github.com/roost-batch/roost/internal/config"
	"github.com/roost-batch/roost/internal/rpc"
)

// Load reads a node's identity. Nil files give a nil identity, which speaks over unix sockets only. A certificate that the other nodes
// would refuse is an error already here.
func Load(files *config.TLS) (*rpc.Identity, error) {
	if files == nil {
		return nil, nil
	}
	text, err := os.ReadFile(files.CA)
	if err != nil {
		return nil, fmt.Errorf("authority: %w: %w", roost.NoInput, err)
	}
	authorities := x509.NewCertPool()
	if !authorities.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("authority %s: %w: there is no certificate in it", files.CA, roost.BadConfig)
	}
	pair, err := loadPair(files.Certificate, files.Key)
	if err != nil {
		return nil, err
	}
	if err := verify(pair.Leaf, authorities); err != nil {
		return nil, fmt.Errorf("certificate %s: %w: %w", files.Certificate, roost.BadConfig, err)
	}
	id := &rpc.Identity{Name: pair.Leaf.Subject.CommonName, TLS: func() *tls.Config { return transport(pair, authorities) }}
	for _, unit := range pair.Leaf.Subject.OrganizationalUnit {
		id.Roles = append(id.Roles, auth.Role(unit))
	}
	return id, nil
}

// transport is the configuration of either side. The names of hosts are not looked at, so the standard check, which wants one, is
// replaced by verify; it runs in every handshake of both sides.
func transport(pair tls.Certificate, authorities *x509.CertPool) *tls.Config {
	return &tls.Config{
		MinVersion:             tls.VersionTLS13,
		Certificates:           []tls.Certificate{pair},
		NextProtos:             []string{"h2"},
		SessionTicketsDisabled: true,
		ClientAuth:             tls.RequireAnyClientCert,
		InsecureSkipVerify:     true,
		VerifyConnection: func(cs tls.ConnectionState) error {
			if len(cs.PeerCertificates) == 0 {
				return fmt.Errorf("peer: %w: no certificate", roost.Unauthenticated)
			}
			if err := verify(cs.PeerCertificates[0], authorities); err != nil {
				return fmt.Errorf("peer %q: %w: %w", cs.PeerCertificates[0].Subject.CommonName, roost.Unauthenticated, err)
			}
			return nil
		},
	}
}

// verify says in words that help why a node's certificate does not hold.
func verify(leaf *x509.Certificate, authorities *x509.CertPool) error {
	now := time.Now()
	if now.After(leaf.NotAfter) {
		return fmt.Errorf("the certificate expired on %s: issue a new one", leaf.NotAfter.Format(time.DateOnly))
	}
	if now.Before(leaf.NotBefore) {
		return fmt.Errorf("the certificate holds from %s on: is this node's clock right?", leaf.NotBefore.Format(time.RFC3339))
	}
	_, err := leaf.Verify(x509.VerifyOptions{
		Roots: authorities, CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	})
	var foreign x509.UnknownAuthorityError
	if errors.As(err, &foreign) {
		return errors.New("the certificate was signed by another pool's authority")
	}
	if err == nil && leaf.IsCA {
		return errors.New("the certificate is an authority's and not a node's")
	}
	return err
}
