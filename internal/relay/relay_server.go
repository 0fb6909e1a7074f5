package relay

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"

	"google.golang.org/grpc"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/identity/peer"
	"github.com/roost-batch/roost/internal/sendqueue"
	"github.com/roost-batch/roost/internal/wire"
)

// Bounds of a relay.
const (
	acceptTimeout = 10 * time.Second // for a node to accept a connection
	maxConns      = 50_000           // of all nodes
	maxNodeConns  = 256              // of one node
	// bytes in one direction of a connection that wait for the other end to take them;
	// what both ends have under way at most is less
	maxWaiting = 16 << 20
	idBytes    = 16
)

// Server implements the service Relay. Its methods are safe for concurrent use.
type Server struct {
	wire.UnimplementedRelayServer
	log *slog.Logger

	mu    sync.Mutex
	nodes map[string]*listeningNode // by name
	calls map[string]*relayedConn   // that no node has accepted yet, by id
	conns int                       // with those that wait for a node
}

// NewServer returns a relay that nobody has called yet.
func NewServer(log *slog.Logger) *Server {
	return &Server{log: log, nodes: map[string]*listeningNode{}, calls: map[string]*relayedConn{}}
}

// listeningNode is a node that accepts connections.
type listeningNode struct {
	calls *sendqueue.Queue[*wire.RelayCall]
	gone  chan struct{}
	conns int
}

// relayedConn is one connection.
type relayedConn struct {
	node     string
	toNode   *sendqueue.Queue[[]byte]
	toDialer *sendqueue.Queue[[]byte]
	accepted chan struct{}
	ended    chan struct{}
	accept   func()
	end      func()
}

func newRelayedConn(node string) *relayedConn {
	c := &relayedConn{node: node, toNode: sendqueue.New[[]byte](), toDialer: sendqueue.New[[]byte](),
		accepted: make(chan struct{}), ended: make(chan struct{})}
	c.accept = sync.OnceFunc(func() { close(c.accepted) })
	c.end = sync.OnceFunc(func() { close(c.ended) })
	for _, q := range []*sendqueue.Queue[[]byte]{c.toNode, c.toDialer} {
		q.Limit(maxWaiting, maxWaiting, func(data []byte) int { return len(data) }, c.end)
	}
	return c
}

// callingNode returns the name in the certificate of the caller. A relay without
// certificates serves one host, where everybody is reached without it.
func callingNode(ctx context.Context) (string, error) {
	p, _ := peer.FromContext(ctx)
	if p.Name == "" {
		return "", fmt.Errorf("relay: %w: only nodes with a certificate may use it", roost.PermissionDenied)
	}
	return p.Name, nil
}

// Listen implements wire.RelayServer. A newer call of the same node ends an older one: it
// has connected anew, and the relay may not have noticed yet that the old one is dead.
func (s *Server) Listen(req *wire.RelayListen, stream grpc.ServerStreamingServer[wire.RelayCall]) error {
	ctx := stream.Context()
	name, err := callingNode(ctx)
	if err != nil {
		return err
	}
	if req.GetNode() != name {
		return fmt.Errorf("relay: %w: %s asks for the connections of %s", roost.PermissionDenied, name, req.GetNode())
	}
	n := &listeningNode{calls: sendqueue.New[*wire.RelayCall](), gone: make(chan struct{})}
	s.mu.Lock()
	if before := s.nodes[name]; before != nil {
		n.conns = before.conns
		close(before.gone)
	}
	s.nodes[name] = n
	s.mu.Unlock()
	s.log.Info("a node is reached here", "node", name)
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.nodes[name] == n {
			delete(s.nodes, name)
			close(n.gone)
		}
	}()
	if err := stream.Send(&wire.RelayCall{}); err != nil {
		return err
	}
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-n.gone:
			return fmt.Errorf("relay: %w: %s has connected anew", roost.Stale, name)
		case <-n.calls.Ready():
		}
		for _, call := range n.calls.Take() {
			if err := stream.Send(call); err != nil {
				return err
			}
		}
	}
}

// call asks a node to accept a connection.
func (s *Server) call(node, from string) (id string, c *relayedConn, n *listeningNode, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n = s.nodes[node]
	switch {
	case n == nil:
		return "", nil, nil, fmt.Errorf("relay: %w: %s is not connected to this one", roost.Unavailable, node)
	case n.conns >= maxNodeConns || s.conns >= maxConns:
		return "", nil, nil, fmt.Errorf("relay: %w: %s has %d connections, and all nodes %d", roost.Exhausted, node,
			n.conns, s.conns)
	}
	key := make([]byte, idBytes)
	rand.Read(key) // never fails (crypto/rand)
	c = newRelayedConn(node)
	n.conns++
	s.conns++
	s.calls[string(key)] = c
	n.calls.Put(&wire.RelayCall{Id: key, From: from})
	return string(key), c, n, nil
}

// forget removes what call has added.
func (s *Server) forget(id string, c *relayedConn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.calls, id)
	s.conns--
	if n := s.nodes[c.node]; n != nil && n.conns > 0 {
		n.conns--
	}
}

// take returns the connection that waits for a node, once.
func (s *Server) take(id, node string) (*relayedConn, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.calls[id]
	if c == nil || c.node != node {
		return nil, fmt.Errorf("relay: %w: no such connection waits for %s", roost.NotFound, node)
	}
	delete(s.calls, id)
	return c, nil
}

// Dial implements wire.RelayServer.
func (s *Server) Dial(stream grpc.BidiStreamingServer[wire.RelayBytes, wire.RelayBytes]) error {
	ctx := stream.Context()
	from, err := callingNode(ctx)
	if err != nil {
		return err
	}
	first, err := stream.Recv()
	if err != nil {
		return err
	}
	id, c, n, err := s.call(first.GetNode(), from)
	if err != nil {
		return err
	}
	defer s.forget(id, c)
	defer c.end()
	late := time.NewTimer(acceptTimeout)
	defer late.Stop()
	select {
	case <-c.accepted:
	case <-late.C:
		return fmt.Errorf("relay: %w: %s does not accept the connection within %v", roost.Unavailable,
			first.GetNode(), acceptTimeout)
	case <-n.gone:
		return fmt.Errorf("relay: %w: %s has gone", roost.Unavailable, first.GetNode())
	case <-ctx.Done():
		return ctx.Err()
	}
	if err := stream.Send(&wire.RelayBytes{}); err != nil {
		return err
	}
	go receiveAll(stream, c.toNode, c.end)
	return sendAll(stream, c.toDialer, c.ended)
}

// Accept implements wire.RelayServer.
func (s *Server) Accept(stream grpc.BidiStreamingServer[wire.RelayBytes, wire.RelayBytes]) error {
	node, err := callingNode(stream.Context())
	if err != nil {
		return err
	}
	first, err := stream.Recv()
	if err != nil {
		return err
	}
	c, err := s.take(string(first.GetId()), node)
	if err != nil {
		return err
	}
	defer c.end()
	if err := stream.Send(&wire.RelayBytes{}); err != nil {
		return err
	}
	c.accept()
	go receiveAll(stream, c.toDialer, c.end)
	return sendAll(stream, c.toNode, c.ended)
}

// bytesServer is either end of a connection at the relay.
type bytesServer = grpc.BidiStreamingServer[wire.RelayBytes, wire.RelayBytes]

// receiveAll takes what one end sends, for the other, until the call is over.
func receiveAll(from bytesServer, to *sendqueue.Queue[[]byte], end func()) {
	for {
		m, err := from.Recv()
		if err != nil {
			if errors.Is(err, io.EOF) { // what it has sent before still arrives
				to.Put(nil)
			} else {
				end()
			}
			return
		}
		if len(m.GetData()) > 0 {
			to.Put(m.GetData())
		}
	}
}

// sendAll sends what the other end has sent, until it has sent all or the connection has
// ended.
func sendAll(to bytesServer, from *sendqueue.Queue[[]byte], ended <-chan struct{}) error {
	for {
		select {
		case <-ended:
			return nil
		case <-to.Context().Done():
			return to.Context().Err()
		case <-from.Ready():
		}
		for _, data := range from.Take() {
			if data == nil {
				return nil
			}
			if err := to.Send(&wire.RelayBytes{Data: data}); err != nil {
				return err
			}
		}
	}
}

// Counts returns how many nodes are reached here, and how many connections there are.
func (s *Server) Counts() (nodes, conns int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.nodes), s.conns
}
