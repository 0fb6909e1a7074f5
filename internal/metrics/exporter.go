package metrics

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/config"
	"github.com/roost-batch/roost/internal/rpc"
)

// Bounds on what readers of the page may do.
const (
	maxConnections = 64
	maxHeaderBytes = 16 << 10
	headerTimeout  = 5 * time.Second
	writeTimeout   = 10 * time.Second
	idleTimeout    = time.Minute
)

// Exporter serves the metrics of one daemon over HTTP. Readers need a token or a
// certificate of the pool. A nil Exporter serves nothing.
type Exporter struct {
	registry *Registry
	users    *Registry // nil: there is no page of users
	listener net.Listener
	server   *http.Server
	access   *pageAccess
	log      *slog.Logger
	reading  sync.Mutex // reads do not overlap: a page is made in milliseconds
}

// Open opens the address of a daemon's metrics. It returns nil where the node file names
// none. name is that of the execute node, for a startd. A nil identity serves without
// TLS.
func Open(node *config.Node, part, name string, id *rpc.Identity, log *slog.Logger) (*Exporter, error) {
	address := node.MetricsAddress(part, name)
	if address == "" {
		return nil, nil
	}
	access, err := newPageAccess(node, address)
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("metrics of the %s: %w: %w", part, roost.BadConfig, err)
	}
	e := &Exporter{registry: NewRegistry(part), access: access, log: log,
		listener: newConnLimiter(listener, maxConnections)}
	if part == "schedd" && node.Metrics.Users {
		e.users, access.hasUsers = newRegistry(usersPart), true
	}
	if id != nil {
		e.listener = tls.NewListener(e.listener, serverTLS(id))
		e.registry.addCertificateExpiry(id)
	}
	return e, nil
}

// UseTLS has the exporter speak TLS with the certificate of a server that is no node of
// the pool. It is called before Run.
func (e *Exporter) UseTLS(c *tls.Config) {
	if e != nil {
		e.listener = tls.NewListener(e.listener, &tls.Config{MinVersion: tls.VersionTLS12, Certificates: c.Certificates,
			NextProtos: []string{"http/1.1"}})
	}
}

// Registry returns the registry of the daemon, nil if nothing is exported.
func (e *Exporter) Registry() *Registry {
	if e == nil {
		return nil
	}
	return e.registry
}

// Users returns the registry of the page of users, nil if there is none.
func (e *Exporter) Users() *Registry {
	if e == nil {
		return nil
	}
	return e.users
}

// Run serves until ctx ends. It is called once, after the families are registered. The
// daemon goes on if the server breaks.
func (e *Exporter) Run(ctx context.Context) {
	if e == nil {
		return
	}
	e.server = &http.Server{
		Handler: e.handler(), MaxHeaderBytes: maxHeaderBytes, ReadHeaderTimeout: headerTimeout,
		ReadTimeout: headerTimeout, WriteTimeout: writeTimeout, IdleTimeout: idleTimeout,
		ErrorLog: slog.NewLogLogger(e.log.Handler(), slog.LevelDebug),
	}
	e.log.Info("metrics", "address", e.listener.Addr())
	stop := context.AfterFunc(ctx, func() { e.server.Close() })
	defer stop()
	if err := e.server.Serve(e.listener); !errors.Is(err, http.ErrServerClosed) {
		e.log.Error("metrics are no longer served", "err", err)
	}
}

// Close closes the address of an exporter that will not run.
func (e *Exporter) Close() {
	if e != nil {
		e.listener.Close()
	}
}

// Address returns the address that the exporter listens on.
func (e *Exporter) Address() string { return e.listener.Addr().String() }

// handler answers the requests. Everything but a permitted read of a page is refused.
func (e *Exporter) handler() http.Handler {
	pages := map[string]http.Handler{metricsPath: e.page(e.registry)}
	if e.users != nil {
		pages[usersPath] = e.page(e.users)
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
		h.Set("Cache-Control", "no-store")
		if status, text := e.access.refuse(r); status != 0 {
			if status == http.StatusUnauthorized {
				h.Set("WWW-Authenticate", `Bearer realm="roost metrics"`)
			}
			http.Error(w, text, status)
			return
		}
		e.reading.Lock()
		defer e.reading.Unlock()
		pages[r.URL.Path].ServeHTTP(w, r)
	})
}

// page writes what a registry has.
func (e *Exporter) page(r *Registry) http.Handler {
	return promhttp.HandlerFor(prometheus.GathererFunc(r.registry.Gather), promhttp.HandlerOpts{
		ErrorLog: slog.NewLogLogger(e.log.Handler(), slog.LevelError),
	})
}

// serverTLS is the server's side of TLS. It shows the node's certificate, and accepts
// clients without one: they need a token.
func serverTLS(id *rpc.Identity) *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS13, GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config,
		error) {
		c := id.TLS()
		check := c.VerifyConnection
		c.NextProtos, c.ClientAuth = []string{"http/1.1"}, tls.RequestClientCert
		c.VerifyConnection = func(state tls.ConnectionState) error {
			if len(state.PeerCertificates) == 0 {
				return nil
			}
			return check(state)
		}
		return c, nil
	}}
}

const certificateHelp = "When the certificate of the node ends, in seconds since 1970; only where the node has one."

// addCertificateExpiry exports when the certificate of the node ends.
func (r *Registry) addCertificateExpiry(id *rpc.Identity) {
	expires := r.Gauge("certificate_expires_timestamp_seconds", certificateHelp)
	r.OnRead(func(to *Reading) {
		if certs := id.TLS().Certificates; len(certs) > 0 && certs[0].Leaf != nil {
			to.Set(expires, float64(certs[0].Leaf.NotAfter.Unix()))
		}
	})
}
