package session

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/identity/login"
)

// OpenLocal returns the store of a program that serves pages to the user who runs it. Its
// sessions have no login at a schedd. The token can be exchanged for a session once,
// within login.LinkLife.
func OpenLocal(log *slog.Logger) (k *Store, token string) {
	token = newSecret()
	digest := digestOf(token)
	return &Store{local: &digest, localUntil: time.Now().Add(login.LinkLife), log: log, now: time.Now,
		sessions: map[secretDigest]*Session{}, cached: map[secretDigest]*Session{}, tokens: &tokenFile{}}, token
}

// LoginLocal exchanges the token of OpenLocal for a session of a user, and returns the
// cookie's value.
func (k *Store) LoginLocal(token, user, from string) (s *Session, cookie string, err error) {
	k.mu.Lock()
	isRight := k.local != nil && *k.local == digestOf(token)
	isLate := isRight && !k.now().Before(k.localUntil)
	if isRight {
		k.local = nil
	}
	k.mu.Unlock()
	if !isRight {
		return nil, "", fmt.Errorf("login: %w: the link was used, or is not complete", roost.PermissionDenied)
	}
	if isLate {
		return nil, "", fmt.Errorf("login: %w: the link was good for %v: run the command again", roost.PermissionDenied,
			login.LinkLife)
	}
	now := k.now()
	s = &Session{ID: newID(), User: user, Way: ByLink, Created: now, From: from, Expires: now.Add(MaxAge),
		lastUsed: now, verified: now, ended: make(chan struct{})}
	cookie = newSecret()
	return s, cookie, k.add(digestOf(cookie), s)
}
