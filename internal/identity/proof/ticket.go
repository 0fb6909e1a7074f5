package proof

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/roost-batch/roost"
)

// Bounds on tickets.
const (
	TicketLife   = 10 * time.Minute
	maxTicket    = 4096  // bytes of a sealed one
	maxUsed      = 65536 // tickets that were spent in that time
	futureMargin = time.Minute
)

// purpose is what a ticket is for. One for a provider is no challenge.
type purpose string

const (
	forProvider  purpose = "provider"
	forStatement purpose = "statement"
)

// ticket is the state of a login that has begun.
type ticket struct {
	ID       string    `json:"id"`
	Purpose  purpose   `json:"purpose"`
	Made     time.Time `json:"made"`
	Provider string    `json:"provider,omitempty"`
	State    string    `json:"state,omitempty"`    // of OAuth 2.0: the same browser comes back
	Nonce    string    `json:"nonce,omitempty"`    // of OpenID Connect: the ID token is for this login
	Verifier string    `json:"verifier,omitempty"` // of PKCE: who gets the code cannot use it
	Fresh    bool      `json:"fresh,omitempty"`
}

// ticketOffice seals and opens tickets. Its key ends with the daemon.
type ticketOffice struct {
	aead cipher.AEAD

	mu   sync.Mutex
	used map[string]time.Time // when a ticket was spent, by its id
}

func newTicketOffice() (*ticketOffice, error) {
	key := make([]byte, 32)
	rand.Read(key) // never fails (crypto/rand)
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	aead, err := cipher.NewGCM(block)
	return &ticketOffice{aead: aead, used: map[string]time.Time{}}, err
}

// randomText returns 256 random bits as text.
func randomText() string {
	b := make([]byte, 32)
	rand.Read(b)
	return base64.RawURLEncoding.EncodeToString(b)
}

// seal returns a ticket that only this office can read.
func (o *ticketOffice) seal(t ticket) ([]byte, error) {
	text, err := json.Marshal(t)
	if err != nil {
		return nil, err
	}
	nonce := make([]byte, o.aead.NonceSize())
	rand.Read(nonce)
	return o.aead.Seal(nonce, nonce, text, []byte(t.Purpose)), nil
}

// spend opens a ticket and makes it useless.
func (o *ticketOffice) spend(sealed []byte, use purpose, now time.Time) (t ticket, err error) {
	n := o.aead.NonceSize()
	if len(sealed) < n || len(sealed) > maxTicket {
		return t, fmt.Errorf("login: %w: it was begun in another browser, or too long ago: begin again",
			roost.PermissionDenied)
	}
	text, err := o.aead.Open(nil, sealed[:n], sealed[n:], []byte(use))
	if err == nil {
		err = json.Unmarshal(text, &t)
	}
	switch {
	case err != nil:
		return t, fmt.Errorf("login: %w: it was not begun here, or the schedd has started again since: begin again",
			roost.PermissionDenied)
	case now.Sub(t.Made) > TicketLife || t.Made.Sub(now) > futureMargin:
		return t, fmt.Errorf("login: %w: it was begun more than %v ago: begin again", roost.PermissionDenied,
			TicketLife)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	for id, at := range o.used {
		if now.Sub(at) > TicketLife+futureMargin {
			delete(o.used, id)
		}
	}
	if _, again := o.used[t.ID]; again {
		return t, fmt.Errorf("login: %w: this answer was used already: begin again", roost.PermissionDenied)
	}
	if len(o.used) >= maxUsed {
		return t, fmt.Errorf("login: %w: too many log in; try again in %v", roost.Exhausted, TicketLife)
	}
	o.used[t.ID] = now
	return t, nil
}
