package route

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"runtime/debug"
	"strings"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/metrics"
	"github.com/roost-batch/roost/internal/web/session"
)

// Options are what a table needs to serve.
type Options struct {
	Hosts  []string // names that a request's Host may have, without ports
	Secure bool     // browsers reach the daemon by TLS
	Store  *session.Store
	Log    *slog.Logger
	Audit  io.Writer // gets a line for each write
	// counts requests; nil: nobody does
	Metrics *metrics.Web
	// name of the cookie where two programs may have addresses that differ by their ports
	// alone; empty: CookieName
	Cookie string
	// Page renders a template of a page. name is "problem" for an error.
	Page func(w io.Writer, name string, c *Call, data any) error
}

// Table serves routes. It is an http.Handler.
type Table struct {
	Options
	routes  []Route
	hosts   []string
	cookie  string
	mux     *http.ServeMux
	origins http.CrossOriginProtection
	limits  *limiter
	audit   *slog.Logger
}

// New makes the table of some routes. It panics if one has no rights, is a read that
// changes state, or the like: that is a bug of the table.
func New(routes []Route, opt Options) *Table {
	t := &Table{Options: opt, routes: routes, hosts: opt.Hosts, cookie: CookieName(opt.Secure),
		mux: http.NewServeMux(), limits: newLimiter()}
	if opt.Metrics == nil {
		t.Metrics = metrics.NewWeb(nil)
	}
	if opt.Cookie != "" {
		t.cookie = opt.Cookie
	}
	if opt.Audit != nil {
		t.audit = slog.New(slog.NewJSONHandler(opt.Audit, nil))
	}
	for i := range routes {
		r := &routes[i]
		if err := r.check(); err != nil {
			panic(fmt.Sprintf("route %s %s: %v", r.Method, r.Pattern, err))
		}
		if r.Pattern != "" {
			t.mux.Handle(r.Method+" "+r.Pattern, t.handler(r, false))
		}
		if r.Page != "" {
			t.mux.Handle(r.Method+" "+r.Page, t.handler(r, true))
		}
	}
	return t
}

// CookieName returns the name of the session's cookie. Browsers accept the prefix only
// over TLS, and then from this host alone.
func CookieName(secure bool) string {
	if secure {
		return "__Host-roost"
	}
	return "roost"
}

// check returns what is wrong with a row, or nil.
func (r *Route) check() error {
	switch {
	case r.Rights == noRights:
		return errors.New("it has no rights")
	case r.Class == noLimit:
		return errors.New("it has no class of limits")
	case (r.View == nil) == (r.Handle == nil):
		return errors.New("it needs a view or a handler")
	case r.Changes == IsSafe(r.Method):
		return errors.New("GET changes nothing, and other methods do")
	case r.Pattern == "" && r.Page == "":
		return errors.New("it has no pattern")
	case r.Rows != "" && r.Reply != nil:
		_, err := rowListOf(r.Reply, r.Rows)
		return err
	}
	return nil
}

// Routes returns the rows.
func (t *Table) Routes() []Route { return t.routes }

// ServeHTTP serves a request up to its route.
func (t *Table) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	setSecurityHeaders(w.Header(), t.Secure)
	writer := &deadlineWriter{ResponseWriter: w}
	defer t.observe(writer, t.Metrics.RequestTime.Now())
	c := &Call{Writer: writer, Request: r, From: clientAddress(r), table: t}
	for _, check := range []func(*http.Request) *Problem{t.checkHost, t.checkOrigin} {
		if p := check(r); p != nil {
			t.fail(c, p)
			return
		}
	}
	handler, pattern := t.mux.Handler(r)
	if pattern == "" {
		t.failUnrouted(c, handler)
		return
	}
	t.mux.ServeHTTP(c.Writer, r)
}

// observe counts an answer that has been written, or was broken off.
func (t *Table) observe(w *deadlineWriter, began time.Time) {
	if t.Metrics.RequestTime != nil {
		t.Metrics.ObserveRequest(time.Since(began), int(w.class), cmp.Or(w.status, http.StatusOK))
	}
}

// failUnrouted answers where no route matches. The mux knows whether another method
// would.
func (t *Table) failUnrouted(c *Call, handler http.Handler) {
	probe := &statusProbe{header: http.Header{}}
	handler.ServeHTTP(probe, c.Request)
	switch {
	case probe.status == http.StatusMethodNotAllowed:
		c.Writer.Header().Set("Allow", probe.header.Get("Allow"))
		t.fail(c, NewProblem(probe.status, "that method is not for this address", "see /openapi.json"))
	case probe.status >= 300 && probe.status < 400:
		handler.ServeHTTP(c.Writer, c.Request) // to the clean path
	default:
		t.fail(c, NewProblem(http.StatusNotFound, "there is nothing at this address", "see /openapi.json"))
	}
}

// statusProbe takes the status and headers of an answer and drops its body.
type statusProbe struct {
	header http.Header
	status int
}

func (p *statusProbe) Header() http.Header         { return p.header }
func (p *statusProbe) WriteHeader(status int)      { p.status = status }
func (p *statusProbe) Write(b []byte) (int, error) { return len(b), nil }

// deadlineWriter gives each write of an answer the same time. So a client that does not
// read cannot hold a connection, and one that reads slowly gets all of a long answer.
type deadlineWriter struct {
	http.ResponseWriter
	wrote  bool
	status int        // that was answered; 0: none yet
	class  LimitClass // of the route that answers; 0: none does
}

func (d *deadlineWriter) Unwrap() http.ResponseWriter { return d.ResponseWriter }

func (d *deadlineWriter) WriteHeader(status int) {
	d.extend()
	d.status = status
	d.ResponseWriter.WriteHeader(status)
}

func (d *deadlineWriter) Write(b []byte) (int, error) {
	d.extend()
	return d.ResponseWriter.Write(b)
}

// extend moves the deadline of the connection, which may have that of an answer before.
func (d *deadlineWriter) extend() {
	d.wrote = true
	http.NewResponseController(d.ResponseWriter).SetWriteDeadline(time.Now().Add(writeWindow))
}

// handler returns the handler of a row.
func (t *Table) handler(route *Route, isPage bool) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c := &Call{Writer: w, Request: r, Route: route, From: clientAddress(r), IsPage: isPage, table: t}
		if d, ok := w.(*deadlineWriter); ok {
			d.class = route.Class
		}
		defer t.recoverPanic(c)
		if isPage && route.InlineStyles {
			w.Header().Set("Content-Security-Policy", inlineStylePolicy)
		}
		err := t.admit(c)
		if err == nil {
			err = t.serveLimited(c)
		}
		if err != nil {
			t.fail(c, err)
		}
	})
}

// recoverPanic answers a request whose handler has panicked.
func (t *Table) recoverPanic(c *Call) {
	cause := recover()
	if cause == nil {
		return
	}
	if cause == http.ErrAbortHandler {
		panic(cause)
	}
	t.Log.Error("a request has failed", "route", c.Route.name(), "panic", cause, "stack", string(debug.Stack()))
	t.fail(c, fmt.Errorf("%w: %v", roost.Internal, cause))
}

func (r *Route) name() string { return r.Method + " " + strings.TrimSpace(r.Pattern+" "+r.Page) }

// admit finds the session of a call and checks its rights.
func (t *Table) admit(c *Call) error {
	if err := t.findSession(c); err != nil && c.Route.Rights != Anonymous {
		return err
	}
	if c.Route.Rights == Anonymous {
		return nil
	}
	if c.Session == nil {
		return fmt.Errorf("%w: this needs a login", roost.Unauthenticated)
	}
	if err := c.Session.Verify(c.Context(), time.Now()); err != nil {
		return t.checkLogin(c, err)
	}
	return c.checkRights(time.Now())
}

// checkRights returns why the session of a call may not make it.
func (c *Call) checkRights(now time.Time) error {
	s, rights := c.Session, c.Route.Rights
	switch {
	case rights == OwnSession && s.Way == session.ByToken:
		return fmt.Errorf("%w: an API token cannot do this; a browser's session can", roost.PermissionDenied)
	case rights != OwnSession && !s.May(rights.Scope()):
		return fmt.Errorf("%w: the API token has not the scope %s", roost.PermissionDenied, rights.Scope())
	case rights == AdminScope && !s.IsFresh(now):
		return &Problem{Type: problemType("stale-login"), Title: "login too old", Status: http.StatusForbidden,
			Detail: "this needs a login that is younger than 15 minutes", Kind: "stale-login",
			Cure: "log in again: on the page for that, or with roost web login"}
	}
	return nil
}

// findSession finds the session of a cookie or token. A request has one of both.
func (t *Table) findSession(c *Call) (err error) {
	if auth := c.Request.Header.Get("Authorization"); auth != "" {
		scheme, secret, _ := strings.Cut(auth, " ")
		if !strings.EqualFold(scheme, "Bearer") {
			return fmt.Errorf("%w: Authorization has the scheme Bearer here", roost.Unauthenticated)
		}
		if c.Session, err = t.Store.FindToken(strings.TrimSpace(secret), c.From); err != nil {
			t.Metrics.CountLoginFailure(string(session.ByToken))
		}
		return err
	}
	cookie, err := c.Request.Cookie(t.cookie)
	if err != nil {
		return nil
	}
	if c.Session, err = t.Store.Find(cookie.Value); err == nil {
		c.Cookie = true
	}
	return err
}

// checkLogin ends a session whose login the schedd refuses, and returns the error.
func (t *Table) checkLogin(c *Call, err error) error {
	err = received(err)
	if c.Session != nil && session.IsLoginError(err) {
		t.Store.End(c.Session)
	}
	return err
}

// serveLimited serves an admitted call within its limits.
func (t *Table) serveLimited(c *Call) error {
	done, p := t.limits.begin(c.Route.Class, c.caller())
	if p != nil {
		t.Metrics.Limited.Inc(int(c.Route.Class))
		return p
	}
	defer done()
	underWay := t.Metrics.ActiveRequests
	if c.Route.Class.isLong() {
		underWay = t.Metrics.Streams
	}
	underWay.Add(1)
	defer underWay.Add(-1)
	size := c.Route.MaxBody
	if size == 0 {
		size = defaultBody
	}
	c.Request.Body = http.MaxBytesReader(c.Writer, c.Request.Body, size)
	deadline := time.Now().Add(callTimeout)
	if c.Route.Class.isLong() { // net/http takes a deadline that passes for the end of the client
		deadline = time.Time{}
	}
	http.NewResponseController(c.Writer).SetReadDeadline(deadline)
	if !c.Route.Class.isLong() {
		ctx, cancel := context.WithTimeout(c.Context(), callTimeout)
		defer cancel()
		c.Request = c.Request.WithContext(ctx)
	}
	err := t.serve(c)
	if c.Route.Changes {
		t.auditWrite(c, err)
	}
	return t.checkLogin(c, err)
}

// BeginExpensive counts a call in the class Expensive as well, where its parameters make
// it one. done ends that.
func (c *Call) BeginExpensive() (done func(), err error) {
	done, p := c.table.limits.begin(Expensive, c.caller())
	if p != nil {
		c.table.Metrics.Limited.Inc(int(Expensive))
		return nil, p
	}
	return done, nil
}

// caller returns whom the limits of a call count.
func (c *Call) caller() string {
	if c.Session == nil || c.Route.Class == Logins || c.Route.Class == Files {
		return "address " + c.From
	}
	return "user " + c.Session.User
}

func (t *Table) serve(c *Call) error {
	if c.Route.Handle != nil {
		return c.Route.Handle(c)
	}
	if err := c.chooseMediaType(); err != nil {
		return err
	}
	data, err := c.Route.View(c)
	if err != nil {
		return err
	}
	return c.Show(data)
}

// fail answers with an error.
func (t *Table) fail(c *Call, err error) {
	p := ProblemOf(err)
	if p.Status >= http.StatusInternalServerError && p.Kind == "internal" {
		t.Log.Error("a request has failed", "path", c.Request.URL.Path, "error", err)
	}
	if d, ok := c.Writer.(*deadlineWriter); ok && d.wrote {
		panic(http.ErrAbortHandler) // half an answer must not look like a whole one
	}
	if !wantsPage(c.Request) || t.Page == nil {
		writeProblem(c.Writer, p)
		return
	}
	if p.Status == http.StatusUnauthorized && IsSafe(c.Request.Method) && c.Request.URL.Path != "/login" {
		http.Redirect(c.Writer, c.Request, "/login", http.StatusSeeOther)
		return
	}
	setRetryAfter(c.Writer.Header(), p)
	t.writePage(c, p.Status, "problem", p)
}

// auditWrite writes a line about a write: who, whence, how logged in, and what came of
// it.
func (t *Table) auditWrite(c *Call, err error) {
	result := "done"
	if err != nil {
		result = ProblemOf(err).Detail
	}
	c.Audit("write", append([]any{"result", result}, c.Details...)...)
}

// Audit writes a line to the log of writes about what the caller does.
func (c *Call) Audit(what string, details ...any) {
	if c.table.audit == nil {
		return
	}
	args := []any{"route", c.Route.name(), "path", c.Request.URL.Path, "from", c.From}
	if s := c.Session; s != nil {
		args = append(args, "user", s.User, "session", s.ID, "way", string(s.Way))
	}
	c.table.audit.Info(what, append(args, details...)...)
}
