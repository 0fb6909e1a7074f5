package proof

import (
	"crypto/ed25519"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"

	"github.com/roost-batch/roost"
)

// Challenge returns a ticket that a user's program signs with the key of a login.
func (v *Verifier) Challenge() ([]byte, error) {
	return v.tickets.seal(ticket{ID: randomText(), Purpose: forStatement, Made: v.now()})
}

// Statement returns what the key of a login signs. The web daemon of that host gets a
// login of its own for it, and no other host can use it.
func Statement(host string, challenge []byte) []byte {
	return []byte("roost web login 1\n" + strings.ToLower(host) + "\n" + base64.StdEncoding.EncodeToString(challenge))
}

// SignedStatement is a statement with its signature and the certificate of the login.
type SignedStatement struct {
	Certificate *x509.Certificate
	Challenge   []byte
	Host        string
	Signature   []byte
}

// CheckStatement checks a statement. Whether the certificate is valid now, the caller
// checks.
func (v *Verifier) CheckStatement(s SignedStatement) error {
	if _, err := v.tickets.spend(s.Challenge, forStatement, v.now()); err != nil {
		return err
	}
	hosts := v.web.HostNames()
	if !slices.Contains(hosts, strings.ToLower(s.Host)) {
		return fmt.Errorf("login: %w: the statement is for the host %.100q, and this is %s: another server may have "+
			"passed it on", roost.PermissionDenied, s.Host, strings.Join(hosts, ", "))
	}
	key, ok := s.Certificate.PublicKey.(ed25519.PublicKey)
	if !ok || !ed25519.Verify(key, Statement(s.Host, s.Challenge), s.Signature) {
		return fmt.Errorf("login: %w: the signature is not of that login's key, or of another statement",
			roost.PermissionDenied)
	}
	return nil
}
