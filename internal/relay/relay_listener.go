package relay

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"sync"
	"time"

	"google.golang.org/grpc"

	"github.com/roost-batch/roost/internal/identity/peer"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/wire"
)

// How soon a node calls a relay again that it has lost: at once, then at growing
// distances.
const (
	minRetry = 100 * time.Millisecond
	maxRetry = 5 * time.Second
)

// Listener is a net.Listener of the connections that come through relays. It calls each
// of them until it is closed.
type Listener struct {
	target   string
	incoming chan net.Conn
	closed   chan struct{}
	close    func()
	running  sync.WaitGroup
}

// Listen listens at the relays of a target for connections to the node of an identity.
func Listen(target string, id *rpc.Identity, log *slog.Logger) (*Listener, error) {
	relays, err := ParseTarget(target)
	if err != nil {
		return nil, err
	}
	l := &Listener{target: target, incoming: make(chan net.Conn), closed: make(chan struct{})}
	ctx, cancel := context.WithCancel(context.Background())
	l.close = sync.OnceFunc(func() {
		close(l.closed)
		cancel()
	})
	for _, addr := range relays {
		conn, err := rpc.Dial(addr, id, peer.Collector)
		if err != nil {
			l.Close()
			return nil, err
		}
		l.running.Go(func() {
			defer conn.Close()
			l.callRelay(ctx, addr, wire.NewRelayClient(conn), id.Name, log)
		})
	}
	return l, nil
}

// Accept implements net.Listener.
func (l *Listener) Accept() (net.Conn, error) {
	select {
	case conn := <-l.incoming:
		return conn, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Addr implements net.Listener.
func (l *Listener) Addr() net.Addr { return relayAddr(l.target) }

// Close implements net.Listener. Connections that were accepted end, too: they have no
// way without the one to the relay.
func (l *Listener) Close() error {
	l.close()
	l.running.Wait()
	return nil
}

// callRelay is in touch with one relay until ctx ends.
func (l *Listener) callRelay(ctx context.Context, addr string, client wire.RelayClient, node string,
	log *slog.Logger) {
	wait, reported := minRetry, false
	for ctx.Err() == nil {
		began := time.Now()
		err := l.serveRelay(ctx, client, node, func() {
			log.Info("reached by the relay", "relay", addr)
			reported = false
		})
		if ctx.Err() != nil {
			return
		}
		if !reported { // it is tried again until it answers
			log.Warn("not reached by the relay", "relay", addr, "err", rpc.FromStatus(err))
			reported = true
		}
		if time.Since(began) > maxRetry {
			wait = minRetry
		}
		select {
		case <-ctx.Done():
		case <-time.After(wait):
		}
		wait = min(2*wait, maxRetry)
	}
}

// serveRelay accepts connections of one relay until the call to it breaks.
func (l *Listener) serveRelay(ctx context.Context, client wire.RelayClient, node string, reached func()) error {
	calls, err := client.Listen(ctx, &wire.RelayListen{Node: node}, grpc.WaitForReady(true))
	if err != nil {
		return err
	}
	if _, err := calls.Recv(); err != nil {
		return err
	}
	reached()
	for {
		call, err := calls.Recv()
		if err != nil {
			return err
		}
		l.running.Go(func() { l.accept(ctx, client, call) })
	}
}

// accept takes one connection, which lasts until one of its ends closes it.
func (l *Listener) accept(ctx context.Context, client wire.RelayClient, call *wire.RelayCall) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := client.Accept(ctx)
	if err == nil {
		err = openStream(stream, &wire.RelayBytes{Id: call.GetId()})
	}
	if err != nil {
		return // whoever called has given up, or calls again
	}
	near, far := net.Pipe()
	select {
	case l.incoming <- relayedEnd{near, relayAddr("relay of " + call.GetFrom())}:
		rpc.CopyByteStream(far, bytesClient{stream}, l.closed, cancel, l.running.Go)
	case <-ctx.Done():
		near.Close()
		far.Close()
	}
}

// openStream sends the first message of a stream, and waits for that of the relay.
func openStream(s grpc.BidiStreamingClient[wire.RelayBytes, wire.RelayBytes], first *wire.RelayBytes) error {
	err := s.Send(first)
	if err == nil || errors.Is(err, io.EOF) { // Recv has the reason
		_, err = s.Recv()
	}
	return rpc.FromStatus(err)
}

// relayedEnd is the node's end of a connection.
type relayedEnd struct {
	net.Conn
	from relayAddr
}

// RemoteAddr implements net.Conn.
func (c relayedEnd) RemoteAddr() net.Addr { return c.from }

// relayAddr is a net.Addr of what is reached through a relay.
type relayAddr string

func (relayAddr) Network() string  { return "relay" }
func (a relayAddr) String() string { return string(a) }

// bytesClient is a client's end of a stream.
type bytesClient struct {
	grpc.BidiStreamingClient[wire.RelayBytes, wire.RelayBytes]
}

// SendBytes implements rpc.ByteStream.
func (b bytesClient) SendBytes(data []byte) error { return b.Send(&wire.RelayBytes{Data: data}) }

// ReceiveBytes implements rpc.ByteStream.
func (b bytesClient) ReceiveBytes() ([]byte, error) {
	m, err := b.Recv()
	return m.GetData(), err
}
