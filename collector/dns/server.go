package dns

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/miekg/dns"

	"github.com/roost-batch/roost/collector/names"
	"github.com/roost-batch/roost/internal/rpc"
)

// Bounds on the server.
const (
	maxUDP         = 1232  // bytes of an answer over UDP
	minUDP         = 512   // bytes that every client takes
	maxTCPRecords  = 1000  // service records in an answer over TCP
	maxUDPRecords  = 64    // more never fit
	maxConns       = 256   // over TCP; one more closes the oldest
	maxConnsOfAddr = 16    // of one address
	maxConnQueries = 128   // queries over one connection
	maxSources     = 65536 // sources whose queries are counted in one second
	tcpTimeout     = 5 * time.Second

	recordTTL   = 2 // seconds
	negativeTTL = 1 // seconds: without it some resolvers remember a missing name for minutes
)

// Zone is where the answers come from. Its methods may be called by many goroutines.
type Zone interface {
	// Lookup answers a query as names.Zone.Lookup does.
	Lookup(name string, t names.RecordType, most int, random func(n int) int) names.Answer
	Origin() string  // name of the zone, with a final dot
	Version() uint64 // of the last change
}

// Config configures a Server.
type Config struct {
	Zone    Zone
	Rate    int               // queries of one source that are answered in a second; 0: all
	Counted func(outcome int) // called for each query with the index of an outcome; nil: nobody counts
	Log     *slog.Logger
}

// The outcomes of queries: the indexes of the label outcome in metrics.Collector.
const (
	answered = iota
	noData
	noName
	refused
	limited
)

// Server answers queries.
type Server struct {
	config  Config
	servers []*dns.Server
	sources sourceCounter
}

// Listen opens UDP and TCP sockets at addresses. Nothing is read before Run.
func Listen(c Config, addresses []string) (*Server, error) {
	s := &Server{config: c, sources: sourceCounter{most: c.Rate}}
	for _, address := range addresses {
		if err := s.open(address); err != nil {
			s.close()
			return nil, fmt.Errorf("dns at %s: %w", address, err)
		}
	}
	return s, nil
}

// open opens both sockets at an address. With port 0 both get the same free port.
func (s *Server) open(address string) error {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	packets, err := net.ListenPacket("udp", l.Addr().String())
	if err != nil {
		l.Close()
		return err
	}
	limiter := rpc.NewAnonymousLimiter(maxConns, maxConnsOfAddr)
	s.servers = append(s.servers,
		&dns.Server{PacketConn: packets, Handler: udpHandler{s}, UDPSize: minUDP * 8},
		&dns.Server{Listener: limitedListener{l, limiter}, Handler: tcpHandler{s}, ReadTimeout: tcpTimeout,
			WriteTimeout: tcpTimeout, IdleTimeout: func() time.Duration { return tcpTimeout },
			MaxTCPQueries: maxConnQueries})
	return nil
}

// Addresses returns the addresses that it listens on.
func (s *Server) Addresses() []string {
	var list []string
	for _, server := range s.servers {
		if server.Listener != nil {
			list = append(list, server.Listener.Addr().String())
		}
	}
	return list
}

func (s *Server) close() {
	for _, server := range s.servers {
		if server.PacketConn != nil {
			server.PacketConn.Close()
		} else {
			server.Listener.Close()
		}
	}
}

// Run answers queries until ctx ends.
func (s *Server) Run(ctx context.Context) error {
	stop := context.AfterFunc(ctx, s.close)
	defer stop()
	var running sync.WaitGroup
	broken := make(chan error, len(s.servers))
	for _, server := range s.servers {
		running.Go(func() { broken <- server.ActivateAndServe() })
	}
	var err error
	select {
	case <-ctx.Done():
	case err = <-broken:
	}
	s.close()
	running.Wait()
	if ctx.Err() != nil || errors.Is(err, net.ErrClosed) {
		return nil
	}
	return fmt.Errorf("dns: %w", err)
}

// limitedListener bounds connections.
type limitedListener struct {
	net.Listener
	limiter *rpc.AnonymousLimiter
}

// Accept waits for the next connection.
func (l limitedListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c, victim := l.limiter.Add(conn)
	if victim != nil {
		victim.Conn.Close()
	}
	return c, nil
}

// sourceCounter counts the queries of each source in the present second.
type sourceCounter struct {
	most int

	mu     sync.Mutex
	second int64
	counts map[netip.Addr]int
}

// isOver counts a query and reports whether its source has asked too often. When too
// many sources ask, all counts start again.
func (c *sourceCounter) isOver(now time.Time, from net.Addr) bool {
	if c.most == 0 {
		return false
	}
	key := rpc.LimitKey(from)
	c.mu.Lock()
	defer c.mu.Unlock()
	if second := now.Unix(); second != c.second || len(c.counts) >= maxSources {
		c.second, c.counts = second, map[netip.Addr]int{}
	}
	c.counts[key]++
	return c.counts[key] > c.most
}

func (s *Server) count(outcome int) {
	if s.config.Counted != nil {
		s.config.Counted(outcome)
	}
}
