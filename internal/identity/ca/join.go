package ca

import (
	"bytes"
	"cmp"
	"crypto/ed25519"
	"fmt"
	"strings"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/boltfile"
	"github.com/roost-batch/roost/internal/config"
	"github.com/roost-batch/roost/internal/identity/peer"
	"github.com/roost-batch/roost/internal/identity/pki"
)

// How long certificates and tokens are valid and stored.
const (
	CertValidity = 90 * 24 * time.Hour // of a node's certificate

	defaultTokenLife = time.Hour
	maxTokenLife     = 30 * 24 * time.Hour // the longest validity of a token
	maxTokens        = 10_000              // tokens that are stored
	tokenRetention   = 30 * 24 * time.Hour // how long expired tokens are stored, so that their use gets the right error
	// how long expired certificates are stored and on the list of revoked ones, because
	// clocks differ
	certRetention = 24 * time.Hour
)

// joinRequest is a request to join.
type joinRequest struct {
	secret    []byte
	part      NodePart // empty: the part of the token
	name      string   // empty: the name of the token, or else host
	host      string   // the machine's own name
	publicKey ed25519.PublicKey
	fromHost  string        // the host that sent the request
	life      time.Duration // that a pilot will live; 0: as long as it may
}

// createToken makes a token and returns it with its record.
func (s *certStore) createToken(part NodePart, name string, life time.Duration,
	now time.Time) (JoinToken, *tokenRecord, error) {
	switch {
	case part.Roles() == nil || part == Pilot || part == guest:
		return JoinToken{}, nil, fmt.Errorf("part %q: %w: a token is for one of %v", part, roost.Invalid, Parts())
	case name != "" && !isValidNodeName(name):
		return JoinToken{}, nil, fmt.Errorf("node %q: %w: this cannot be a node's name", name, roost.Invalid)
	case name != "" && strings.EqualFold(name, s.ownName):
		return JoinToken{}, nil, fmt.Errorf("node %s: %w: this is the authority's own node; it needs no token", name,
			roost.Invalid)
	}
	return s.storeToken(tokenRecord{Part: part, Name: name}, life, now)
}

// storeToken makes a token and stores its record, in which the caller has set whom it is
// for.
func (s *certStore) storeToken(record tokenRecord, life time.Duration, now time.Time) (JoinToken, *tokenRecord, error) {
	if life == 0 {
		life = defaultTokenLife
	}
	if life < time.Minute || life > maxTokenLife {
		return JoinToken{}, nil, fmt.Errorf("expires: %w: %v is not between a minute and 30 days", roost.Invalid, life)
	}
	t := NewToken(s.ca.Certificate())
	record.Made, record.Expires = now.UnixNano(), now.Add(life).UnixNano()
	return t, &record, s.db.Update(func(tx *boltfile.Tx) error {
		if tx.Bucket(tokensBucket).Len() >= maxTokens {
			return fmt.Errorf("token: %w: %d are kept already: remove those that are not needed with roost token rm",
				roost.Exhausted, maxTokens)
		}
		return saveRecord(tx, tokensBucket, digest(t.Secret[:]), &record)
	})
}

// isValidNodeName reports whether a node can have a name. Its files are NAME.pem and
// NAME.key beside the authority's.
func isValidNodeName(name string) bool {
	return !strings.EqualFold(name, "ca") && config.IsValidName(name)
}

// hasToken reports whether there is a token with a secret. Clients without one thereby
// never cause a write transaction.
func (s *certStore) hasToken(secret []byte) (known bool) {
	s.db.View(func(tx *boltfile.Tx) error {
		known = tx.Bucket(tokensBucket).Get(digest(secret)) != nil
		return nil
	})
	return known
}

// redeemToken uses a token up and returns the certificate for it, which is already on
// disk. On an error the token remains unused. replaced reports that older certificates of
// the node were added to the list of revoked ones.
func (s *certStore) redeemToken(a joinRequest, now time.Time) (got *certRecord, replaced bool, err error) {
	err = s.db.Update(func(tx *boltfile.Tx) error {
		key := digest(a.secret)
		t, ok, err := loadRecord[tokenRecord](tx, tokensBucket, key)
		if err != nil {
			return err
		}
		if !ok {
			return unknownTokenError(s.ca.Certificate().Subject.CommonName)
		}
		if t.Part == Pilot {
			got, err = s.joinPilot(tx, key, t, a, now)
			return err
		}
		if t.Used != nil {
			got, err = s.repeatAnswer(tx, t, a, now)
			return err
		}
		record, err := s.checkJoin(tx, t, a, now)
		if err != nil {
			return err
		}
		if replaced, err = s.revokePrevious(tx, record.Name, now); err != nil {
			return err
		}
		var serial []byte
		if got, serial, err = s.issueCert(tx, *record, a.publicKey, now); err != nil {
			return err
		}
		t.Used = &tokenUse{At: now.UnixNano(), Node: record.Name, FromHost: a.fromHost, Key: keyDigest(a.publicKey),
			Serial: serial}
		return saveRecord(tx, tokensBucket, key, t)
	})
	if err != nil {
		return nil, false, err
	}
	return got, replaced, nil
}

func unknownTokenError(pool string) error {
	return fmt.Errorf("token: %w: the pool %s knows no such token: was it made by another pool, or taken back? Ask "+
		"for a new one (roost token)", roost.PermissionDenied, pool)
}

// repeatAnswer handles a token that is already used. A request with the same key gets the
// same answer, because the first may have been lost.
func (s *certStore) repeatAnswer(tx *boltfile.Tx, t *tokenRecord, a joinRequest, now time.Time) (*certRecord, error) {
	record, ok, err := loadRecord[certRecord](tx, issuedBucket, t.Used.Serial)
	if err != nil {
		return nil, err
	}
	if ok && bytes.Equal(t.Used.Key, keyDigest(a.publicKey)) && now.UnixNano() < t.Expires && record.isValid(now) {
		return record, nil
	}
	return nil, fmt.Errorf("token: %w: it was used already, %s by %s from %s, and a token is good for one machine: "+
		"ask for a new one (roost token). If that was not you, tell the administrator",
		roost.PermissionDenied, formatTime(t.Used.At), t.Used.Node, t.Used.FromHost)
}

// checkJoin returns the record of the joining node, or an error if it may not join.
func (s *certStore) checkJoin(tx *boltfile.Tx, t *tokenRecord, a joinRequest, now time.Time) (*certRecord, error) {
	if now.UnixNano() >= t.Expires {
		return nil, fmt.Errorf("token: %w: it ran out %s, and here it is %s: ask for a new one (roost token)",
			roost.PermissionDenied, formatTime(t.Expires), formatTime(now.UnixNano()))
	}
	if a.part != "" && a.part != t.Part {
		return nil, fmt.Errorf("token: %w: it is for a machine that joins with --%s, and this one asks for --%s: use "+
			"the line as it was printed, or ask for another token (roost token --%s)",
			roost.PermissionDenied, t.Part, a.part, a.part)
	}
	name := cmp.Or(a.name, t.Name, a.host)
	switch {
	case t.Name != "" && name != t.Name:
		return nil, fmt.Errorf("token: %w: it is for the node %s, and this one is %s: join with --name %s",
			roost.PermissionDenied, t.Name, name, t.Name)
	case !isValidNodeName(name):
		return nil, fmt.Errorf("node %q: %w: this cannot be a node's name: choose one with --name, of letters, "+
			"digits, \".\", \"-\" and \"_\"", name, roost.Invalid)
	case strings.EqualFold(name, s.ownName):
		return nil, fmt.Errorf("node %s: %w: this is the name of the machine with the authority: choose another "+
			"with --name", name, roost.Conflict)
	}
	if err := checkNoGuestName(tx, name); err != nil {
		return nil, err
	}
	if err := s.recordManualCert(tx, name); err != nil {
		return nil, err
	}
	if err := s.checkUniqueName(tx, name, now); err != nil {
		return nil, err
	}
	if t.Name == "" {
		err := eachCert(tx, name, func(_ []byte, i *certRecord) error {
			if i.isValid(now) {
				return fmt.Errorf("node %s: %w: a machine of that name joined %s from %s: choose another with "+
					"--name, or, if it is this very machine, join with a token for its name (roost token "+
					"--%s --for %s)",
					name, roost.Conflict, formatTime(i.Joined), i.FromHost, t.Part, name)
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return &certRecord{Name: name, Part: t.Part, Roles: roleNames(t.Part.Roles()), FromHost: a.fromHost}, nil
}

// checkUniqueName checks that no member has the same name in other letters. Requirements
// compare names without regard to case (ClassAd's ==), so jobs for one node would run on
// the other. A node whose certificates are revoked or expired is no member.
func (s *certStore) checkUniqueName(tx *boltfile.Tx, name string, now time.Time) error {
	twins, err := pki.NamesDifferingInCase(s.dir, name)
	if err != nil {
		return err
	}
	for _, twin := range twins { // nodes whose certificates were made by hand
		if err := s.recordManualCert(tx, twin); err != nil {
			return err
		}
	}
	c := tx.Bucket(namesBucket).Cursor()
	for key, _ := c.First(); key != nil; key, _ = c.Next() {
		twin, serial, _ := bytes.Cut(key, []byte{0})
		if string(twin) == name || !strings.EqualFold(string(twin), name) {
			continue
		}
		record, ok, err := loadRecord[certRecord](tx, issuedBucket, serial)
		if err != nil {
			return err
		}
		if ok && record.isValid(now) {
			return fmt.Errorf("node %s: %w: %s is a member, and names that differ by the case of letters only are "+
				"one: choose another with --name; if it is this very machine, join as %s",
				name, roost.Conflict, record.Name, record.Name)
		}
	}
	return nil
}

// revokePrevious revokes the certificates of a name, because another machine joins with
// it.
func (s *certStore) revokePrevious(tx *boltfile.Tx, name string, now time.Time) (any bool, err error) {
	n, err := revokeCerts(tx, name, "joined again", now)
	return n > 0, err
}

// formatTime formats an instant for messages.
func formatTime(at int64) string { return time.Unix(0, at).Format("2006-01-02 15:04:05 -0700") }

func roleNames(roles []peer.Role) (list []string) {
	for _, r := range roles {
		list = append(list, string(r))
	}
	return list
}

func rolesOf(list []string) (roles []peer.Role) {
	for _, text := range list {
		roles = append(roles, peer.Role(text))
	}
	return roles
}
