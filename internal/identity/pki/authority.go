// Package pki makes and reads the certificates by which the nodes of a pool identify each
// other. A pool has one authority. Each node has a key of its own and a certificate; the
// common name is the node's name and the organizational units are its roles. Host names
// and addresses do not matter: a node is identified by its name and its roles, wherever
// it is.
package pki

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net/url"
	"slices"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/config"
	"github.com/roost-batch/roost/internal/identity/peer"
	"github.com/roost-batch/roost/internal/rpc"
)

// How long certificates are valid by default.
const (
	AuthorityValidity = 10 * 365 * 24 * time.Hour
	NodeValidity      = 365 * 24 * time.Hour
)

// clockSkew is how far the clocks of two nodes may differ while a certificate is new.
const clockSkew = time.Hour

// Authority signs the certificates of one pool.
type Authority struct {
	cert *x509.Certificate
	key  ed25519.PrivateKey
}

// NewAuthority makes an authority for a pool.
func NewAuthority(pool string, validity time.Duration) (*Authority, error) {
	public, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("authority: %w", err)
	}
	template := &x509.Certificate{
		Subject:               pkix.Name{CommonName: pool, Organization: []string{"Roost pool"}},
		NotBefore:             time.Now().Add(-clockSkew),
		NotAfter:              time.Now().Add(validity),
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
		BasicConstraintsValid: true,
		IsCA:                  true,
		MaxPathLenZero:        true,
	}
	cert, err := signCert(template, template, public, key)
	if err != nil {
		return nil, fmt.Errorf("authority: %w", err)
	}
	return &Authority{cert, key}, nil
}

// Issue makes a key and a certificate for a node, in PEM, as Certify does.
func (a *Authority) Issue(name string, roles []peer.Role, validity time.Duration) (cert, key []byte, err error) {
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, nil, fmt.Errorf("node %s: %w", name, err)
	}
	signed, err := a.Certify(public, name, roles, validity)
	if err != nil {
		return nil, nil, err
	}
	key, err = encodeKey(private)
	return encodeCertificate(signed), key, err
}

// Certify makes a certificate for a node and its public key. Roles are those of
// auth.DaemonRoles; without any the node may only call what is open to users.
func (a *Authority) Certify(public ed25519.PublicKey, name string, roles []peer.Role,
	validity time.Duration) (*x509.Certificate, error) {
	if name == "" || len(name) > 64 {
		return nil, fmt.Errorf("node %q: %w: a name has 1 to 64 letters", name, roost.Invalid)
	}
	var units []string
	for _, r := range roles {
		if !slices.Contains(peer.DaemonRoles(), r) {
			return nil, fmt.Errorf("role %q: %w: the roles are %v", r, roost.Invalid, peer.DaemonRoles())
		}
		units = append(units, string(r))
	}
	return a.signNode(public, name, units, nil, validity)
}

// CertifyPilot makes a certificate for a pilot that runs the tasks of one owner.
func (a *Authority) CertifyPilot(public ed25519.PublicKey, name, owner string,
	validity time.Duration) (*x509.Certificate, error) {
	switch {
	case name == "" || len(name) > 64:
		return nil, fmt.Errorf("pilot %q: %w: a name has 1 to 64 letters", name, roost.Invalid)
	case owner == "" || len(owner) > 256:
		return nil, fmt.Errorf("pilot %s: %w: it has no owner", name, roost.Invalid)
	}
	return a.signNode(public, name, []string{string(peer.Pilot)},
		[]*url.URL{{Scheme: rpc.OwnerScheme, Opaque: url.PathEscape(owner)}}, validity)
}

// CertifyGuest makes a certificate for a schedd of another pool.
func (a *Authority) CertifyGuest(public ed25519.PublicKey, name, pool string,
	validity time.Duration) (*x509.Certificate, error) {
	switch {
	case name == "" || len(name) > 64:
		return nil, fmt.Errorf("guest %q: %w: a name has 1 to 64 letters", name, roost.Invalid)
	case pool == "":
		return nil, fmt.Errorf("guest %s: %w: it is of no pool", name, roost.Invalid)
	}
	return a.signNode(public, name, []string{string(peer.Guest)},
		[]*url.URL{{Scheme: rpc.GuestScheme, Opaque: url.PathEscape(pool)}}, validity)
}

// Sign signs a text for a purpose. No signature is valid for another purpose, and none is
// valid as that of a certificate.
func (a *Authority) Sign(purpose string, text []byte) []byte {
	return ed25519.Sign(a.key, append([]byte("roost "+purpose+"\n"), text...))
}

// CheckSignature returns why a text was not signed for a purpose by an authority, or nil.
func CheckSignature(authority *x509.Certificate, purpose string, text, signature []byte) error {
	public, ok := authority.PublicKey.(ed25519.PublicKey)
	if !ok || !ed25519.Verify(public, append([]byte("roost "+purpose+"\n"), text...), signature) {
		return fmt.Errorf("signature: %w: it is not that of the authority of %s", roost.Unauthenticated,
			authority.Subject.CommonName)
	}
	return nil
}

// ParseAuthority reads the certificate of another pool's authority, in DER. It must have
// signed itself and be valid now.
func ParseAuthority(der []byte) (*x509.Certificate, error) {
	cert, err := x509.ParseCertificate(der)
	if err == nil {
		err = cert.CheckSignatureFrom(cert)
	}
	if err == nil {
		err = checkValidity(cert, time.Now())
	}
	_, isEd25519 := publicKeyOf(cert).(ed25519.PublicKey)
	switch {
	case err != nil:
		return nil, fmt.Errorf("certificate of an authority: %w: %w", roost.Invalid, err)
	case !cert.IsCA || !isEd25519 || !config.IsValidName(cert.Subject.CommonName):
		return nil, fmt.Errorf("certificate of an authority: %w: it is that of no authority of a pool", roost.Invalid)
	}
	return cert, nil
}

func publicKeyOf(cert *x509.Certificate) any {
	if cert == nil {
		return nil
	}
	return cert.PublicKey
}

// PinAuthority returns an identity without a certificate that trusts one authority, and
// calls no daemon but the authority itself.
func PinAuthority(authority *x509.Certificate) *rpc.Identity {
	trusted := x509.NewCertPool()
	trusted.AddCert(authority)
	return &rpc.Identity{PinnedAuthority: true, TLS: func() *tls.Config {
		return &tls.Config{
			MinVersion: tls.VersionTLS13, NextProtos: []string{"h2"}, SessionTicketsDisabled: true,
			InsecureSkipVerify: true, // VerifyConnection does: names of hosts do not matter
			VerifyConnection: func(cs tls.ConnectionState) error {
				if len(cs.PeerCertificates) == 0 {
					return fmt.Errorf("authority: %w: no certificate", roost.Unauthenticated)
				}
				if err := verifyCert(cs.PeerCertificates[0], trusted); err != nil {
					return fmt.Errorf("authority of %s: %w: %w", authority.Subject.CommonName,
						roost.Unauthenticated, err)
				}
				return nil
			},
		}
	}}
}

// signNode signs the certificate of a node, a pilot or a guest.
func (a *Authority) signNode(public ed25519.PublicKey, name string, units []string, uris []*url.URL,
	validity time.Duration) (*x509.Certificate, error) {
	signed, err := signCert(&x509.Certificate{
		Subject:               pkix.Name{CommonName: name, OrganizationalUnit: units},
		URIs:                  uris,
		DNSNames:              []string{name}, // for readers of metrics; Roost looks at the subject
		NotBefore:             time.Now().Add(-clockSkew),
		NotAfter:              time.Now().Add(validity),
		KeyUsage:              x509.KeyUsageDigitalSignature,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		BasicConstraintsValid: true,
	}, a.cert, public, a.key)
	if err != nil {
		return nil, fmt.Errorf("node %s: %w", name, err)
	}
	return signed, nil
}

// Certificate returns the authority's own certificate.
func (a *Authority) Certificate() *x509.Certificate { return a.cert }

// Check returns why a node's certificate is not valid now, or nil. It does not check
// revocation.
func (a *Authority) Check(leaf *x509.Certificate) error {
	authorities := x509.NewCertPool()
	authorities.AddCert(a.cert)
	return verifyCert(leaf, authorities)
}

// PEM returns the authority's certificate, which every node has, and its key, which no
// node has.
func (a *Authority) PEM() (cert, key []byte, err error) {
	key, err = encodeKey(a.key)
	return encodeCertificate(a.cert), key, err
}

func signCert(template, parent *x509.Certificate, public ed25519.PublicKey,
	key ed25519.PrivateKey) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, err
	}
	template.SerialNumber = serial
	der, err := x509.CreateCertificate(rand.Reader, template, parent, public, key)
	if err != nil {
		return nil, err
	}
	return x509.ParseCertificate(der)
}

func encodeCertificate(c *x509.Certificate) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Raw})
}

func encodeKey(key ed25519.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), nil
}
