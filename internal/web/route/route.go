package route

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/roost-batch/roost/internal/document"
	"github.com/roost-batch/roost/internal/web/session"
)

// Rights says who may call a route. The zero value permits nobody.
type Rights uint8

// The rights.
const (
	noRights     Rights = iota
	Anonymous           // anybody, without a login
	OwnSession          // a browser's session; no API token
	ReadScope           // a session, or a token with scope read; the others likewise
	SubmitScope         //
	ActScope            //
	MetricsScope        //
	AdminScope          // a session whose user logged in a moment ago, or a token with scope admin
)

// Scope returns the scope that an API token needs; empty: none is enough.
func (r Rights) Scope() session.Scope {
	switch r {
	case ReadScope:
		return session.Read
	case SubmitScope:
		return session.Submit
	case ActScope:
		return session.Act
	case MetricsScope:
		return session.Metrics
	case AdminScope:
		return session.Admin
	}
	return ""
}

// LimitClass is a class of requests with common limits for each user.
type LimitClass uint8

// The classes.
const (
	noLimit     LimitClass = iota
	Reads                  // 20 a second, 60 at once
	Writes                 // 5 a second, 20 at once
	Expensive              // 2 at a time, and 8 of all users
	Logins                 // 5 a minute, by address
	Files                  // static files: by address, 100 a second
	Streams                // 8 at a time, and 1,024 of all users
	Simulations            // 1 at a time, and 2 of all users
	Terminals              // 8 at a time, and 128 of all users
)

// isLong reports whether a request of the class may go on for hours.
func (c LimitClass) isLong() bool { return c == Streams || c == Terminals }

// Param is a parameter of a route's query, for the API's description.
type Param struct{ Name, Description string }

// Route is a row of the table. Exactly one of View and Handle is set.
type Route struct {
	Method  string
	Pattern string // of the API, as http.ServeMux has it: "/v1/jobs/{id}"
	// pattern of the page that shows the same view, or of the form that does the same;
	// empty: there is none
	Page     string
	Template string // of the page
	Summary  string // for the API's description
	Rights   Rights
	Class    LimitClass
	Changes  bool // it changes state
	// the page's script writes styles, which the policy refuses elsewhere
	InlineStyles bool
	MaxBody      int64 // bytes of a request's body; 0: defaultBody
	Query        []Param
	Body         any // an example of the body's type; nil: it has none
	Reply        any // an example of the reply's type, where no view is made
	// member of the view that lists rows, which are also CSV or JSON Lines; empty: none
	Rows string

	// View makes what is shown, as JSON and as a page.
	View func(*Call) (any, error)
	// Handle answers by itself, or changes state.
	Handle func(*Call) error
}

// Bounds on one request.
const (
	defaultBody = 64 << 10
	MaxHeaders  = 16 << 10
	writeWindow = 10 * time.Second // for each write of an answer
	callTimeout = 30 * time.Second // of a request that is no stream
)

// Call is one request on its way through a route.
type Call struct {
	Writer  http.ResponseWriter
	Request *http.Request
	Route   *Route
	Session *session.Session // nil: anonymous
	Cookie  bool             // the session was found by its cookie
	From    string           // address of the client
	IsPage  bool             // the page's pattern was called, and not the API's
	AsOf    time.Time        // when what is shown was read; zero: now
	// pairs of name and value for the audit line of a write, without secrets
	Details []any

	mediaType string // of the answer; empty: JSON
	table     *Table
}

// Context returns the context of the request.
func (c *Call) Context() context.Context { return c.Request.Context() }

// PathValue returns a wildcard of the pattern.
func (c *Call) PathValue(name string) string { return c.Request.PathValue(name) }

// QueryValue returns a parameter of the query.
func (c *Call) QueryValue(name string) string { return c.Request.URL.Query().Get(name) }

// Note adds to the audit line of a write.
func (c *Call) Note(name string, value any) { c.Details = append(c.Details, name, value) }

// LinkNext names the next part of a list in the header Link (RFC 8288). It is the same
// address with another value of a parameter; an empty value: this is the last part.
func (c *Call) LinkNext(parameter, value string) {
	if c.IsPage || value == "" {
		return
	}
	q := c.Request.URL.Query()
	q.Set(parameter, value)
	c.Writer.Header().Set("Link", "<"+c.Request.URL.EscapedPath()+"?"+q.Encode()+`>; rel="next"`)
}

// NoteUnreachable names a host whose rows are missing in the header Roost-Unreachable.
func (c *Call) NoteUnreachable(host string) {
	if !c.IsPage {
		c.Writer.Header().Add("Roost-Unreachable", document.PrintableText(host))
	}
}

// IsSafe reports whether a method changes nothing (RFC 9110, section 9.2.1).
func IsSafe(method string) bool { return method == http.MethodGet || method == http.MethodHead }

// wantsPage reports whether a client asks for a page and not for JSON.
func wantsPage(r *http.Request) bool {
	return !strings.HasPrefix(r.URL.Path, "/v1/") && strings.Contains(r.Header.Get("Accept"), "text/html")
}
