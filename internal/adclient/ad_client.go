package adclient

import (
	"context"
	"log/slog"
	"maps"
	"sync"
	"time"

	"github.com/roost-batch/roost/internal/rpc"
)

// DefaultLease is how long a collector keeps an ad of which it hears nothing more.
const DefaultLease = 60 * time.Second

// ClientConfig is what a Client needs to know.
type ClientConfig struct {
	Collectors []string      // addresses
	Identity   *rpc.Identity // nil: unix sockets only
	Type       string        // MyType of the ad: "Machine", "Scheduler", "Negotiator"
	Name       string        // unique among the ads of that type
	Lease      time.Duration // DefaultLease when 0; it is renewed each third of it
	Log        *slog.Logger  // nil: silent
}

// Client keeps one ad of this daemon known to every collector. A collector that restarts,
// or that was away, is told the whole ad as soon as it can be reached again. All methods
// may be called by any goroutine.
type Client struct {
	config  ClientConfig
	started int64 // unix nanoseconds of the client's making: it orders the lives of a daemon

	mu      sync.Mutex
	current adVersion
	changed chan struct{} // closed and replaced by each Update
}

// adVersion is the ad as it stands. Its maps are never written after they were put here.
type adVersion struct {
	sequence uint64 // 0: nothing to advertise yet
	ad       string
	private  map[string]string
}

// New returns a client that advertises nothing until Update was called and does nothing
// until Run is.
func New(c ClientConfig) *Client {
	if c.Lease <= 0 {
		c.Lease = DefaultLease
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return &Client{config: c, started: time.Now().UnixNano(), changed: make(chan struct{})}
}

// Started is the start that the client's ads carry, in unix nanoseconds.
func (c *Client) Started() int64 { return c.started }

// Update replaces the ad, and what only negotiators may see of it, and returns the
// sequence number under which it will be sent. It never waits: when updates come faster
// than a collector takes them, that collector gets the last one only. The same ad again
// changes nothing and returns the sequence that it already has.
func (c *Client) Update(ad string, private map[string]string) (sequence uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.current.sequence > 0 && c.current.ad == ad && maps.Equal(c.current.private, private) {
		return c.current.sequence
	}
	c.current = adVersion{sequence: c.current.sequence + 1, ad: ad, private: maps.Clone(private)}
	close(c.changed)
	c.changed = make(chan struct{})
	return c.current.sequence
}

func (c *Client) currentVersion() (adVersion, <-chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.current, c.changed
}

// Run keeps the collectors told until ctx ends; then it withdraws the ad from those that
// can be reached at once, and returns when all it started is gone.
func (c *Client) Run(ctx context.Context) error {
	var links sync.WaitGroup
	for _, addr := range c.config.Collectors {
		l := collectorConn{client: c, addr: addr}
		links.Go(func() { l.run(ctx) })
	}
	links.Wait()
	return nil
}
