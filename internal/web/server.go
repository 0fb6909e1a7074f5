package web

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/netutil"
	"golang.org/x/sync/errgroup"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/config"
	"github.com/roost-batch/roost/internal/daemon"
	"github.com/roost-batch/roost/internal/metrics"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/web/jobtext"
	"github.com/roost-batch/roost/internal/web/manual"
	"github.com/roost-batch/roost/internal/web/page"
	"github.com/roost-batch/roost/internal/web/route"
	"github.com/roost-batch/roost/internal/web/session"
	"github.com/roost-batch/roost/internal/web/simchild"
	"github.com/roost-batch/roost/internal/web/stream"
	"github.com/roost-batch/roost/internal/web/terminal"
	"github.com/roost-batch/roost/internal/web/view"
	"github.com/roost-batch/roost/man"
)

// Bounds on connections.
const (
	maxConns      = 2048 // of each address; a slow client is cut off by headerTimeout
	headerTimeout = 5 * time.Second
	idleTimeout   = time.Minute
	stopTimeout   = 2 * time.Second
)

// server is the daemon.
type server struct {
	node  *config.Node
	log   *slog.Logger
	store *session.Store
	pages *page.Set
	man   view.ManualLoader
	pool  view.Pool

	metrics     *metrics.Web
	certificate *certificateWatch // nil: the pages have no TLS

	parser    jobtext.Parser
	simulator simchild.Simulator

	cursors *view.Cursors
	hubs    *stream.Hubs
	shells  *terminal.Server
	table   *route.Table
}

// Run serves until ctx ends.
func Run(ctx context.Context, n *config.Node) error {
	if n.Web == nil {
		return fmt.Errorf("node %s: %w: the node file has no web block", n.Name, roost.BadConfig)
	}
	log := daemon.Logger("web")
	watch := watchCertificate(n.Web, log)
	secure, err := pageTLS(n.Web) // once: the account that it takes on may not read the key
	if err != nil {
		return err
	}
	listeners, err := openListeners(n.Web, secure)
	if err != nil {
		return err
	}
	defer closeAll(listeners)
	if err := os.MkdirAll(n.WebDir(), 0o700); err != nil {
		return fmt.Errorf("directory %s: %w: %w", n.WebDir(), roost.NoOutput, err)
	}
	// later nobody could permit the daemon to read it
	if err := os.MkdirAll(n.Web.Checkpoints, 0o755); n.Web.Checkpoints != "" && err != nil {
		log.Warn("there are no pages of past instants", "error", err)
	}
	exporter, err := openMetrics(n, secure, log) // before: root alone may be able to read its tokens
	if err != nil {
		return err
	}
	if err := dropRoot(n); err != nil {
		exporter.Close()
		return err
	}
	audit, err := openAudit(n.WebDir())
	if err != nil {
		exporter.Close()
		return err
	}
	defer audit.Close()
	d, err := newServer(n, log, audit, metrics.NewWeb(exporter.Registry()))
	if err != nil {
		exporter.Close()
		return err
	}
	if err := d.confine(); err != nil {
		exporter.Close()
		return err
	}
	d.certificate = watch
	if err = d.serve(ctx, listeners, exporter); errors.Is(err, errCertificateChanged) {
		log.Info("ending, to begin again with the new certificate")
		return nil
	}
	return err
}

// openMetrics opens the address of the daemon's metrics. It speaks TLS as the pages do:
// the daemon has no certificate of the pool.
func openMetrics(n *config.Node, secure *tls.Config, log *slog.Logger) (*metrics.Exporter, error) {
	exporter, err := metrics.Open(n, "web", "", nil, log)
	if err != nil || exporter == nil {
		return nil, err
	}
	if secure != nil {
		exporter.UseTLS(secure)
	}
	return exporter, nil
}

// pageTLS returns the TLS of the pages, nil if they have none.
func pageTLS(w *config.WebSettings) (*tls.Config, error) {
	if w.Certificate == "" {
		return nil, nil
	}
	pair, err := tls.LoadX509KeyPair(w.Certificate, w.Key)
	if err != nil {
		return nil, fmt.Errorf("web: %w: %w", roost.BadConfig, err)
	}
	return &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12,
		NextProtos: []string{"h2", "http/1.1"}}, nil
}

// openAudit opens the log of writes, which only grows.
func openAudit(dir string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, "audit.log"), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("log of writes: %w: %w", roost.NoOutput, err)
	}
	return f, nil
}

// loadManual returns the manual of this program. It is converted when somebody first asks
// for it: that takes a third of the CPU time in which the daemon starts.
func loadManual() view.ManualLoader {
	return sync.OnceValues(func() (*manual.Manual, error) { return manual.Load(man.ManualPages) })
}

// newServer makes the daemon without its listeners.
func newServer(n *config.Node, log *slog.Logger, audit io.Writer, counts *metrics.Web) (*server, error) {
	store, err := session.Open(n.WebDir(), n.LoginSocket(), log)
	if err != nil {
		return nil, err
	}
	pages, err := page.Load()
	if err != nil {
		return nil, err
	}
	program, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("own program: %w: %w", roost.NoInput, err)
	}
	cursors, err := view.NewCursors()
	if err != nil {
		return nil, err
	}
	d := &server{node: n, cursors: cursors, log: log, store: store, pages: pages, man: loadManual(),
		parser:    jobtext.Parser{Program: program},
		simulator: simchild.Simulator{Program: filepath.Join(filepath.Dir(program), "roost-sim")},
		hubs:      stream.New(log, counts.Resyncs), shells: terminal.New(), metrics: counts}
	d.table = d.newTable(audit)
	return d, nil
}

// newTable makes the table of routes.
func (d *server) newTable(audit io.Writer) *route.Table {
	return route.New(d.routes(), route.Options{Hosts: d.node.Web.HostNames(),
		Secure: strings.HasPrefix(d.node.Web.URL, "https:"), Store: d.store, Log: d.log, Audit: audit,
		Metrics: d.metrics,
		Page:    d.renderPage})
}

func (d *server) renderPage(w io.Writer, name string, c *route.Call, data any) error {
	f := page.Frame{Path: c.Request.URL.Path, Query: c.Request.URL.Query(), Data: data, Zone: c.Zone(),
		Here: c.Here()}
	if c.Session != nil {
		f.User = c.Session.User
	}
	return d.pages.Render(w, name, f)
}

// openListeners opens the addresses of the node file, with TLS unless that is nil. A unix
// socket is for a reverse proxy, which has done TLS.
func openListeners(w *config.WebSettings, secure *tls.Config) (all []net.Listener, err error) {
	defer func() {
		if err != nil {
			closeAll(all)
		}
	}()
	for _, addr := range w.Listen {
		l, err := rpc.Listen(addr, 0o660)
		if err != nil {
			return all, err
		}
		l = netutil.LimitListener(l, maxConns)
		if secure != nil && !strings.HasPrefix(addr, "unix:") {
			l = tls.NewListener(l, secure)
		}
		all = append(all, l)
	}
	return all, nil
}

func closeAll(all []net.Listener) {
	for _, l := range all {
		l.Close()
	}
}

// serve serves on the listeners until ctx ends.
func (d *server) serve(ctx context.Context, listeners []net.Listener, exporter *metrics.Exporter) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { exporter.Run(ctx); return nil })
	group.Go(func() error { d.store.Run(ctx); return nil })
	group.Go(func() error { return d.certificate.Run(ctx) })
	s := &http.Server{
		Handler: d.table, ReadHeaderTimeout: headerTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: route.MaxHeaders,
		BaseContext: func(net.Listener) context.Context { return ctx },
		ErrorLog:    log.New(logWriter{d.log}, "", 0),
	}
	for _, l := range listeners {
		group.Go(func() error {
			if err := s.Serve(l); !errors.Is(err, http.ErrServerClosed) {
				return err
			}
			return nil
		})
	}
	group.Go(func() error {
		<-ctx.Done()
		stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
		defer cancel()
		if s.Shutdown(stop) != nil {
			s.Close()
		}
		return nil
	})
	daemon.ReportReady()
	d.log.Info("serving", "url", d.node.Web.URL)
	return group.Wait()
}

// logWriter writes what net/http says of broken connections to the daemon's log.
type logWriter struct{ log *slog.Logger }

func (w logWriter) Write(line []byte) (int, error) {
	w.log.Debug("connection", "error", string(bytes.TrimSpace(line)))
	return len(line), nil
}
