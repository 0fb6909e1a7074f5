package authority

import (
	"crypto/x509"
	"errors"
	"fmt"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/auth"
	"github.com/roost-batch/roost/internal/pki"
	"github.com/roost-batch/roost/schedd/dbfile"
)

// Founder is whom a new pool begins with: the machine of its authority.
type Founder struct {
	Pool    string
	Name    string
	Roles   []auth.Role
	Request []byte // for its key, as pki.Request makes it
}

// Found makes the authority of a new pool in dir, and the certificate of its first node, in DER. An authority that is there already is taken, if it is
// of a pool of that name: an attempt before may have been broken off. No authority may be running on it.
func Found(dir string, f Founder) (certificate []byte, ca *x509.Certificate, err error) {
	if err := pki.Init(dir, f.Pool); err != nil && !errors.Is(err, roost.Conflict) {
		return nil, nil, err
	}
	s, err := openStore(dir, f.Name)
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	ca = s.ca.Certificate()
	if had := ca.Subject.CommonName; had != f.Pool {
		return nil, nil, fmt.Errorf("authority in %s: %w: it is of the pool %s: write roost init --name %s to take it, or move the directory away", dir, roost.Conflict, had, had)
	}
	public, err := pki.ParseRequest(f.Request)
	if err != nil {
		return nil, nil, err
	}
	err = s.db.Update(func(tx *dbfile.Tx) error {
		now := time.Now()
		if _, err := s.replace(tx, f.Name, now); err != nil {
			return err
		}
		record, _, err := s.admit(tx, issued{Name: f.Name, Roles: texts(f.Roles), From: "this host"}, public, now)
		if err == nil {
			certificate = record.DER
		}
		return err
	})
	return certificate, ca, err
}

// MintAt makes a token with the authority in dir, for the time before it runs for the first time.
func MintAt(dir, self string, part Part, life time.Duration) (token string, err error) {
	s, err := openStore(dir, self)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	t, _, err := s.mint(part, "", life, time.Now())
	return t.String(), err
}
