package session

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
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
	"unicode"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/atomicfile"
	"github.com/roost-batch/roost/internal/identity/login"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/wire"
)

// Bounds on API tokens.
const (
	MaxTokenLife    = login.MaxLoginValidity
	maxTokens       = 4096
	maxTokensOfUser = 32
	maxTokenName    = 64
	maxTokenFile    = 32 << 20

	tokenPrefix = "rtk_" // scanners of source code find it
)

// APIToken is the record of a token of a program. The token itself is not stored.
type APIToken struct {
	ID      string    `json:"id"`
	Name    string    `json:"name"`
	User    string    `json:"user"`
	Node    string    `json:"node"`
	Scopes  []Scope   `json:"scopes"`
	Made    time.Time `json:"made"`
	Expires time.Time `json:"expires"`
	Login   string    `json:"login"` // id of its login at the schedd, for roost logins

	Digest string `json:"digest"` // of the token
	Sealed []byte `json:"sealed"` // the login, encrypted with a key made of the token
}

// tokenFile is the file of API tokens.
type tokenFile struct {
	path string
	mu   sync.Mutex
	all  []APIToken
}

func openTokenFile(dir string) (*tokenFile, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("directory %s: %w: %w", dir, roost.NoOutput, err)
	}
	f := &tokenFile{path: filepath.Join(dir, "tokens.json")}
	info, err := os.Stat(f.path)
	if errors.Is(err, fs.ErrNotExist) {
		return f, nil
	}
	if err == nil && info.Size() > maxTokenFile {
		err = fmt.Errorf("it has %d bytes", info.Size())
	}
	var text []byte
	if err == nil {
		text, err = os.ReadFile(f.path)
	}
	if err == nil {
		err = json.Unmarshal(text, &f.all)
	}
	if err != nil {
		return nil, fmt.Errorf("API tokens %s: %w: %w: move it away, and make new tokens", f.path, roost.BadConfig, err)
	}
	return f, nil
}

// update changes the file. The change is either on disk or without effect.
func (f *tokenFile) update(now time.Time, change func(all []APIToken) ([]APIToken, error)) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	next := slices.DeleteFunc(slices.Clone(f.all), func(t APIToken) bool { return !now.Before(t.Expires) })
	next, err := change(next)
	if err != nil {
		return err
	}
	text, err := json.MarshalIndent(next, "", "  ")
	if err == nil {
		err = atomicfile.WriteDurable(f.path, text, 0o600)
	}
	if err != nil {
		return fmt.Errorf("API tokens: %w: %w", roost.NoOutput, err)
	}
	f.all = next
	return nil
}

func (f *tokenFile) find(match func(*APIToken) bool) (APIToken, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	i := slices.IndexFunc(f.all, func(t APIToken) bool { return match(&t) })
	if i < 0 {
		return APIToken{}, false
	}
	return f.all[i], true
}

// TokenRequest describes an API token to be made.
type TokenRequest struct {
	Proof  Proof   // of which the API token's own login is made
	Name   string  // for lists
	Scopes []Scope // not empty
	Life   time.Duration
}

// AddToken makes an API token. Its login is its own, so that revoking one does not touch
// the other, and a login makes no logins: only the kernel of the schedd's host says who
// somebody is.
func (k *Store) AddToken(ctx context.Context, r TokenRequest, from string) (secret string, t APIToken, err error) {
	if err := r.check(); err != nil {
		return "", t, err
	}
	entry, _, err := k.exchange(ctx, r.Proof, from)
	if err != nil {
		return "", t, err
	}
	now := k.now()
	secret = tokenPrefix + newSecret()
	t = APIToken{ID: newID(), Name: r.Name, User: entry.User, Node: entry.Node, Scopes: r.Scopes, Made: now.UTC(),
		Expires: earlier(now.Add(r.Life), entry.Expires()).UTC()}
	s := &Session{User: entry.User, Node: entry.Node, Way: ByToken, Scopes: r.Scopes, Created: now, From: from,
		Expires: t.Expires, entry: entry, socket: k.socket, lastUsed: now, ended: make(chan struct{})}
	defer s.end()
	if t.Login, err = ownLogin(ctx, s); err == nil {
		d := digestOf(secret)
		t.Digest = hex.EncodeToString(d[:])
		t.Sealed, err = seal(secret, t.ID, entry)
	}
	if err == nil {
		err = k.tokens.update(now, func(all []APIToken) ([]APIToken, error) { return appendToken(all, t) })
	}
	if err != nil {
		k.revoke(ctx, s)
		return "", t, err
	}
	return secret, t, nil
}

func (r TokenRequest) check() error {
	switch {
	case r.Proof.Way() != ByLink && r.Proof.Way() != ByKey:
		return fmt.Errorf("token: %w: a provider or a password makes none", roost.PermissionDenied)
	case r.Name == "" || len(r.Name) > maxTokenName || strings.ContainsFunc(r.Name, unicode.IsControl):
		return fmt.Errorf("token: %w: give it a name of at most %d characters", roost.Invalid, maxTokenName)
	case len(r.Scopes) == 0:
		return fmt.Errorf("token: %w: name its scopes: some of %v", roost.Invalid, Scopes())
	case r.Life <= 0 || r.Life > MaxTokenLife:
		return fmt.Errorf("token: %w: it is good for at most %d days", roost.Invalid, int(MaxTokenLife.Hours()/24))
	}
	for _, scope := range r.Scopes {
		if !slices.Contains(Scopes(), scope) {
			return fmt.Errorf("token: %w: %.40q is no scope; there are %v", roost.Invalid, scope, Scopes())
		}
	}
	return nil
}

// ownLogin returns the id of a session's own login.
func ownLogin(ctx context.Context, s *Session) (string, error) {
	schedd, err := s.Schedd()
	if err != nil {
		return "", err
	}
	all, err := schedd.Logins(ctx, &wire.LoginsRequest{})
	if err != nil {
		return "", rpc.FromStatus(err)
	}
	for _, l := range all.GetLogins() {
		if l.GetOwn() {
			return l.GetId(), nil
		}
	}
	return "", fmt.Errorf("token: %w: the schedd does not list its login", roost.Internal)
}

func appendToken(all []APIToken, t APIToken) ([]APIToken, error) {
	held := 0
	for _, other := range all {
		if other.User == t.User {
			held++
		}
	}
	if held >= maxTokensOfUser || len(all) >= maxTokens {
		return nil, fmt.Errorf("token: %w: you have %d; remove one: roost web token rm", roost.Exhausted, held)
	}
	return append(all, t), nil
}

// FindToken returns the session of an API token.
func (k *Store) FindToken(secret, from string) (*Session, error) {
	now := k.now()
	d := digestOf(secret)
	k.mu.Lock()
	s := k.cached[d]
	k.mu.Unlock()
	text := hex.EncodeToString(d[:])
	t, ok := k.tokens.find(func(t *APIToken) bool { return t.Digest == text })
	if !ok || !strings.HasPrefix(secret, tokenPrefix) || !now.Before(t.Expires) {
		return nil, fmt.Errorf("token: %w: it is not known here, or it has expired: make one with roost web token add",
			roost.Unauthenticated)
	}
	if s != nil {
		s.NoteUse(now)
		return s, nil
	}
	entry, err := unseal(secret, t.ID, t.Sealed)
	if err != nil {
		return nil, fmt.Errorf("token %s: %w: its login cannot be read: %w", t.ID, roost.Unauthenticated, err)
	}
	s = &Session{ID: t.ID, User: t.User, Node: t.Node, Way: ByToken, Scopes: t.Scopes, Created: now, From: from,
		Expires: t.Expires, entry: entry, socket: k.socket, lastUsed: now, ended: make(chan struct{})}
	k.mu.Lock()
	defer k.mu.Unlock()
	if other := k.cached[d]; other != nil {
		return other, nil
	}
	k.cached[d] = s
	return s, nil
}

// Tokens lists the API tokens of a user, without their secrets.
func (k *Store) Tokens(user string) []APIToken {
	k.tokens.mu.Lock()
	defer k.tokens.mu.Unlock()
	var own []APIToken
	for _, t := range k.tokens.all {
		if t.User == user && k.now().Before(t.Expires) {
			t.Digest, t.Sealed = "", nil
			own = append(own, t)
		}
	}
	return own
}

// RemoveToken removes an API token of the session's user and revokes its login.
func (k *Store) RemoveToken(ctx context.Context, s *Session, id string) (APIToken, error) {
	t, ok := k.tokens.find(func(t *APIToken) bool { return t.ID == id && t.User == s.User })
	if !ok {
		return t, fmt.Errorf("token %.40q: %w: you have none with that id", id, roost.NotFound)
	}
	if err := k.tokens.update(k.now(), func(all []APIToken) ([]APIToken, error) {
		return slices.DeleteFunc(all, func(other APIToken) bool { return other.ID == id }), nil
	}); err != nil {
		return t, err
	}
	k.dropCached(func(other *Session) bool { return other.ID == id })
	schedd, err := s.Schedd()
	if err == nil {
		_, err = schedd.Logout(ctx, &wire.LogoutRequest{Id: t.Login})
	}
	if err = rpc.FromStatus(err); err != nil && !errors.Is(err, roost.NotFound) {
		return t, fmt.Errorf("token %s is removed, and its login is not: %w", id, err)
	}
	return t, nil
}

// sealer returns the cipher of a token's login.
func sealer(secret, id string) (cipher.AEAD, error) {
	key, err := hkdf.Key(sha256.New, []byte(secret), []byte(id), "roost web: login of an API token", 32)
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCM(block)
}

func seal(secret, id string, entry *login.LoginEntry) ([]byte, error) {
	aead, err := sealer(secret, id)
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(entry)
	if err != nil {
		return nil, err
	}
	nonce := make([]byte, aead.NonceSize())
	rand.Read(nonce)
	return aead.Seal(nonce, nonce, text, nil), nil
}

func unseal(secret, id string, sealed []byte) (*login.LoginEntry, error) {
	aead, err := sealer(secret, id)
	if err != nil {
		return nil, err
	}
	if len(sealed) < aead.NonceSize() {
		return nil, errors.New("it is too short")
	}
	text, err := aead.Open(nil, sealed[:aead.NonceSize()], sealed[aead.NonceSize():], nil)
	if err != nil {
		return nil, err
	}
	entry := &login.LoginEntry{}
	return entry, json.Unmarshal(text, entry)
}
