package ownerpage

import (
	"fmt"
	"net/http"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/document"
	"github.com/roost-batch/roost/internal/web/page"
	"github.com/roost-batch/roost/internal/web/route"
)

// loginRequest is the body of a login.
type loginRequest struct {
	Token string `json:"token"`
}

// pauseRequest is the body of a pause.
type pauseRequest struct {
	For    string `json:"for"` // as in: 1h, until 18:00, for good
	Reason string `json:"reason"`
}

// routes returns the table of all routes.
func (v *Server) routes() []route.Route {
	return []route.Route{
		{Method: "GET", Page: "/login", Template: "own_login", Summary: "the page where the link leads",
			Rights: route.Anonymous, Class: route.Files, View: func(*route.Call) (any, error) { return nil, nil }},
		{Method: "POST", Pattern: "/v1/session", Page: "/login", Summary: "log in with the token of the link",
			Rights: route.Anonymous, Class: route.Logins, Changes: true, Body: loginRequest{}, Handle: v.logIn},
		{Method: "POST", Page: "/logout", Summary: "log out", Rights: route.OwnSession, Class: route.Writes,
			Changes: true, Handle: v.logOut},
		route.ZoneRoute(),
		{Method: "GET", Pattern: "/v1/machine", Page: "/{$}", Template: "own_machine",
			Summary: "what the pool does on this machine", Rights: route.OwnSession, Class: route.Reads,
			View:  func(c *route.Call) (any, error) { return v.machine.Show(c.Context()) },
			Reply: document.OwnMachine{}},
		{Method: "POST", Pattern: "/v1/machine/pause", Page: "/pause", Summary: "stop all tasks and let none come",
			Rights: route.OwnSession, Class: route.Writes, Changes: true, Body: pauseRequest{}, Handle: v.pause},
		{Method: "POST", Pattern: "/v1/machine/resume", Page: "/resume", Summary: "lend the machine again",
			Rights: route.OwnSession, Class: route.Writes, Changes: true,
			Handle: func(c *route.Call) error { return v.answer(c, v.machine.Resume(c.Context())) }},
		{Method: "GET", Pattern: "/static/{file}", Summary: "a script or style", Rights: route.Anonymous,
			Class: route.Files, Handle: static},
	}
}

// logIn makes a session of the token of the link.
func (v *Server) logIn(c *route.Call) error {
	var body loginRequest
	if err := c.Decode(&body, func(value func(string) string) { body.Token = value("token") }); err != nil {
		return err
	}
	_, cookie, err := v.store.LoginLocal(body.Token, v.user, c.From)
	if err != nil {
		return err
	}
	c.SetCookie(cookie)
	if c.IsPage {
		return c.Redirect("/")
	}
	return c.WriteJSON(http.StatusCreated, map[string]any{"v": document.Version, "user": v.user})
}

func (v *Server) logOut(c *route.Call) error {
	v.store.Logout(c.Context(), c.Session)
	c.SetCookie("")
	return c.Redirect("/login")
}

func (v *Server) pause(c *route.Call) error {
	var body pauseRequest
	if err := c.Decode(&body, func(value func(string) string) {
		body.For, body.Reason = value("for"), value("reason")
	}); err != nil {
		return err
	}
	return v.answer(c, v.machine.Pause(c.Context(), body.For, body.Reason))
}

// answer shows the machine after a change.
func (v *Server) answer(c *route.Call, err error) error {
	if err != nil {
		return err
	}
	if c.IsPage {
		return c.Redirect("/")
	}
	m, err := v.machine.Show(c.Context())
	if err != nil {
		return err
	}
	return c.WriteJSON(http.StatusOK, m)
}

// static serves a script or style.
func static(c *route.Call) error {
	text, kind, ok := page.Static(c.PathValue("file"))
	if !ok {
		return fmt.Errorf("static file: %w", roost.NotFound)
	}
	return c.WriteText(http.StatusOK, kind, text)
}
