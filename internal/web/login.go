package web

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"io"
	"mime"
	"net/http"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/document"
	"github.com/roost-batch/roost/internal/identity/proof"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/web/route"
	"github.com/roost-batch/roost/internal/web/session"
	"github.com/roost-batch/roost/internal/web/view"
	"github.com/roost-batch/roost/internal/wire"
)

// logIn makes a session of a login token, or of a challenge that the key of a login has
// signed.
func (d *server) logIn(c *route.Call) error {
	var body view.LoginRequest
	if err := c.Decode(&body, func(value func(string) string) { body.Token = value("token") }); err != nil {
		return err
	}
	p, err := body.Proof()
	if err != nil {
		return err
	}
	return d.openSession(c, p)
}

// openSession makes a session of a proof and answers.
func (d *server) openSession(c *route.Call, p session.Proof) error {
	s, cookie, err := d.store.Login(c.Context(), p, c.From)
	c.Note("login", string(p.Way()))
	if err != nil {
		d.log.Warn("a login has failed", "from", c.From, "way", p.Way(), "error", err)
		if isRefusal(err) {
			d.metrics.CountLoginFailure(string(p.Way()))
		}
		return err
	}
	if c.Session != nil && c.Session.Way != session.ByToken { // the cookie is replaced, so that session would be lost
		d.store.Logout(c.Context(), c.Session)
	}
	c.Note("user", s.User)
	c.Note("session", s.ID)
	d.log.Info("login", "user", s.User, "session", s.ID, "from", c.From, "way", s.Way)
	c.SetCookie(cookie)
	if c.IsPage {
		return c.Redirect("/")
	}
	return c.WriteJSON(http.StatusCreated, view.SessionOf(s))
}

// isRefusal reports whether a login has failed because of what it brought, and not
// because somebody did not answer.
func isRefusal(err error) bool {
	switch rpc.KindOf(err) {
	case roost.Unauthenticated, roost.PermissionDenied, roost.NotFound, roost.Invalid:
		return true
	}
	return false
}

// logOut ends the session of a call.
func (d *server) logOut(c *route.Call) error {
	d.store.Logout(c.Context(), c.Session)
	c.SetCookie("")
	if c.IsPage {
		return c.Redirect("/login")
	}
	c.Writer.WriteHeader(http.StatusNoContent)
	return nil
}

// challenge answers with what the key of a login signs.
func (d *server) challenge(c *route.Call) error {
	begun, err := d.store.Begin(c.Context(), "", false)
	if err != nil {
		return err
	}
	return c.WriteJSON(http.StatusOK, view.Challenge{Version: document.Version, Node: begun.GetNode(),
		Challenge: begun.GetTicket()})
}

// beginProvider sends the browser to an OpenID provider. It stores nothing: the state of
// the login goes with the browser.
func (d *server) beginProvider(c *route.Call) error {
	begun, err := d.store.Begin(c.Context(), c.PathValue("provider"), c.QueryValue("fresh") == "1")
	if err != nil {
		d.log.Warn("a login cannot begin", "provider", c.PathValue("provider"), "from", c.From, "error", err)
		return err
	}
	c.SetLoginCookie(base64.RawURLEncoding.EncodeToString(begun.GetTicket()), proof.TicketLife)
	http.Redirect(c.Writer, c.Request, begun.GetUrl(), http.StatusSeeOther)
	return nil
}

// logInByProvider makes a session of what the browser has brought back from a provider.
func (d *server) logInByProvider(c *route.Call) error {
	a := &wire.ProviderProof{Provider: c.PathValue("provider")}
	if err := c.Decode(nil, func(value func(string) string) {
		a.State, a.Code, a.Issuer = value("state"), value("code"), value("iss")
	}); err != nil {
		return err
	}
	ticket, err := base64.RawURLEncoding.DecodeString(c.LoginCookie())
	if err != nil || len(ticket) == 0 {
		return fmt.Errorf("login: %w: it was begun in another browser, or too long ago: begin again",
			roost.PermissionDenied)
	}
	a.Ticket = ticket
	c.SetLoginCookie("", 0)
	return d.openSession(c, session.Proof{Provider: a})
}

// logInByPassword makes a session of a password, which is overwritten after use.
func (d *server) logInByPassword(c *route.Call) error {
	kind, _, err := mime.ParseMediaType(c.Request.Header.Get("Content-Type"))
	if err != nil || kind != "application/x-www-form-urlencoded" {
		return route.NewProblem(http.StatusUnsupportedMediaType, "the body is not that of a form", "")
	}
	text, err := io.ReadAll(c.Request.Body)
	defer clear(text)
	if err != nil {
		return err
	}
	user, password := formValue(text, "user"), formValue(text, "password")
	defer clear(password)
	c.Note("account", string(user))
	return d.openSession(c, session.Proof{Password: &wire.PasswordProof{User: string(user), Password: password}})
}

// formValue returns a field of a form without making strings of the others, because
// strings cannot be overwritten.
func formValue(text []byte, name string) []byte {
	for field := range bytes.SplitSeq(text, []byte("&")) {
		key, value, _ := bytes.Cut(field, []byte("="))
		if string(key) == name {
			return unescape(value)
		}
	}
	return nil
}

// unescape reads the encoding of forms. What is not encoded properly stays as it is.
func unescape(value []byte) []byte {
	out := make([]byte, 0, len(value))
	for i := 0; i < len(value); i++ {
		switch {
		case value[i] == '+':
			out = append(out, ' ')
		case value[i] == '%' && i+2 < len(value) && hexDigit(value[i+1]) >= 0 && hexDigit(value[i+2]) >= 0:
			out = append(out, byte(hexDigit(value[i+1])<<4|hexDigit(value[i+2])))
			i += 2
		default:
			out = append(out, value[i])
		}
	}
	return out
}

func hexDigit(b byte) int { return bytes.IndexByte([]byte("0123456789abcdef"), b|0x20*(b>>6)) }
