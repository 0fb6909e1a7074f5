package authority

import (
	"fmt"
	"math/big"
	"path/filepath"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/pki"
	"github.com/roost-batch/roost/schedd/dbfile"
)

// revoke marks all certificates of a name that hold.
func revoke(tx *dbfile.Tx, name, reason string, now time.Time) (n int, err error) {
	err = of(tx, name, func(serial []byte, i *issued) error {
		if !i.holds(now) {
			return nil
		}
		n++
		i.Revoked, i.Reason = now.UnixNano(), reason
		return save(tx, issuedBucket, serial, i)
	})
	return n, err
}

// putOut revokes a node. One whose certificate was made by hand (roost pki issue) is known by the copy in the authority's directory.
func (s *store) putOut(name, reason string, now time.Time) (n int, err error) {
	if name == s.self {
		return 0, fmt.Errorf("node %s: %w: this is the authority's own node, without which there is no pool", name, roost.Invalid)
	}
	err = s.db.Update(func(tx *dbfile.Tx) (err error) {
		if err := s.adopt(tx, name); err != nil {
			return err
		}
		if n, err = revoke(tx, name, reason, now); err == nil && n == 0 {
			return fmt.Errorf("node %q: %w: no node of that name has a certificate that holds; roost token list shows who has", name, roost.NotFound)
		}
		return err
	})
	return n, err
}

// adopt writes down the certificate that was made for a name by hand, if there is one.
func (s *store) adopt(tx *dbfile.Tx, name string) error {
	if !nameable(name) {
		return fmt.Errorf("node %q: %w: this cannot be a node's name", name, roost.Invalid)
	}
	leaf, err := pki.ReadCertificate(filepath.Join(s.dir, name+".pem"))
	if err != nil || s.ca.Check(leaf) != nil || leaf.Subject.CommonName != name {
		return nil
	}
	if _, known, err := load[issued](tx, issuedBucket, leaf.SerialNumber.Bytes()); known || err != nil {
		return err
	}
	return s.write(tx, leaf.SerialNumber.Bytes(), &issued{
		Name: name, Roles: leaf.Subject.OrganizationalUnit, Joined: leaf.NotBefore.UnixNano(), Made: leaf.NotBefore.UnixNano(), Expires: leaf.NotAfter.UnixNano(), DER: leaf.Raw,
	})
}

// revoked reports whether a certificate was.
func (s *store) revoked(serial *big.Int) (why *issued, err error) {
	err = s.db.View(func(tx *dbfile.Tx) error {
		record, ok, err := load[issued](tx, issuedBucket, serial.Bytes())
		if ok && record.Revoked != 0 {
			why = record
		}
		return err
	})
	return why, err
}

// revocations is a signed list.
type revocations struct {
	number int64
	der    []byte
	signed time.Time
}

// list signs the list of all that are revoked, under a number of its own.
func (s *store) list(now time.Time) (*revocations, error) {
	l := &revocations{signed: now}
	var all []pki.Revoked
	err := s.db.Update(func(tx *dbfile.Tx) (err error) {
		if l.number, err = bump(tx, now); err != nil {
			return err
		}
		return each(tx, issuedBucket, func(serial []byte, i *issued) error {
			if i.Revoked != 0 {
				all = append(all, pki.Revoked{Serial: new(big.Int).SetBytes(serial), At: time.Unix(0, i.Revoked)})
			}
			return nil
		})
	})
	if err != nil {
		return nil, err
	}
	l.der, err = s.ca.Revocations(l.number, all, now, listLife)
	return l, err
}
