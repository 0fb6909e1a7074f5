package pki

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/config"
	"github.com/roost-batch/roost/internal/identity/peer"
	"github.com/roost-batch/roost/internal/rpc"
)

// Load loads a node's identity. Nil files give a nil identity, which can only use unix
// sockets. A certificate that the other nodes would refuse is an error already here.
// Later changes of the files take effect at the next handshake, without a restart.
func Load(files *config.TLSFiles) (*rpc.Identity, error) {
	if files == nil {
		return nil, nil
	}
	f := &certReloader{files: *files}
	f.stamps = f.stampFiles()
	if err := f.loadCert(); err != nil {
		return nil, err
	}
	f.loadRevocations()
	leaf := f.pair.Leaf
	return &rpc.Identity{Name: leaf.Subject.CommonName, Roles: certRoles(leaf), TLS: f.tlsConfig, Refresh: f.refresh,
		CheckValid: f.checkPeer, IsRevoked: f.isRevoked}, nil
}

func certRoles(leaf *x509.Certificate) (all []peer.Role) {
	for _, unit := range leaf.Subject.OrganizationalUnit {
		all = append(all, peer.Role(unit))
	}
	return all
}

// tlsConfig returns the TLS configuration of either side, from the present contents of
// the files. Host names do not matter, so the standard verification, which needs one, is
// replaced by checkCert; it runs in every handshake on both sides.
func (f *certReloader) tlsConfig() *tls.Config {
	f.refresh()
	f.mu.Lock()
	defer f.mu.Unlock()
	return &tls.Config{
		MinVersion:             tls.VersionTLS13,
		Certificates:           []tls.Certificate{f.pair},
		NextProtos:             []string{"h2"},
		SessionTicketsDisabled: true,
		ClientAuth:             tls.RequireAnyClientCert,
		InsecureSkipVerify:     true,
		VerifyConnection: func(cs tls.ConnectionState) error {
			if len(cs.PeerCertificates) == 0 {
				return fmt.Errorf("peer: %w: no certificate", roost.Unauthenticated)
			}
			leaf := cs.PeerCertificates[0]
			if err := f.checkCert(leaf); err != nil {
				return fmt.Errorf("peer %q: %w: %w", leaf.Subject.CommonName, roost.Unauthenticated, err)
			}
			return nil
		},
	}
}

// errForeign is the error for a certificate that the pool's authority has not signed.
var errForeign = errors.New("the certificate was signed by another pool's authority")

// verifyCert returns why a node's certificate is not valid, with an explanation.
func verifyCert(leaf *x509.Certificate, authorities *x509.CertPool) error {
	now := time.Now()
	if err := checkValidity(leaf, now); err != nil {
		return err
	}
	_, err := leaf.Verify(x509.VerifyOptions{
		Roots: authorities, CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	})
	var foreign x509.UnknownAuthorityError
	if errors.As(err, &foreign) {
		return errForeign
	}
	if err == nil && leaf.IsCA {
		return errors.New("the certificate is an authority's and not a node's")
	}
	return err
}

// checkValidity returns why a certificate is not valid at a time.
func checkValidity(leaf *x509.Certificate, now time.Time) error {
	if now.After(leaf.NotAfter) {
		return fmt.Errorf("the certificate expired on %s: issue a new one", leaf.NotAfter.Format(time.DateOnly))
	}
	if now.Before(leaf.NotBefore) {
		return fmt.Errorf("the certificate is valid from %s on: is this node's clock right?",
			leaf.NotBefore.Format(time.RFC3339))
	}
	return nil
}
