package login

import (
	"crypto/ed25519"
	"crypto/x509"
	"fmt"
	"slices"
	"time"

	"github.com/roost-batch/roost"
)

// Issue makes a login for an account without a token. The caller has checked another
// proof of who asks.
func (k *Store) Issue(who HostAccount, key ed25519.PublicKey, from string, validity time.Duration,
	now time.Time) (der []byte, l Login, err error) {
	err = k.update(now, func(b *storeFile) error {
		der, l, err = k.issue(b, key, Login{HostAccount: who, From: from, Made: now}, validity)
		return err
	})
	return der, l, err
}

// CheckCertificate returns why a certificate is not that of a valid login here, or nil.
func (k *Store) CheckCertificate(leaf *x509.Certificate) error { return k.checkValid(leaf) }

// Derive makes a login of another one, whose key has signed that it should. The new one
// ends with the other at the latest, and none is made of it.
func (k *Store) Derive(parent *x509.Certificate, key ed25519.PublicKey, from string,
	now time.Time) (der []byte, l Login, err error) {
	if err := k.checkValid(parent); err != nil {
		return nil, l, err
	}
	serial := parent.SerialNumber.Text(16)
	err = k.update(now, func(b *storeFile) error {
		i := slices.IndexFunc(b.Logins, func(l Login) bool { return l.Serial == serial })
		if i < 0 || !b.Logins[i].Revoked.IsZero() {
			return errBadToken
		}
		of := b.Logins[i]
		if of.Parent != "" {
			return fmt.Errorf("login %s: %w: it is one of the web daemon's, and makes no others", of.ID(),
				roost.PermissionDenied)
		}
		der, l, err = k.issue(b, key, Login{HostAccount: of.HostAccount, From: from, Made: now, Parent: serial},
			of.Expires.Sub(now))
		return err
	})
	return der, l, err
}
