package login

import (
	"cmp"
	"crypto/ed25519"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/atomicfile"
	"github.com/roost-batch/roost/internal/filesum"
	"github.com/roost-batch/roost/internal/identity/pki"
)

// How long tokens and logins are valid, and how many one user may have.
const (
	LoginValidity = 30 * 24 * time.Hour // of a login
	TokenLife     = time.Hour           // the default
	LinkLife      = time.Minute         // of a link to pages, which is opened at once
	MaxTokenLife  = 24 * time.Hour

	MaxLoginValidity = 90 * 24 * time.Hour // of a login that a program uses

	maxTokens      = 16
	maxLogins      = 64
	loginRetention = 7 * 24 * time.Hour // how long an expired login is still listed
)

// HostAccount is a user account on the schedd's host.
type HostAccount struct {
	User string `json:"user"`
	UID  uint32 `json:"uid"`
	GID  uint32 `json:"gid"`
}

// Login is a certificate that was issued to a user on another machine.
type Login struct {
	HostAccount
	Serial  string    `json:"serial"` // serial number of the certificate, in hexadecimal digits
	From    string    `json:"from"`   // the address that requested it
	Made    time.Time `json:"made"`
	Expires time.Time `json:"expires"`
	Revoked time.Time `json:"revoked,omitzero"`
	// serial number of the login whose key has signed for this one; it ends with that
	Parent string `json:"parent,omitempty"`
}

// ID returns the id by which users name a login.
func (l *Login) ID() string { return l.Serial[:min(len(l.Serial), 10)] }

// issuedToken is the record of a token.
type issuedToken struct {
	HostAccount
	Digest  string    `json:"digest"` // digest of its secret
	Expires time.Time `json:"expires"`
	// how long the login is valid; 0: LoginValidity
	Validity time.Duration `json:"validity,omitempty"`

	Key []byte `json:"key,omitempty"`         // key of the login that used it; empty: unused
	DER []byte `json:"certificate,omitempty"` // the certificate that was issued for it
}

// Store owns the tokens and logins of one schedd. Its contents are on disk.
type Store struct {
	node, file string
	authority  *pki.Authority

	mu    sync.Mutex
	state storeFile
}

// storeFile is the contents of the file.
type storeFile struct {
	Tokens []issuedToken `json:"tokens"`
	Logins []Login       `json:"logins"`
}

// Open opens or creates the store in a directory: the schedd's own authority, and the
// file of tokens and logins.
func Open(dir, node string) (*Store, error) {
	if !pki.IsAuthority(dir) {
		if err := pki.Init(dir, "users of "+node); err != nil {
			return nil, err
		}
	}
	authority, err := pki.LoadAuthority(dir)
	if err != nil {
		return nil, err
	}
	k := &Store{node: node, file: filepath.Join(dir, "logins.json"), authority: authority}
	text, err := os.ReadFile(k.file)
	if errors.Is(err, fs.ErrNotExist) {
		return k, nil
	}
	if err == nil {
		text, err = filesum.VerifyChecksum(text)
	}
	if err == nil {
		err = json.Unmarshal(text, &k.state)
	}
	if err != nil {
		return nil, fmt.Errorf("logins %s: %w: %w: move it away, and everybody has to log in again", k.file,
			roost.BadConfig, err)
	}
	return k, nil
}

// update changes the file. The change is either on disk or without effect.
func (k *Store) update(now time.Time, f func(b *storeFile) error) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	next := storeFile{slices.Clone(k.state.Tokens), slices.Clone(k.state.Logins)}
	next.Tokens = slices.DeleteFunc(next.Tokens, func(t issuedToken) bool { return now.After(t.Expires) })
	next.Logins = slices.DeleteFunc(next.Logins, func(l Login) bool { return now.After(l.Expires.Add(loginRetention)) })
	if err := f(&next); err != nil {
		return err
	}
	text, err := json.MarshalIndent(next, "", "  ")
	if err == nil {
		err = atomicfile.WriteDurable(k.file, filesum.AppendChecksum(text), 0o600)
	}
	if err != nil {
		return fmt.Errorf("logins: %w: %w", roost.NoOutput, err)
	}
	k.state = next
	return nil
}

// TokenLifetimes are how long a token can be used, and how long the resulting login is
// valid.
type TokenLifetimes struct{ Token, Login time.Duration }

// MakeToken makes a token with which a user can log in from another machine, once.
func (k *Store) MakeToken(who HostAccount, limits TokenLifetimes, now time.Time) (LoginToken, time.Time, error) {
	life := limits.Token
	switch {
	case life <= 0 || life > MaxTokenLife:
		return LoginToken{}, now, fmt.Errorf("token: %w: it is good for at most %v", roost.Invalid, MaxTokenLife)
	case limits.Login <= 0 || limits.Login > MaxLoginValidity:
		return LoginToken{}, now, fmt.Errorf("token: %w: a login is valid for at most %v", roost.Invalid,
			MaxLoginValidity)
	}
	t, expires := newToken(k.authority.Certificate()), now.Add(life)
	return t, expires, k.update(now, func(b *storeFile) error {
		open := 0
		for _, other := range b.Tokens {
			if other.UID == who.UID && other.Key == nil {
				open++
			}
		}
		if open >= maxTokens {
			return fmt.Errorf("token: %w: %d of yours were not used yet; they end by themselves", roost.Exhausted, open)
		}
		b.Tokens = append(b.Tokens, issuedToken{HostAccount: who, Digest: digest(t.Secret[:]), Expires: expires,
			Validity: limits.Login})
		return nil
	})
}

// errBadToken is the error for every invalid token: only a client with the right secret
// learns more.
var errBadToken = fmt.Errorf("login: %w: the token is wrong, or ran out: on the schedd's host run roost token "+
	"--user again", roost.PermissionDenied)

// Redeem exchanges a token for a certificate for a key, in DER.
func (k *Store) Redeem(secret []byte, key ed25519.PublicKey, from string,
	now time.Time) (der []byte, l Login, err error) {
	err = k.update(now, func(b *storeFile) error {
		i := slices.IndexFunc(b.Tokens, func(t issuedToken) bool { return t.Digest == digest(secret) })
		if i < 0 {
			return errBadToken
		}
		t := &b.Tokens[i]
		if t.Key != nil {
			if !key.Equal(ed25519.PublicKey(t.Key)) {
				return fmt.Errorf("login: %w: the token was used already; if not by you, see roost logins on %s",
					roost.PermissionDenied, k.node)
			}
			der = t.DER // the answer was lost
			return k.loginBySerial(b, der, &l)
		}
		if der, l, err = k.issue(b, key, Login{HostAccount: t.HostAccount, From: from, Made: now},
			cmp.Or(t.Validity, LoginValidity)); err == nil {
			t.Key, t.DER = key, der
		}
		return err
	})
	return der, l, err
}

// issue makes a certificate for a key and adds its login.
func (k *Store) issue(b *storeFile, key ed25519.PublicKey, l Login, validity time.Duration) ([]byte, Login, error) {
	held := 0
	for _, other := range b.Logins {
		if other.UID == l.UID && other.Revoked.IsZero() && l.Made.Before(other.Expires) {
			held++
		}
	}
	if held >= maxLogins {
		return nil, l, fmt.Errorf("login: %w: you have %d already: on %s see roost logins", roost.Exhausted, held,
			k.node)
	}
	cert, err := k.authority.CertifyUser(key, l.User, validity)
	if err != nil {
		return nil, l, err
	}
	l.Serial, l.Expires = cert.SerialNumber.Text(16), cert.NotAfter
	b.Logins = append(b.Logins, l)
	return cert.Raw, l, nil
}

// loginBySerial finds the login of a certificate.
func (k *Store) loginBySerial(b *storeFile, der []byte, into *Login) error {
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(b.Logins, func(l Login) bool { return l.Serial == cert.SerialNumber.Text(16) })
	if i < 0 {
		return errBadToken
	}
	*into = b.Logins[i]
	return nil
}

// Account returns the account of the certificate with a serial number, if it is valid
// now.
func (k *Store) Account(serial string, now time.Time) (HostAccount, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.account(serial, now)
}

func (k *Store) account(serial string, now time.Time) (HostAccount, error) {
	for _, l := range k.state.Logins {
		if l.Serial != serial {
			continue
		}
		if l.Parent != "" {
			if _, err := k.account(l.Parent, now); err != nil {
				return HostAccount{}, fmt.Errorf("the login of which this one was made: %w", err)
			}
		}
		if !l.Revoked.IsZero() {
			return HostAccount{}, fmt.Errorf("login: %w: it was revoked on %s: log in again", roost.Unauthenticated,
				l.Revoked.Format(time.DateTime))
		}
		if now.After(l.Expires) {
			return HostAccount{}, fmt.Errorf("login: %w: it ended on %s: log in again", roost.Unauthenticated,
				l.Expires.Format(time.DateOnly))
		}
		return l.HostAccount, nil
	}
	return HostAccount{}, fmt.Errorf("login: %w: %s does not know it: log in again", roost.Unauthenticated, k.node)
}

// List returns the logins that a user may see.
func (k *Store) List(may func(HostAccount) bool) (all []Login) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, l := range k.state.Logins {
		if may(l.HostAccount) {
			all = append(all, l)
		}
	}
	return all
}

// Revoke revokes a login, given the beginning of its serial number or all of it.
func (k *Store) Revoke(id string, may func(HostAccount) bool, now time.Time) (revoked Login, err error) {
	err = k.update(now, func(b *storeFile) error {
		var found []int
		for i, l := range b.Logins {
			if may(l.HostAccount) && len(id) >= 4 && strings.HasPrefix(l.Serial, id) {
				found = append(found, i)
			}
		}
		if len(found) != 1 {
			return fmt.Errorf("login %s: %w: there are %d of yours whose id begins so", id, roost.NotFound, len(found))
		}
		l := &b.Logins[found[0]]
		if l.Revoked.IsZero() {
			l.Revoked = now
		}
		revoked = *l
		return nil
	})
	return revoked, err
}
