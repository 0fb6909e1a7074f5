package peers

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/connectivity"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/adclient"
	"github.com/roost-batch/roost/internal/identity/peer"
	"github.com/roost-batch/roost/internal/rpc"
)

// A peer whose ad has gone is remembered for a day: its jobs do not end with its host,
// and a list that leaves them out has to say so.
const (
	peerRetention = 24 * time.Hour
	maxPeers      = 1024

	// silentPeerTimeout is how long one that was silent the last time is waited for: a
	// connection that can be made is made within that.
	silentPeerTimeout = 100 * time.Millisecond
)

// Peers holds the other schedds, and how each was when it was last asked.
type Peers struct {
	localName string
	// CellQueue is the name of the queue of the cell, empty if there is none. When it
	// gets another leader it is silent for a moment, and asked again.
	CellQueue string
	identity  *rpc.Identity
	log       *slog.Logger

	synced   chan struct{} // closed when a collector has said which there are
	syncOnce sync.Once

	mu     sync.Mutex
	byName map[string]*peerSchedd

	waits poolWaits
}

// peerSchedd is another schedd.
type peerSchedd struct {
	address     string           // empty: it listens to nobody
	goneSince   time.Time        // since when the collectors do not know it; zero: they do
	conn        *grpc.ClientConn // nil: none was needed yet
	unreachable bool             // when it was last asked it did not answer
}

// New returns the peers of the schedd of that name; none is known yet.
func New(own string, identity *rpc.Identity, log *slog.Logger) *Peers {
	return &Peers{localName: own, identity: identity, log: log, byName: map[string]*peerSchedd{},
		synced: make(chan struct{})}
}

// WatchAds follows their ads until ctx ends.
func (n *Peers) WatchAds(ctx context.Context, collectors []string) {
	w := adclient.AdWatcher{Collectors: collectors, Identity: n.identity, Type: "Scheduler", Log: n.log,
		Apply: func(all []adclient.AdChange, synced bool) {
			n.OnAdChanged(time.Now(), all)
			if synced {
				n.OnSync()
			}
		}}
	w.Run(ctx)
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, d := range n.byName {
		d.closeConn()
	}
}

// OnAdChanged takes in what the collectors say.
func (n *Peers) OnAdChanged(now time.Time, all []adclient.AdChange) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, c := range all {
		if c.Name != n.localName {
			n.updatePeer(now, c)
		}
	}
	for name, d := range n.byName {
		if !d.goneSince.IsZero() && now.Sub(d.goneSince) > peerRetention {
			d.closeConn()
			delete(n.byName, name)
		}
	}
}

func (n *Peers) updatePeer(now time.Time, c adclient.AdChange) {
	d := n.byName[c.Name]
	if c.Removed {
		if d != nil {
			d.goneSince = now
		}
		return
	}
	ad, err := classad.Parse(c.Ad)
	if err != nil {
		n.log.Warn("ad of a schedd makes no sense", "schedd", c.Name, "error", err)
		return
	}
	if d == nil {
		if len(n.byName) >= maxPeers {
			n.log.Warn("there are too many schedds to ask them all", "schedd", c.Name, "most", maxPeers)
			return
		}
		d = &peerSchedd{}
		n.byName[c.Name] = d
	}
	address, _ := ad.Str(roost.AttrMyAddress)
	if d.address != address {
		d.closeConn()
		d.address, d.unreachable = address, false
	}
	d.goneSince = time.Time{}
}

func (d *peerSchedd) closeConn() {
	if d.conn != nil {
		d.conn.Close()
		d.conn = nil
	}
}

// peerNames lists all of them.
func (n *Peers) peerNames() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Sorted(maps.Keys(n.byName))
}

// HasPeer reports whether there is one of that name.
func (n *Peers) HasPeer(name string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.byName[name] != nil
}

// OnSync notes that a collector has sent all its ads.
func (n *Peers) OnSync() { n.syncOnce.Do(func() { close(n.synced) }) }

// AwaitSync waits until a collector has said which schedds there are, and reports whether
// one has before ctx ends.
func (n *Peers) AwaitSync(ctx context.Context) bool {
	select {
	case <-n.synced:
		return true
	case <-ctx.Done():
		return false
	}
}

// errPeerSilent is that a neighbour does not answer.
var errPeerSilent = errors.New("did not answer")

// connTo returns the connection to a neighbour. One that was silent gets a moment to
// prove that it is back, and is not waited for again: so that one dead schedd makes one
// list slow, and not all lists.
func (n *Peers) connTo(ctx context.Context, name string) (*grpc.ClientConn, error) {
	n.mu.Lock()
	d := n.byName[name]
	if d == nil {
		n.mu.Unlock()
		return nil, fmt.Errorf("schedd %s: %w: the collectors know of none of that name", name, roost.NotFound)
	}
	if d.address == "" {
		n.mu.Unlock()
		return nil, errors.New("has no address at which it can be asked (listen in its node file)")
	}
	if err := n.dial(name, d); err != nil {
		n.mu.Unlock()
		return nil, err
	}
	conn, silent := d.conn, d.unreachable
	n.mu.Unlock()
	if !silent {
		return conn, nil
	}
	ctx, cancel := context.WithTimeout(ctx, silentPeerTimeout)
	defer cancel()
	conn.ResetConnectBackoff()
	for {
		conn.Connect()
		state := conn.GetState()
		if state == connectivity.Ready {
			return conn, nil
		}
		if !conn.WaitForStateChange(ctx, state) {
			return nil, fmt.Errorf("%w a while ago, and cannot be reached", errPeerSilent)
		}
	}
}

func (n *Peers) dial(name string, d *peerSchedd) (err error) {
	if d.conn == nil {
		d.conn, err = rpc.DialNode(d.address, n.identity, peer.Schedd, name)
	}
	return err
}

// markReachable notes that a neighbour does.
func (n *Peers) markReachable(name string, conn *grpc.ClientConn) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if d := n.byName[name]; d != nil && d.conn == conn {
		d.unreachable = false
	}
}

// markUnreachable notes that a neighbour was silent. Its connection tells nothing any
// more, even one that seems to be open: of a host that is cut off TCP notices nothing. So
// another one is begun at once, and whether that comes about says when the neighbour is
// back. A nil conn stands for whichever there is.
func (n *Peers) markUnreachable(name string, conn *grpc.ClientConn) {
	n.mu.Lock()
	defer n.mu.Unlock()
	d := n.byName[name]
	if d == nil || conn != nil && d.conn != conn {
		return
	}
	d.unreachable = true
	d.closeConn()
	if n.dial(name, d) == nil {
		d.conn.Connect()
	}
}
