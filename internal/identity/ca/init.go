package ca

import (
	"crypto/x509"
	"errors"
	"fmt"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/boltfile"
	"github.com/roost-batch/roost/internal/identity/peer"
	"github.com/roost-batch/roost/internal/identity/pki"
)

// InitialNode is the first node of a new pool: the machine of its authority.
type InitialNode struct {
	Pool    string
	Name    string
	Roles   []peer.Role
	Request []byte // for its key, as pki.Request makes it
}

// Init makes the authority of a new pool in dir, and the certificate of its first node,
// in DER. An existing authority of the same pool is reused, because an earlier call may
// have been interrupted. The authority must not be running.
func Init(dir string, f InitialNode) (certificate []byte, ca *x509.Certificate, err error) {
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
		return nil, nil, fmt.Errorf("authority in %s: %w: it is of the pool %s: write roost init --name %s to "+
			"take it, or move the directory away", dir, roost.Conflict, had, had)
	}
	public, err := pki.ParseRequest(f.Request)
	if err != nil {
		return nil, nil, err
	}
	err = s.db.Update(func(tx *boltfile.Tx) error {
		now := time.Now()
		if _, err := s.revokePrevious(tx, f.Name, now); err != nil {
			return err
		}
		record, _, err := s.issueCert(tx, certRecord{Name: f.Name, Roles: roleNames(f.Roles), FromHost: "this host"},
			public, now)
		if err == nil {
			certificate = record.DER
		}
		return err
	})
	return certificate, ca, err
}

// CreateTokenAt makes a token with the authority in dir, before that runs for the first
// time.
func CreateTokenAt(dir, self string, part NodePart, life time.Duration) (token string, err error) {
	s, err := openStore(dir, self)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	t, _, err := s.createToken(part, "", life, time.Now())
	return t.String(), err
}
