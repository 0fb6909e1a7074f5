package view

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/document"
	"github.com/roost-batch/roost/internal/web/route"
	"github.com/roost-batch/roost/internal/web/session"
	"github.com/roost-batch/roost/internal/wire"
)

// Session is who is logged in.
type Session struct {
	Version int             `json:"v"`
	User    string          `json:"user"`
	Node    string          `json:"node"`
	Way     string          `json:"way"`
	Scopes  []session.Scope `json:"scopes,omitempty"`
	Since   time.Time       `json:"since"`
	Expires time.Time       `json:"expires"`
	Fresh   bool            `json:"fresh"` // the login is young enough for changes of administrators
}

// SessionOf returns the view of a session.
func SessionOf(s *session.Session) Session {
	return Session{document.Version, s.User, s.Node, string(s.Way), s.Scopes, s.Created.UTC(), s.Expires.UTC(),
		s.IsFresh(time.Now())}
}

// CurrentSession shows the session of the call.
func CurrentSession(c *route.Call) (any, error) { return SessionOf(c.Session), nil }

// Logins are the logins of a user at the schedd, and the sessions of browsers among them.
type Logins struct {
	Version  int             `json:"v"`
	Node     string          `json:"node"`
	Logins   []LoginRecord   `json:"logins"`
	Sessions []SessionRecord `json:"sessions"`
}

// LoginRecord is a login at the schedd.
type LoginRecord struct {
	ID      string `json:"id"`
	User    string `json:"user"`
	From    string `json:"from"`
	Made    string `json:"made"`
	Expires string `json:"expires"`
	Revoked string `json:"revoked,omitempty"`
	Own     bool   `json:"own"` // it is the login of this session
}

// SessionRecord is a browser that is logged in.
type SessionRecord struct {
	ID      string    `json:"id"`
	From    string    `json:"from"`
	Since   time.Time `json:"since"`
	Expires time.Time `json:"expires"`
	Own     bool      `json:"own"`
}

// ListLogins returns the view of the logins of the call's user.
func ListLogins(store *session.Store) func(*route.Call) (any, error) {
	return func(c *route.Call) (any, error) {
		all := Logins{Version: document.Version, Logins: []LoginRecord{}, Sessions: []SessionRecord{}}
		err := ask(c, func(ctx context.Context, s wire.ScheddClient) error {
			reply, err := s.Logins(ctx, &wire.LoginsRequest{})
			all.Node = reply.GetNode()
			for _, l := range reply.GetLogins() {
				all.Logins = append(all.Logins, LoginRecord{l.GetId(), l.GetUser(), l.GetFrom(),
					document.Timestamp(l.GetMade()), document.Timestamp(l.GetExpires()),
					document.Timestamp(l.GetRevoked()), l.GetOwn()})
			}
			return err
		})
		for _, s := range store.Sessions(c.Session.User) {
			all.Sessions = append(all.Sessions, SessionRecord{s.ID, s.From, s.Created.UTC(), s.Expires.UTC(),
				s == c.Session})
		}
		slices.SortFunc(all.Sessions, func(a, b SessionRecord) int { return b.Since.Compare(a.Since) })
		return all, err
	}
}

// TokenRequest is the body of a request for an API token.
type TokenRequest struct {
	Login  string          `json:"login,omitempty"` // a login token of roost web token add
	Key    *KeyProof       `json:"key,omitempty"`   // instead of it, from other machines
	Name   string          `json:"name"`
	Scopes []session.Scope `json:"scopes"`
	Days   int             `json:"days"` // how long it is valid; 0: 30
}

// Token is an API token without its secret.
type Token struct {
	ID      string          `json:"id"`
	Name    string          `json:"name"`
	User    string          `json:"user"`
	Scopes  []session.Scope `json:"scopes"`
	Made    time.Time       `json:"made"`
	Expires time.Time       `json:"expires"`
	Login   string          `json:"login"`
}

// NewToken is an API token with its secret, which is shown once.
type NewToken struct {
	Version int    `json:"v"`
	Secret  string `json:"secret"`
	Token   Token  `json:"token"`
}

// Tokens are the API tokens of a user.
type Tokens struct {
	Version int     `json:"v"`
	Tokens  []Token `json:"tokens"`
}

func tokenOf(t session.APIToken) Token {
	return Token{t.ID, t.Name, t.User, t.Scopes, t.Made, t.Expires, t.Login}
}

// ListTokens returns the view of the API tokens of the call's user.
func ListTokens(store *session.Store) func(*route.Call) (any, error) {
	return func(c *route.Call) (any, error) {
		all := Tokens{document.Version, []Token{}}
		for _, t := range store.Tokens(c.Session.User) {
			all.Tokens = append(all.Tokens, tokenOf(t))
		}
		return all, nil
	}
}

// AddToken makes an API token of a login token, which says whose it is.
func AddToken(store *session.Store) func(*route.Call) error {
	return func(c *route.Call) error {
		var body TokenRequest
		if err := c.Decode(&body, nil); err != nil {
			return err
		}
		days := cmp.Or(body.Days, 30)
		if days < 1 || days > int(session.MaxTokenLife.Hours()/24) {
			return fmt.Errorf("days: %w: a token is good for 1 to %d days", roost.Invalid,
				int(session.MaxTokenLife.Hours()/24))
		}
		p, err := (&LoginRequest{Token: body.Login, Key: body.Key}).Proof()
		if err != nil {
			return err
		}
		secret, t, err := store.AddToken(c.Context(), session.TokenRequest{Proof: p, Name: body.Name,
			Scopes: body.Scopes, Life: time.Duration(days) * 24 * time.Hour}, c.From)
		if err != nil {
			return err
		}
		c.Note("user", t.User)
		c.Note("token", t.ID)
		return c.WriteJSON(201, NewToken{document.Version, secret, tokenOf(t)})
	}
}

// RemoveToken removes an API token of the call's user.
func RemoveToken(store *session.Store) func(*route.Call) error {
	return func(c *route.Call) error {
		t, err := store.RemoveToken(c.Context(), c.Session, c.PathValue("id"))
		if err != nil {
			return err
		}
		c.Note("token", t.ID)
		return c.WriteJSON(200, tokenOf(t))
	}
}

// limitOf reads the parameter limit.
func limitOf(c *route.Call) (int, error) {
	text := c.QueryValue("limit")
	if text == "" {
		return defaultLimit, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > maxLimit {
		return 0, fmt.Errorf("limit: %w: it is a number from 1 to %d", roost.Invalid, maxLimit)
	}
	return n, nil
}

const (
	defaultLimit = 100
	maxLimit     = 1000
)
