package web

import (
	"net/http"

	"github.com/roost-batch/roost/internal/web/route"
	"github.com/roost-batch/roost/internal/web/session"
	"github.com/roost-batch/roost/internal/web/view"
)

// routes returns the table of all routes.
func (d *server) routes() []route.Route {
	all := append(d.sessionRoutes(), jobRoutes()...)
	return append(append(all, poolRoutes()...), d.serviceRoutes()...)
}

// sessionRoutes are those of logins and API tokens.
func (d *server) sessionRoutes() []route.Route {
	return []route.Route{
		{Method: "GET", Page: "/login", Template: "login", Summary: "the page where links of roost web login lead",
			Rights: route.Anonymous, Class: route.Files, View: view.Login},
		{Method: "POST", Pattern: "/v1/session", Page: "/login", Summary: "log in with a login token",
			Rights: route.Anonymous, Class: route.Logins, Changes: true, Body: view.LoginRequest{},
			Reply: view.Session{}, Handle: d.logIn},
		{Method: "GET", Pattern: "/v1/session", Summary: "who is logged in", Rights: route.ReadScope,
			Class: route.Reads, View: view.CurrentSession, Reply: view.Session{}},
		{Method: "DELETE", Pattern: "/v1/session", Summary: "log out", Rights: route.OwnSession, Class: route.Writes,
			Changes: true, Handle: d.logOut},
		{Method: "POST", Page: "/logout", Summary: "log out", Rights: route.OwnSession, Class: route.Writes,
			Changes: true, Handle: d.logOut},
		{Method: "GET", Pattern: "/v1/logins", Summary: "the user's logins and browsers", Rights: route.ReadScope,
			Class: route.Reads, View: view.ListLogins(d.store), Reply: view.Logins{}},
		{Method: "GET", Pattern: "/v1/tokens", Summary: "the user's API tokens", Rights: route.OwnSession,
			Class: route.Reads, View: view.ListTokens(d.store), Reply: view.Tokens{}},
		{Method: "POST", Pattern: "/v1/tokens", Summary: "make an API token of a login token",
			Rights: route.Anonymous, Class: route.Logins, Changes: true, Body: view.TokenRequest{},
			Reply: view.NewToken{}, Handle: view.AddToken(d.store)},
		{Method: "DELETE", Pattern: "/v1/tokens/{id}", Summary: "remove an API token", Rights: route.OwnSession,
			Class: route.Writes, Changes: true, Reply: view.Token{}, Handle: view.RemoveToken(d.store)},
	}
}

// jobRoutes are those of jobs and tasks.
func jobRoutes() []route.Route {
	list := []route.Param{{Name: "all", Description: "1: jobs of all users"},
		{Name: "history", Description: "1: also jobs that have ended"},
		{Name: "state", Description: "only jobs with tasks in this state; may be repeated"},
		{Name: "select", Description: "selectors as for roost jobs, separated by blanks"},
		{Name: "limit", Description: "at most this many, 1 to 1000; 100 by default"},
		{Name: "after", Description: "the cursor next of the part before"}}
	return []route.Route{
		{Method: "GET", Pattern: "/v1/jobs", Page: "/jobs", Template: "jobs", Summary: "jobs, the newest first",
			Rights: route.ReadScope, Class: route.Reads, Query: list, View: view.Jobs, Reply: view.JobList{}},
		{Method: "GET", Pattern: "/v1/jobs/{id}", Page: "/jobs/{id}", Template: "job",
			Summary: "a job or task, and what happened to it", Rights: route.ReadScope, Class: route.Reads,
			View: view.Job, Reply: view.JobDetail{}},
		{Method: "GET", Pattern: "/v1/jobs/{id}/events", Summary: "what happened to a job or task",
			Rights: route.ReadScope, Class: route.Reads, View: view.Events, Reply: view.EventList{}},
		{Method: "GET", Pattern: "/v1/jobs/{id}/why", Summary: "why a job or task does not run",
			Rights: route.ReadScope, Class: route.Expensive, View: view.Why},
	}
}

// poolRoutes are those of the pool.
func poolRoutes() []route.Route {
	return []route.Route{
		{Method: "GET", Pattern: "/v1/overview", Page: "/{$}", Template: "overview", Summary: "the state of the pool",
			Rights: route.ReadScope, Class: route.Reads, View: view.ShowOverview, Reply: view.Overview{}},
	}
}

// serviceRoutes are those of the daemon itself.
func (d *server) serviceRoutes() []route.Route {
	return []route.Route{
		{Method: "GET", Pattern: "/healthz", Summary: "the daemon lives", Rights: route.Anonymous,
			Class: route.Files, Handle: d.health},
		{Method: "GET", Pattern: "/readyz", Summary: "the daemon and its schedd answer", Rights: route.Anonymous,
			Class: route.Files, Handle: d.ready},
		{Method: "GET", Pattern: "/static/{file}", Summary: "a script or style of the pages", Rights: route.Anonymous,
			Class: route.Files, Handle: d.static},
	}
}

// logIn makes a session of a login token.
func (d *server) logIn(c *route.Call) error {
	var body view.LoginRequest
	if err := c.Decode(&body, func(value func(string) string) { body.Token = value("token") }); err != nil {
		return err
	}
	s, cookie, err := d.store.Login(c.Context(), body.Token, c.From)
	if err != nil {
		d.log.Warn("a login has failed", "from", c.From, "error", err)
		return err
	}
	if c.Session != nil && c.Session.Way != session.ByToken { // the cookie is replaced, so that session would be lost
		d.store.Logout(c.Context(), c.Session)
	}
	c.Note("user", s.User)
	c.Note("session", s.ID)
	d.log.Info("login", "user", s.User, "session", s.ID, "from", c.From)
	c.SetCookie(cookie)
	if c.IsPage {
		return c.Redirect("/")
	}
	return c.WriteJSON(http.StatusCreated, view.SessionOf(s))
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
