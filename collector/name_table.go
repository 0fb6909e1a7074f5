package collector

import (
	"cmp"
	"context"
	"net"
	"net/netip"
	"strings"
	"sync"
	"time"

	grpcpeer "google.golang.org/grpc/peer"

	"github.com/roost-batch/roost/collector/adstore"
	"github.com/roost-batch/roost/collector/names"
	"github.com/roost-batch/roost/internal/config"
)

// nameTable is the names of services for many goroutines. The owner of the ads changes
// it; DNS queries read it without going through the owner's channel.
type nameTable struct {
	mu    sync.RWMutex
	zone  *names.Zone
	wakes map[*names.Watch]chan struct{} // each has room for one signal
}

func newNameTable(c names.Config) *nameTable {
	return &nameTable{zone: names.New(c), wakes: map[*names.Watch]chan struct{}{}}
}

// nameConfig returns the settings of the zone: those of the dns block, else the defaults
// under which commands show names.
func nameConfig(node *config.Node) names.Config {
	c := names.Config{Domain: config.DefaultDomain, Cell: config.CellLabel(node.Pool)}
	if d := node.Collector.DNS; d != nil {
		c.Domain, c.Cell = d.Domain, d.Cell
	}
	return c
}

// senderAddress returns the address from which a call comes, the invalid one for a unix
// socket.
func senderAddress(ctx context.Context) netip.Addr {
	p, ok := grpcpeer.FromContext(ctx)
	if !ok {
		return netip.Addr{}
	}
	tcp, ok := p.Addr.(*net.TCPAddr)
	if !ok {
		return netip.Addr{}
	}
	return tcp.AddrPort().Addr().Unmap().WithZone("")
}

// nextWake returns when an ad or the names of a machine expire.
func (o *storeLoop) nextWake() (at time.Time, ok bool) {
	if o.machines.HasPending() {
		return time.Now(), true
	}
	at, ok = o.store.NextWake()
	if named, there := o.names.zone.NextWake(); there && (!ok || named.Before(at)) {
		return named, true
	}
	return at, ok
}

// renewNames renews the names of a machine after an update of its ad. Ads live longer
// than names, so a machine may be silent for the names while its ad is still there.
func (o *storeLoop) renewNames(u adstore.AdUpdate, outcome adstore.UpdateOutcome) {
	if outcome == adstore.Renewed && strings.EqualFold(u.Type, "Machine") {
		o.names.change(func(z *names.Zone) {
			before := z.Refused()
			z.RenewLease(time.Now(), u.Name, names.DefaultLease)
			o.metrics.EndpointsRefused.Add(float64(z.Refused() - before))
		})
	}
}

// Bounds of one turn of the names. The first ad of a machine has a signature to check for
// each endpoint, and after a restart of the collector all of them come at once.
const (
	maxNamesTurn  = 20 * time.Millisecond
	maxNamesTaken = 8 // ads
)

// updateNames brings the names up to date with the machine ads. What does not fit into a
// turn waits for the next one. No machine becomes silent while its ad may be among that.
func (o *storeLoop) updateNames(now time.Time) {
	for began := time.Now(); o.machines.HasPending(); {
		changes, err := o.machines.Take(maxNamesTaken)
		if err != nil {
			o.store.EndFeed(o.machines)
			o.machines, _ = o.store.StartFeed("Machine")
			continue
		}
		for _, c := range changes {
			if !c.Synced {
				o.changeNames(now, c)
			}
		}
		if o.machines.HasPending() && time.Since(began) > maxNamesTurn {
			return
		}
	}
	if at, ok := o.names.zone.NextWake(); ok && !now.Before(at) {
		o.names.change(func(z *names.Zone) { z.Expire(now) })
	}
}

// changeNames applies a change of a machine ad.
func (o *storeLoop) changeNames(now time.Time, c adstore.AdChange) {
	if c.Entry == nil {
		o.names.change(func(z *names.Zone) { z.RemoveMachine(now, c.Name) })
		return
	}
	ad := names.MachineAd{Name: c.Name, Node: cmp.Or(c.Entry.Node, c.Name), Text: c.Entry.Text,
		Lease: names.DefaultLease, Local: !c.Entry.From.IsValid()}
	if ad.Addresses = []netip.Addr{c.Entry.From}; ad.Local {
		ad.Addresses = []netip.Addr{netip.AddrFrom4([4]byte{127, 0, 0, 1})}
	}
	if o.rights != nil && !ad.Local {
		ad.Check = o.rights.check
	}
	// signatures are checked here, while names can be looked up
	reading := o.names.zone.ReadMachine(now, ad)
	o.names.change(func(z *names.Zone) {
		before := z.Refused()
		err := z.SetMachine(now, reading)
		refused := z.Refused() - before
		o.metrics.EndpointsRefused.Add(float64(refused))
		if err != nil && o.refusals.Allow() {
			o.log.Warn("endpoints of a machine are refused: its tasks have no names", "machine", c.Name, "endpoints",
				refused, "err", err)
		}
	})
}

// change changes the zone and wakes the watches that see it.
func (t *nameTable) change(f func(*names.Zone)) {
	t.mu.Lock()
	f(t.zone)
	var wake []chan struct{}
	for _, w := range t.zone.TakeWoken() {
		if c := t.wakes[w]; c != nil {
			wake = append(wake, c)
		}
	}
	t.mu.Unlock()
	for _, c := range wake {
		select {
		case c <- struct{}{}:
		default: // the watch will look anyway
		}
	}
}

// Lookup implements dns.Zone, as do Origin and Version.
func (t *nameTable) Lookup(name string, typ names.RecordType, most int, random func(n int) int) names.Answer {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.zone.Lookup(name, typ, most, random)
}

// Origin implements dns.Zone. The name never changes.
func (t *nameTable) Origin() string { return t.zone.Origin() }

// Version implements dns.Zone.
func (t *nameTable) Version() uint64 {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.zone.Version()
}

// startWatch starts a watch, with the channel that says that it has changes.
func (t *nameTable) startWatch(s names.Selection) (*names.Watch, <-chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	w, wake := t.zone.StartWatch(s), make(chan struct{}, 1)
	t.wakes[w] = wake
	return w, wake
}

func (t *nameTable) endWatch(w *names.Watch) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.zone.EndWatch(w)
	delete(t.wakes, w)
}

func (t *nameTable) take(w *names.Watch) names.Update {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.zone.Take(w)
}
