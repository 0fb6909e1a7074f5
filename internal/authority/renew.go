package authority

import (
	"bytes"
	"crypto/ed25519"
	"fmt"
	"math/big"
	"slices"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/auth"
	"github.com/roost-batch/roost/schedd/dbfile"
)

const (
	maxHeld     = 32        // certificates of one name that hold at a time
	renewAnswer = time.Hour // for so long the same key gets the same answer
)

// member is a node that has shown its certificate.
type member struct {
	name   string
	roles  []auth.Role
	serial *big.Int
	from   string
}

// renew gives a node a new certificate with the name and the roles that it has. One that asks again soon, because the answer was lost, gets the same.
func (s *store) renew(m member, public ed25519.PublicKey, now time.Time) (got *issued, err error) {
	err = s.db.Update(func(tx *dbfile.Tx) error {
		old, ok, err := load[issued](tx, issuedBucket, m.serial.Bytes())
		if err != nil {
			return err
		}
		if ok && old.Revoked != 0 {
			return errRevoked(m.name, old)
		}
		fresh := issued{Name: m.name, Roles: texts(m.roles), From: m.from}
		if ok {
			fresh.Part, fresh.Joined = old.Part, old.Joined
		}
		held := 0
		err = of(tx, m.name, func(_ []byte, i *issued) error {
			if !i.holds(now) {
				return nil
			}
			held++
			if bytes.Equal(i.Key, keyDigest(public)) && slices.Equal(i.Roles, fresh.Roles) && now.UnixNano() < i.Made+int64(renewAnswer) && i.Made != i.Joined {
				got = i
			}
			return nil
		})
		if err != nil || got != nil {
			return err
		}
		if held >= maxHeld {
			return fmt.Errorf("node %s: %w: it has %d certificates that hold; it renews too often", m.name, roost.Exhausted, held)
		}
		got, _, err = s.admit(tx, fresh, public, now)
		return err
	})
	if err != nil {
		return nil, err
	}
	return got, nil
}

func errRevoked(name string, i *issued) error {
	return fmt.Errorf("node %s: %w: its certificate was revoked %s (%s): join again with a token for its name (roost token --for %s)",
		name, roost.PermissionDenied, when(i.Revoked), i.Reason, name)
}
