package pki

import (
	"crypto/ed25519"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/identity/peer"
)

// CertifyUser makes a certificate for a user's key. It is valid only for clients, and
// never identifies a node.
func (a *Authority) CertifyUser(public ed25519.PublicKey, user string,
	validity time.Duration) (*x509.Certificate, error) {
	if user == "" || len(user) > 64 {
		return nil, fmt.Errorf("user %q: %w: a name has 1 to 64 letters", user, roost.Invalid)
	}
	cert, err := signCert(&x509.Certificate{
		Subject:               pkix.Name{CommonName: user, OrganizationalUnit: []string{string(peer.User)}},
		NotBefore:             time.Now().Add(-clockSkew),
		NotAfter:              time.Now().Add(validity),
		KeyUsage:              x509.KeyUsageDigitalSignature,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
		BasicConstraintsValid: true,
	}, a.cert, public, a.key)
	if err != nil {
		return nil, fmt.Errorf("user %s: %w", user, err)
	}
	return cert, nil
}

// CheckUser returns why a user's certificate is not valid now, or nil. It does not check
// revocation.
func (a *Authority) CheckUser(leaf *x509.Certificate) error {
	now := time.Now()
	if now.After(leaf.NotAfter) {
		return fmt.Errorf("the login ended on %s: log in again", leaf.NotAfter.Format(time.DateOnly))
	}
	authorities := x509.NewCertPool()
	authorities.AddCert(a.cert)
	_, err := leaf.Verify(x509.VerifyOptions{Roots: authorities, CurrentTime: now,
		KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
	if err == nil && (leaf.IsCA || len(leaf.Subject.OrganizationalUnit) != 1 ||
		leaf.Subject.OrganizationalUnit[0] != string(peer.User)) {
		err = errors.New("the certificate is not a user's")
	}
	return err
}

// Pair makes a key and a node's certificate for it, followed by the authority's own. It
// is for a daemon that stores neither.
func (a *Authority) Pair(name string, roles []peer.Role, validity time.Duration) (tls.Certificate, error) {
	cert, key, err := a.Issue(name, roles, validity)
	if err != nil {
		return tls.Certificate{}, err
	}
	return tls.X509KeyPair(append(cert, encodeCertificate(a.cert)...), key)
}
