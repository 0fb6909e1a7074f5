package ca

import (
	"bytes"
	"crypto/ed25519"
	"fmt"
	"math/big"
	"slices"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/boltfile"
	"github.com/roost-batch/roost/internal/identity/peer"
)

const (
	maxValidCerts     = 32        // certificates of one name that are valid at a time
	renewRepeatWindow = time.Hour // within this time the same key gets the same answer
)

// nodeMember is a node that has shown its certificate.
type nodeMember struct {
	name   string
	roles  []peer.Role
	serial *big.Int
	from   string
}

// renewCert issues a new certificate with the node's present name and roles. A node that
// asks again soon, because the answer was lost, gets the same certificate.
func (s *certStore) renewCert(m nodeMember, public ed25519.PublicKey, now time.Time) (got *certRecord, err error) {
	err = s.db.Update(func(tx *boltfile.Tx) error {
		old, ok, err := loadRecord[certRecord](tx, issuedBucket, m.serial.Bytes())
		if err != nil {
			return err
		}
		if ok && old.Revoked != 0 {
			return revokedError(m.name, old)
		}
		fresh := certRecord{Name: m.name, Roles: roleNames(m.roles), FromHost: m.from}
		if ok {
			fresh.Part, fresh.Joined = old.Part, old.Joined
		}
		held := 0
		err = eachCert(tx, m.name, func(_ []byte, i *certRecord) error {
			if !i.isValid(now) {
				return nil
			}
			held++
			if bytes.Equal(i.Key, keyDigest(public)) && slices.Equal(i.Roles, fresh.Roles) &&
				now.UnixNano() < i.Made+int64(renewRepeatWindow) && i.Made != i.Joined {
				got = i
			}
			return nil
		})
		if err != nil || got != nil {
			return err
		}
		if held >= maxValidCerts {
			return fmt.Errorf("node %s: %w: it has %d valid certificates; it renews too often", m.name,
				roost.Exhausted, held)
		}
		got, _, err = s.issueCert(tx, fresh, public, now)
		return err
	})
	if err != nil {
		return nil, err
	}
	return got, nil
}

func revokedError(name string, i *certRecord) error {
	return fmt.Errorf("node %s: %w: its certificate was revoked %s (%s): join again with a token for its name (roost "+
		"token --for %s)",
		name, roost.PermissionDenied, formatTime(i.Revoked), i.Reason, name)
}
