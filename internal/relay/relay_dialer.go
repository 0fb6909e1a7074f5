package relay

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/identity/peer"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/wire"
)

// connStreams is how many connections to nodes share one to a relay. A server takes some
// more calls on one.
const connStreams = 500

// maxRelays bounds the relays of one node.
const maxRelays = 8

// ParseTarget returns the addresses of the relays in a target, "HOST:PORT,HOST:PORT".
func ParseTarget(target string) ([]string, error) {
	relays := strings.Split(target, ",")
	if len(relays) > maxRelays {
		return nil, fmt.Errorf("relays %q: %w: %d are named, and at most %d are called", target, roost.Invalid,
			len(relays), maxRelays)
	}
	for _, addr := range relays {
		if network, _, err := rpc.SplitAddress(addr); err != nil || network != "tcp" {
			return nil, fmt.Errorf("relay %q: %w: write it as relay:HOST:PORT, with the address of a collector",
				addr, roost.Invalid)
		}
	}
	return relays, nil
}

// Dialer makes connections to nodes through relays. Its methods are safe for concurrent
// use.
type Dialer struct {
	id *rpc.Identity

	mu    sync.Mutex
	conns map[string][]*relayConn // by address of the relay
}

// relayConn is a connection to a relay.
type relayConn struct {
	*grpc.ClientConn
	streams int
}

// NewDialer returns a Dialer that authenticates itself as id.
func NewDialer(id *rpc.Identity) *Dialer { return &Dialer{id: id, conns: map[string][]*relayConn{}} }

// Close closes all connections.
func (d *Dialer) Close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, all := range d.conns {
		for _, c := range all {
			c.Close()
		}
	}
	clear(d.conns)
}

// borrow returns a connection to a relay with room for another stream.
func (d *Dialer) borrow(addr string) (*relayConn, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, c := range d.conns[addr] {
		if c.streams < connStreams {
			c.streams++
			return c, nil
		}
	}
	conn, err := rpc.Dial(addr, d.id, peer.Collector)
	if err != nil {
		return nil, err
	}
	c := &relayConn{conn, 1}
	d.conns[addr] = append(d.conns[addr], c)
	return c, nil
}

func (d *Dialer) giveBack(c *relayConn) {
	d.mu.Lock()
	defer d.mu.Unlock()
	c.streams--
}

// Dial makes a connection to a node through the first of the relays of a target that can.
// Its error has those of all of them.
func (d *Dialer) Dial(ctx context.Context, target, node string) (net.Conn, error) {
	relays, err := ParseTarget(target)
	if err != nil {
		return nil, err
	}
	var all []error
	for i, addr := range relays {
		share, cancel := shareOf(ctx, len(relays)-i)
		conn, err := d.dialThrough(share, addr, node)
		cancel()
		if err == nil {
			return conn, nil
		}
		all = append(all, fmt.Errorf("relay %s: %w", addr, err))
	}
	return nil, errors.Join(all...)
}

// shareOf returns a context that ends so early that as many more tries have the same
// time.
func shareOf(ctx context.Context, tries int) (context.Context, context.CancelFunc) {
	end, ok := ctx.Deadline()
	if !ok {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, time.Until(end)/time.Duration(tries))
}

// dialThrough makes a connection through one relay. ctx bounds the time until it is made.
func (d *Dialer) dialThrough(ctx context.Context, addr, node string) (net.Conn, error) {
	c, err := d.borrow(addr)
	if err != nil {
		return nil, err
	}
	life, cancel := context.WithCancel(context.WithoutCancel(ctx))
	abort := context.AfterFunc(ctx, cancel)
	stream, err := wire.NewRelayClient(c).Dial(life, grpc.WaitForReady(true))
	if err == nil {
		err = openStream(stream, &wire.RelayBytes{Node: node})
	}
	if !abort() && err == nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		cancel()
		d.giveBack(c)
		return nil, err
	}
	near, far := net.Pipe()
	go func() {
		defer d.giveBack(c)
		defer cancel()
		rpc.CopyByteStream(far, bytesClient{stream}, nil, cancel, func(f func()) { go f() })
	}()
	return relayedEnd{near, relayAddr("relay:" + addr)}, nil
}
