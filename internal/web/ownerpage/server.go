package ownerpage

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/document"
	"github.com/roost-batch/roost/internal/web/page"
	"github.com/roost-batch/roost/internal/web/route"
	"github.com/roost-batch/roost/internal/web/session"
)

// Machine is the machine whose owner looks at the page. Errors are those of the commands
// roost mine, roost pause and roost resume.
type Machine interface {
	Show(ctx context.Context) (document.OwnMachine, error)
	// Pause stops all tasks and lets none come. words say how long, as for roost pause.
	Pause(ctx context.Context, words, reason string) error
	Resume(ctx context.Context) error
}

// Bounds on the server.
const (
	idleLife      = 30 * time.Minute // without a request it ends
	headerTimeout = 5 * time.Second
	stopTimeout   = time.Second
)

// cookieName differs from that of the pool's pages. Those may be on the same address, and
// cookies do not have a port.
const cookieName = "roost-mine"

// Server serves the page.
type Server struct {
	machine  Machine
	user     string
	pages    *page.Set
	store    *session.Store
	table    *route.Table
	lastUsed atomic.Int64 // unix nanoseconds
}

// New returns a server, and the token that logs its user in once.
func New(m Machine, user string) (v *Server, token string, err error) {
	v = &Server{machine: m, user: user}
	if v.pages, err = page.Load(); err != nil {
		return nil, "", err
	}
	log := slog.New(slog.DiscardHandler)
	v.store, token = session.OpenLocal(log)
	v.table = route.New(v.routes(), route.Options{Hosts: []string{"127.0.0.1", "localhost", "::1"}, Store: v.store,
		Log: log, Page: v.renderPage, Cookie: cookieName})
	return v, token, nil
}

// Listen opens a port that only this host reaches.
func Listen() (net.Listener, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("loopback port: %w: %w", roost.Unavailable, err)
	}
	return l, nil
}

// Run serves until ctx ends, or until nobody has looked for half an hour.
func (v *Server) Run(ctx context.Context, l net.Listener) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stored := make(chan struct{})
	go func() { defer close(stored); v.store.Run(ctx) }()
	s := &http.Server{Handler: v, ReadHeaderTimeout: headerTimeout, MaxHeaderBytes: route.MaxHeaders}
	v.lastUsed.Store(time.Now().UnixNano())
	go func() {
		v.awaitIdle(ctx)
		stop, done := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
		defer done()
		if s.Shutdown(stop) != nil {
			s.Close()
		}
	}()
	err := s.Serve(l)
	cancel()
	<-stored
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// awaitIdle returns when ctx ends, or after a time without requests.
func (v *Server) awaitIdle(ctx context.Context) {
	for {
		left := time.Until(time.Unix(0, v.lastUsed.Load()).Add(idleLife))
		if left <= 0 {
			return
		}
		timer := time.NewTimer(left)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return
		}
	}
}

// ServeHTTP serves a request.
func (v *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	v.lastUsed.Store(time.Now().UnixNano())
	v.table.ServeHTTP(w, r)
}

func (v *Server) renderPage(w io.Writer, name string, c *route.Call, data any) error {
	f := page.Frame{Path: c.Request.URL.Path, Query: c.Request.URL.Query(), Data: data, OwnMachine: true,
		Zone: c.Zone(), Here: c.Here()}
	if c.Session != nil {
		f.User = c.Session.User
	}
	return v.pages.Render(w, name, f)
}
