package ca

import (
	"fmt"
	"math/big"
	"path/filepath"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/boltfile"
	"github.com/roost-batch/roost/internal/identity/pki"
)

// revokeCerts marks all valid certificates of a name as revoked.
func revokeCerts(tx *boltfile.Tx, name, reason string, now time.Time) (n int, err error) {
	err = eachCert(tx, name, func(serial []byte, i *certRecord) error {
		if !i.isValid(now) {
			return nil
		}
		n++
		i.Revoked, i.Reason = now.UnixNano(), reason
		return saveRecord(tx, issuedBucket, serial, i)
	})
	return n, err
}

// revokeNode revokes a node. A certificate made by hand (roost pki issue) is known from
// its copy in the authority's directory.
func (s *certStore) revokeNode(name, reason string, now time.Time) (n int, err error) {
	if name == s.ownName {
		return 0, fmt.Errorf("node %s: %w: this is the authority's own node, without which there is no pool", name,
			roost.Invalid)
	}
	err = s.db.Update(func(tx *boltfile.Tx) (err error) {
		if err := s.recordManualCert(tx, name); err != nil {
			return err
		}
		if n, err = revokeCerts(tx, name, reason, now); err == nil && n == 0 {
			return fmt.Errorf("node %q: %w: no node of that name has a valid certificate; roost token list shows "+
				"the nodes that have one", name, roost.NotFound)
		}
		return err
	})
	return n, err
}

// recordManualCert records the certificate that was made by hand for a name, if there is
// one.
func (s *certStore) recordManualCert(tx *boltfile.Tx, name string) error {
	if !isValidNodeName(name) {
		return fmt.Errorf("node %q: %w: this cannot be a node's name", name, roost.Invalid)
	}
	leaf, err := pki.ReadCertificate(filepath.Join(s.dir, name+".pem"))
	if err != nil || s.ca.Check(leaf) != nil || leaf.Subject.CommonName != name {
		return nil
	}
	if _, known, err := loadRecord[certRecord](tx, issuedBucket, leaf.SerialNumber.Bytes()); known || err != nil {
		return err
	}
	return s.saveCert(tx, leaf.SerialNumber.Bytes(), &certRecord{
		Name: name, Roles: leaf.Subject.OrganizationalUnit, Joined: leaf.NotBefore.UnixNano(),
		Made: leaf.NotBefore.UnixNano(), Expires: leaf.NotAfter.UnixNano(), DER: leaf.Raw,
	})
}

// isRevoked returns the record of a certificate if it is revoked, else nil.
func (s *certStore) isRevoked(serial *big.Int) (why *certRecord, err error) {
	err = s.db.View(func(tx *boltfile.Tx) error {
		record, ok, err := loadRecord[certRecord](tx, issuedBucket, serial.Bytes())
		if ok && record.Revoked != 0 {
			why = record
		}
		return err
	})
	return why, err
}

// revocationList is a signed list.
type revocationList struct {
	number int64
	der    []byte
	signed time.Time
}

// signRevocationList signs the list of all revoked certificates, with a new number.
func (s *certStore) signRevocationList(now time.Time) (*revocationList, error) {
	l := &revocationList{signed: now}
	var all []pki.RevokedCert
	err := s.db.Update(func(tx *boltfile.Tx) (err error) {
		if l.number, err = nextCRLNumber(tx, now); err != nil {
			return err
		}
		return eachRecord(tx, issuedBucket, func(serial []byte, i *certRecord) error {
			if i.Revoked != 0 {
				all = append(all, pki.RevokedCert{Serial: new(big.Int).SetBytes(serial), At: time.Unix(0, i.Revoked)})
			}
			return nil
		})
	})
	if err != nil {
		return nil, err
	}
	l.der, err = s.ca.Revocations(l.number, all, now, revocationListLife)
	return l, err
}
