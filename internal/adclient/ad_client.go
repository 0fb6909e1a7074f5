package adclient

import (
	"context"
	"log/slog"
	"maps"
	"sync"
	"time"

	"github.com/roost-batch/roost/internal/rpc"
)

// DefaultLease is how long a collector stores an ad without a further message about it.
const DefaultLease = 60 * time.Second

// ClientConfig configures a Client.
type ClientConfig struct {
	Collectors []string      // addresses of the collectors
	Identity   *rpc.Identity // nil: unix sockets only
	Type       string        // MyType of the ad: "Machine", "Scheduler", "Negotiator"
	Name       string        // unique among the ads of that type
	Lease      time.Duration // DefaultLease when 0; it is renewed after each third of it
	Log        *slog.Logger  // nil: no log
}

// Client advertises one ad of this daemon at every collector. A collector that was
// restarted or unreachable gets the whole ad as soon as it can be reached. All methods
// are safe for concurrent use.
type Client struct {
	config  ClientConfig
	started int64 // creation of the client, in unix nanoseconds: it orders the ads of restarted daemons

	mu      sync.Mutex
	current adVersion
	renewal time.Duration // how often the lease is renewed
	changed chan struct{} // closed and replaced by each Update
}

// adVersion is one version of the ad. Its maps are never changed.
type adVersion struct {
	sequence uint64 // 0: nothing to advertise yet
	ad       string
	private  map[string]string
}

// New returns a client that does nothing until Run, and advertises nothing until Update.
func New(c ClientConfig) *Client {
	if c.Lease <= 0 {
		c.Lease = DefaultLease
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return &Client{config: c, started: time.Now().UnixNano(), renewal: c.Lease / 3, changed: make(chan struct{})}
}

// Started returns the start time in the client's ads, in unix nanoseconds.
func (c *Client) Started() int64 { return c.started }

// Update replaces the ad and its private attributes, and returns the sequence number of
// the new version. It never blocks: a collector slower than the updates gets only the
// last one. An unchanged ad has no effect and returns the sequence that it already has.
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

// SetRenewal sets how often the lease is renewed, at most each third of it. Zero means
// each third.
func (c *Client) SetRenewal(every time.Duration) {
	if every <= 0 || every > c.config.Lease/3 {
		every = c.config.Lease / 3
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.renewal != every {
		c.renewal = every
		close(c.changed)
		c.changed = make(chan struct{})
	}
}

func (c *Client) currentVersion() (v adVersion, renewal time.Duration, changed <-chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.current, c.renewal, c.changed
}

// Run sends updates to the collectors until ctx ends. Then it withdraws the ad from the
// collectors that can be reached at once, and returns when everything that it started has
// ended.
func (c *Client) Run(ctx context.Context) error {
	var links sync.WaitGroup
	for _, addr := range c.config.Collectors {
		l := collectorConn{client: c, addr: addr}
		links.Go(func() { l.run(ctx) })
	}
	links.Wait()
	return nil
}
