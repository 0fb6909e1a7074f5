package terminal

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"sync"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/web/session"
)

// Bounds on tickets.
const (
	ticketLife = 10 * time.Second
	maxTickets = 1024
)

// ticketStore owns the tickets that were issued and not used. It stores their digests.
type ticketStore struct {
	mu  sync.Mutex
	of  map[[sha256.Size]byte]ticket
	now func() time.Time
}

// ticket says what a ticket is good for.
type ticket struct {
	session *session.Session
	task    string
	expires time.Time
}

func newTicketStore() *ticketStore {
	return &ticketStore{of: map[[sha256.Size]byte]ticket{}, now: time.Now}
}

// issue makes a ticket for a task and a session.
func (k *ticketStore) issue(s *session.Session, task string) (secret string, expires time.Time, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := k.now()
	for digest, t := range k.of {
		if !now.Before(t.expires) {
			delete(k.of, digest)
		}
	}
	if len(k.of) >= maxTickets {
		return "", expires, fmt.Errorf("terminal: %w: %d are being opened; try again in a moment", roost.Exhausted,
			len(k.of))
	}
	random := make([]byte, 32)
	rand.Read(random) // never fails (crypto/rand)
	secret, expires = base64.RawURLEncoding.EncodeToString(random), now.Add(ticketLife)
	k.of[sha256.Sum256([]byte(secret))] = ticket{s, task, expires}
	return secret, expires, nil
}

// take uses up a ticket, and reports whether it was good for the task and the session. A
// ticket that somebody tried elsewhere is used up as well.
func (k *ticketStore) take(secret string, s *session.Session, task string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	digest := sha256.Sum256([]byte(secret))
	t, ok := k.of[digest]
	delete(k.of, digest)
	return ok && t.session == s && t.task == task && k.now().Before(t.expires)
}
