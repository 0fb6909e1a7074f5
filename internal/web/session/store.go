package session

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/wire"
)

// Bounds on sessions of browsers.
const (
	MaxAge      = 24 * time.Hour
	maxIdle     = 8 * time.Hour
	maxSessions = 4096
	maxOfUser   = 32 // one more ends the user's oldest
	sweepPeriod = time.Minute

	// tokenCacheIdle is how long the login of an API token stays in memory after its last
	// request.
	tokenCacheIdle = 5 * time.Minute
)

// Store owns the sessions of a web daemon. Those of browsers end with it.
type Store struct {
	socket string // of the schedd's logins
	tokens *tokenFile
	log    *slog.Logger
	now    func() time.Time

	local      *secretDigest // of the token of OpenLocal; nil: it was used, or there is none
	localUntil time.Time     // end of its life

	mu       sync.Mutex
	sessions map[secretDigest]*Session
	cached   map[secretDigest]*Session // of API tokens in use
}

// Open returns the store of a daemon. dir has the file of API tokens. The schedd takes
// logins at socket.
func Open(dir, socket string, log *slog.Logger) (*Store, error) {
	tokens, err := openTokenFile(dir)
	if err != nil {
		return nil, err
	}
	return &Store{socket: socket, tokens: tokens, log: log, now: time.Now,
		sessions: map[secretDigest]*Session{}, cached: map[secretDigest]*Session{}}, nil
}

// Run ends sessions whose time is over until ctx ends, and then all of them.
func (k *Store) Run(ctx context.Context) {
	ticks := time.NewTicker(sweepPeriod)
	defer ticks.Stop()
	for {
		select {
		case <-ticks.C:
			k.endSessions(func(s *Session) bool { return s.isExpired(k.now(), maxIdle) })
			k.dropCached(func(s *Session) bool { return s.isExpired(k.now(), tokenCacheIdle) })
		case <-ctx.Done():
			k.endSessions(func(*Session) bool { return true })
			k.dropCached(func(*Session) bool { return true })
			return
		}
	}
}

// endSessions ends those for which isOver holds.
func (k *Store) endSessions(isOver func(*Session) bool) { k.endIn(k.sessions, isOver) }

func (k *Store) dropCached(isOver func(*Session) bool) { k.endIn(k.cached, isOver) }

func (k *Store) endIn(all map[secretDigest]*Session, isOver func(*Session) bool) {
	var over []*Session
	k.mu.Lock()
	for d, s := range all {
		if isOver(s) {
			over = append(over, s)
			delete(all, d)
		}
	}
	k.mu.Unlock()
	for _, s := range over {
		s.end()
	}
}

// newSecret returns 256 random bits as text.
func newSecret() string {
	secret := make([]byte, 32)
	rand.Read(secret) // never fails (crypto/rand)
	return base64.RawURLEncoding.EncodeToString(secret)
}

// newID returns a name for lists.
func newID() string {
	id := make([]byte, 5)
	rand.Read(id)
	return hex.EncodeToString(id)
}

// Login exchanges a proof for a session, and returns the cookie's value. The schedd
// accepts a proof once.
func (k *Store) Login(ctx context.Context, p Proof, from string) (s *Session, cookie string, err error) {
	entry, proved, err := k.exchange(ctx, p, from)
	if err != nil {
		return nil, "", err
	}
	now := k.now()
	s = &Session{ID: newID(), User: entry.User, Node: entry.Node, Way: p.Way(), Created: now, From: from,
		Expires: earlier(now.Add(MaxAge), entry.Expires()), entry: entry, socket: k.socket, lastUsed: now,
		verified: now, Proved: earlier(proved, now), ended: make(chan struct{})}
	cookie = newSecret()
	if err := k.add(digestOf(cookie), s); err != nil {
		k.revoke(ctx, s)
		s.end()
		return nil, "", err
	}
	return s, cookie, nil
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// add adds a session. A user with too many loses the oldest.
func (k *Store) add(d secretDigest, s *Session) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.sessions) >= maxSessions {
		return fmt.Errorf("login: %w: %d sessions are open; try again later", roost.Exhausted, len(k.sessions))
	}
	var oldest secretDigest
	var first *Session
	held := 0
	for d, other := range k.sessions {
		if other.User != s.User {
			continue
		}
		if held++; first == nil || other.Created.Before(first.Created) {
			oldest, first = d, other
		}
	}
	if held >= maxOfUser {
		delete(k.sessions, oldest)
		go k.Close(first)
	}
	k.sessions[d] = s
	return nil
}

// Find returns the session of a cookie. An unknown one is of kind roost.Unauthenticated.
func (k *Store) Find(cookie string) (*Session, error) {
	now := k.now()
	k.mu.Lock()
	s := k.sessions[digestOf(cookie)]
	k.mu.Unlock()
	if s == nil || s.isExpired(now, maxIdle) {
		return nil, errOver
	}
	s.NoteUse(now)
	return s, nil
}

// Logout ends a session and revokes its login.
func (k *Store) Logout(ctx context.Context, s *Session) {
	k.revoke(ctx, s)
	k.End(s)
}

// Close is Logout without a caller who waits.
func (k *Store) Close(s *Session) {
	ctx, cancel := context.WithTimeout(context.Background(), scheddTimeout)
	defer cancel()
	k.Logout(ctx, s)
}

// End ends a session whose login holds no more.
func (k *Store) End(s *Session) {
	k.endSessions(func(other *Session) bool { return other == s })
	k.dropCached(func(other *Session) bool { return other == s })
	s.end()
}

func (k *Store) revoke(ctx context.Context, s *Session) {
	if s.entry == nil {
		return
	}
	schedd, err := s.Schedd()
	if err == nil {
		_, err = schedd.Logout(ctx, &wire.LogoutRequest{})
	}
	if err != nil && !IsLoginError(rpc.FromStatus(err)) {
		k.log.Warn("a login was not revoked: see roost logins", "user", s.User, "error", err)
	}
}

// Sessions lists the sessions of a user's browsers.
func (k *Store) Sessions(user string) (all []*Session) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, s := range k.sessions {
		if s.User == user {
			all = append(all, s)
		}
	}
	return all
}

// Count returns the number of open sessions.
func (k *Store) Count() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.sessions)
}
