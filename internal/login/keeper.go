package login

import (
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
	"github.com/roost-batch/roost/internal/filesum"
	"github.com/roost-batch/roost/internal/pki"
)

// How long things hold, and how many there may be of one user.
const (
	Validity     = 30 * 24 * time.Hour // of a login
	TokenLife    = time.Hour           // unless said otherwise
	MaxTokenLife = 24 * time.Hour

	maxTokens = 16
	maxLogins = 64
	keptFor   = 7 * 24 * time.Hour // after the end of a login, so that a list shows it
)

// Account is who somebody is on the schedd's host.
type Account struct {
	User string `json:"user"`
	UID  uint32 `json:"uid"`
	GID  uint32 `json:"gid"`
}

// Login is a certificate that was given to a user on another machine.
type Login struct {
	Account
	Serial  string    `json:"serial"` // of the certificate, in hexadecimal
	From    string    `json:"from"`   // the address where it was asked for
	Made    time.Time `json:"made"`
	Expires time.Time `json:"expires"`
	Revoked time.Time `json:"revoked,omitzero"`
}

// ID is how people name a login.
func (l *Login) ID() string { return l.Serial[:min(len(l.Serial), 10)] }

// given is a token that was given out.
type given struct {
	Account
	Digest  string    `json:"digest"` // of its secret
	Expires time.Time `json:"expires"`
	Key     []byte    `json:"key,omitempty"`         // of whom it let in; empty: nobody has used it
	DER     []byte    `json:"certificate,omitempty"` // which was made for it
}

// Keeper owns the tokens and logins of one schedd. What it says is on disk.
type Keeper struct {
	node, file string
	authority  *pki.Authority

	mu   sync.Mutex
	book book
}

// book is what is in the file.
type book struct {
	Tokens []given `json:"tokens"`
	Logins []Login `json:"logins"`
}

// Open reads the keeper's directory, or makes it: the schedd's own authority, and its book.
func Open(dir, node string) (*Keeper, error) {
	if !pki.IsAuthority(dir) {
		if err := pki.Init(dir, "users of "+node); err != nil {
			return nil, err
		}
	}
	authority, err := pki.LoadAuthority(dir)
	if err != nil {
		return nil, err
	}
	k := &Keeper{node: node, file: filepath.Join(dir, "logins.json"), authority: authority}
	text, err := os.ReadFile(k.file)
	if errors.Is(err, fs.ErrNotExist) {
		return k, nil
	}
	if err == nil {
		text, err = filesum.Check(text)
	}
	if err == nil {
		err = json.Unmarshal(text, &k.book)
	}
	if err != nil {
		return nil, fmt.Errorf("logins %s: %w: %w: move it away, and everybody has to log in again", k.file, roost.BadConfig, err)
	}
	return k, nil
}

// change makes a change of the book, which counts when it is on disk, or not at all.
func (k *Keeper) change(now time.Time, f func(b *book) error) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	next := book{slices.Clone(k.book.Tokens), slices.Clone(k.book.Logins)}
	next.Tokens = slices.DeleteFunc(next.Tokens, func(t given) bool { return now.After(t.Expires) })
	next.Logins = slices.DeleteFunc(next.Logins, func(l Login) bool { return now.After(l.Expires.Add(keptFor)) })
	if err := f(&next); err != nil {
		return err
	}
	text, err := json.MarshalIndent(next, "", "  ")
	if err == nil {
		err = replace(k.file, filesum.Append(text))
	}
	if err != nil {
		return fmt.Errorf("logins: %w: %w", roost.NoOutput, err)
	}
	k.book = next
	return nil
}

// MakeToken makes a token with which that user can log in from another machine, once.
func (k *Keeper) MakeToken(who Account, life time.Duration, now time.Time) (Token, time.Time, error) {
	if life <= 0 || life > MaxTokenLife {
		return Token{}, now, fmt.Errorf("token: %w: it is good for at most %v", roost.Invalid, MaxTokenLife)
	}
	t, expires := newToken(k.authority.Certificate()), now.Add(life)
	return t, expires, k.change(now, func(b *book) error {
		open := 0
		for _, other := range b.Tokens {
			if other.UID == who.UID && other.Key == nil {
				open++
			}
		}
		if open >= maxTokens {
			return fmt.Errorf("token: %w: %d of yours were not used yet; they end by themselves", roost.Exhausted, open)
		}
		b.Tokens = append(b.Tokens, given{Account: who, Digest: digest(t.Secret[:]), Expires: expires})
		return nil
	})
}

// errToken is for every token that lets nobody in: only who has the right secret learns more.
var errToken = fmt.Errorf("login: %w: the token is wrong, or ran out: on the schedd's host run roost token --user again", roost.PermissionDenied)

// Enter spends a token: it returns a certificate for that key, in DER.
func (k *Keeper) Enter(secret []byte, key ed25519.PublicKey, from string, now time.Time) (der []byte, l Login, err error) {
	err = k.change(now, func(b *book) error {
		i := slices.IndexFunc(b.Tokens, func(t given) bool { return t.Digest == digest(secret) })
		if i < 0 {
			return errToken
		}
		t := &b.Tokens[i]
		if t.Key != nil {
			if !key.Equal(ed25519.PublicKey(t.Key)) {
				return fmt.Errorf("login: %w: the token was used already; if not by you, see roost logins on %s", roost.PermissionDenied, k.node)
			}
			der = t.DER // the answer was lost
			return k.login(b, der, &l)
		}
		held := 0
		for _, other := range b.Logins {
			if other.UID == t.UID && other.Revoked.IsZero() && now.Before(other.Expires) {
				held++
			}
		}
		if held >= maxLogins {
			return fmt.Errorf("login: %w: you have %d already: on %s see roost logins", roost.Exhausted, held, k.node)
		}
		cert, err := k.authority.CertifyUser(key, t.User, Validity)
		if err != nil {
			return err
		}
		der = cert.Raw
		t.Key, t.DER = key, der
		b.Logins = append(b.Logins, Login{Account: t.Account, Serial: cert.SerialNumber.Text(16), From: from, Made: now, Expires: cert.NotAfter})
		return k.login(b, der, &l)
	})
	return der, l, err
}

// login finds the login of a certificate.
func (k *Keeper) login(b *book, der []byte, into *Login) error {
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(b.Logins, func(l Login) bool { return l.Serial == cert.SerialNumber.Text(16) })
	if i < 0 {
		return errToken
	}
	*into = b.Logins[i]
	return nil
}

// Account is who has the certificate of that number now.
func (k *Keeper) Account(serial string, now time.Time) (Account, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, l := range k.book.Logins {
		if l.Serial != serial {
			continue
		}
		if !l.Revoked.IsZero() {
			return Account{}, fmt.Errorf("login: %w: it was revoked on %s: log in again", roost.Unauthenticated, l.Revoked.Format(time.DateTime))
		}
		if now.After(l.Expires) {
			return Account{}, fmt.Errorf("login: %w: it ended on %s: log in again", roost.Unauthenticated, l.Expires.Format(time.DateOnly))
		}
		return l.Account, nil
	}
	return Account{}, fmt.Errorf("login: %w: %s does not know it: log in again", roost.Unauthenticated, k.node)
}

// List shows the logins that a user may see.
func (k *Keeper) List(may func(Account) bool) (all []Login) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, l := range k.book.Logins {
		if may(l.Account) {
			all = append(all, l)
		}
	}
	return all
}

// Revoke ends a login, by the beginning of its number or by all of it.
func (k *Keeper) Revoke(id string, may func(Account) bool, now time.Time) (revoked Login, err error) {
	err = k.change(now, func(b *book) error {
		var found []int
		for i, l := range b.Logins {
			if may(l.Account) && len(id) >= 4 && strings.HasPrefix(l.Serial, id) {
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

// replace writes a file in one step, and forces it to disk.
func replace(path string, text []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".new") // mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = f.Write(text)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}
