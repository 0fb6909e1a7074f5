package schedd

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
	"github.com/roost-batch/roost/internal/advertise"
	"github.com/roost-batch/roost/internal/auth"
	"github.com/roost-batch/roost/internal/rpc"
)

// Neighbours are the other schedds of the pool, as the collectors tell of them. One whose ad has gone is remembered for a day: its jobs do not end with
// its host, and a list that leaves them out has to say so.
const (
	neighbourKept = 24 * time.Hour
	maxNeighbours = 1024

	// secondChance is how long one that was silent the last time is waited for: a connection that can be made is made within that.
	secondChance = 100 * time.Millisecond
)

// neighbours knows them, and how each was when it was last asked.
type neighbours struct {
	own      string
	identity *rpc.Identity
	log      *slog.Logger

	mu  sync.Mutex
	all map[string]*neighbour
}

// neighbour is another schedd.
type neighbour struct {
	address string           // empty: it listens to nobody
	gone    time.Time        // since when the collectors do not know it; zero: they do
	conn    *grpc.ClientConn // nil: none was needed yet
	silent  bool             // when it was last asked it did not answer
}

func newNeighbours(own string, identity *rpc.Identity, log *slog.Logger) *neighbours {
	return &neighbours{own: own, identity: identity, log: log, all: map[string]*neighbour{}}
}

// keep follows their ads until ctx ends.
func (n *neighbours) keep(ctx context.Context, collectors []string) {
	w := advertise.Watcher{Collectors: collectors, Identity: n.identity, Type: "Scheduler", Log: n.log, Apply: func(all []advertise.Change, _ bool) {
		n.changed(time.Now(), all)
	}}
	w.Run(ctx)
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, d := range n.all {
		d.hangUp()
	}
}

// changed takes in what the collectors say.
func (n *neighbours) changed(now time.Time, all []advertise.Change) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, c := range all {
		if c.Name != n.own {
			n.heard(now, c)
		}
	}
	for name, d := range n.all {
		if !d.gone.IsZero() && now.Sub(d.gone) > neighbourKept {
			d.hangUp()
			delete(n.all, name)
		}
	}
}

func (n *neighbours) heard(now time.Time, c advertise.Change) {
	d := n.all[c.Name]
	if c.Removed {
		if d != nil {
			d.gone = now
		}
		return
	}
	ad, err := classad.Parse(c.Ad)
	if err != nil {
		n.log.Warn("ad of a schedd makes no sense", "schedd", c.Name, "error", err)
		return
	}
	if d == nil {
		if len(n.all) >= maxNeighbours {
			n.log.Warn("there are too many schedds to ask them all", "schedd", c.Name, "most", maxNeighbours)
			return
		}
		d = &neighbour{}
		n.all[c.Name] = d
	}
	address, _ := ad.Str(roost.AttrMyAddress)
	if d.address != address {
		d.hangUp()
		d.address, d.silent = address, false
	}
	d.gone = time.Time{}
}

func (d *neighbour) hangUp() {
	if d.conn != nil {
		d.conn.Close()
		d.conn = nil
	}
}

// names lists all of them.
func (n *neighbours) names() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Sorted(maps.Keys(n.all))
}

// knows reports whether there is one of that name.
func (n *neighbours) knows(name string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.all[name] != nil
}

// errSilent is that a neighbour does not answer.
var errSilent = errors.New("did not answer")

// reach returns the connection to a neighbour. One that was silent gets a moment to prove that it is back, and is not waited for again: so that
// one dead schedd makes one list slow, and not all lists.
func (n *neighbours) reach(ctx context.Context, name string) (*grpc.ClientConn, error) {
	n.mu.Lock()
	d := n.all[name]
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
	conn, silent := d.conn, d.silent
	n.mu.Unlock()
	if !silent {
		return conn, nil
	}
	ctx, cancel := context.WithTimeout(ctx, secondChance)
	defer cancel()
	conn.ResetConnectBackoff()
	for {
		conn.Connect()
		state := conn.GetState()
		if state == connectivity.Ready {
			return conn, nil
		}
		if !conn.WaitForStateChange(ctx, state) {
			return nil, fmt.Errorf("%w a while ago, and cannot be reached", errSilent)
		}
	}
}

func (n *neighbours) dial(name string, d *neighbour) (err error) {
	if d.conn == nil {
		d.conn, err = rpc.DialNode(d.address, n.identity, auth.Schedd, name)
	}
	return err
}

// answered notes that a neighbour does.
func (n *neighbours) answered(name string, conn *grpc.ClientConn) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if d := n.all[name]; d != nil && d.conn == conn {
		d.silent = false
	}
}

// mute notes that a neighbour was silent. Its connection tells nothing any more, even one that seems to be open: of a host that is cut off TCP
// notices nothing. So another one is begun at once, and whether that comes about says when the neighbour is back. A nil conn stands for whichever there is.
func (n *neighbours) mute(name string, conn *grpc.ClientConn) {
	n.mu.Lock()
	defer n.mu.Unlock()
	d := n.all[name]
	if d == nil || conn != nil && d.conn != conn {
		return
	}
	d.silent = true
	d.hangUp()
	if n.dial(name, d) == nil {
		d.conn.Connect()
	}
}
