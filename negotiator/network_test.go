package negotiator

import (
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"google.golang.org/grpc"

	"github.com/roost-batch/roost/internal/identity/peer"
	"github.com/roost-batch/roost/internal/rpc"
)

// socketNetwork connects the negotiators of a test by sockets that can be cut. There is
// one for each direction between two of them. A cut socket loses and delivers nothing,
// like TCP while it retransmits.
type socketNetwork struct {
	t   *testing.T
	dir string

	mu        sync.Mutex
	change    *sync.Cond
	cutLinks  map[string]bool // "from to", names of nodes
	openLinks map[string]bool // "from to" of those that have a socket
	closed    bool
}

func newSocketNetwork(t *testing.T, dir string) *socketNetwork {
	n := &socketNetwork{t: t, dir: dir, cutLinks: map[string]bool{}, openLinks: map[string]bool{}}
	n.change = sync.NewCond(&n.mu)
	t.Cleanup(func() {
		n.mu.Lock()
		n.closed = true
		n.mu.Unlock()
		n.change.Broadcast()
	})
	return n
}

// address returns the address of a node's negotiator.
func (n *socketNetwork) address(node string) string {
	return "unix:" + filepath.Join(n.dir, node+".sock")
}

// isolateNode cuts a node off from all others, or reconnects it.
func (n *socketNetwork) isolateNode(node string, others []string, cut bool) {
	n.mu.Lock()
	for _, other := range others {
		n.cutLinks[node+" "+other], n.cutLinks[other+" "+node] = cut, cut
	}
	n.mu.Unlock()
	n.change.Broadcast()
}

// dialer returns how a node connects to the others.
func (n *socketNetwork) dialer(from string) func(address string) (*grpc.ClientConn, error) {
	return func(address string) (*grpc.ClientConn, error) {
		to := strings.TrimSuffix(filepath.Base(address), ".sock")
		return rpc.Dial(n.socketBetween(from, to), nil, peer.Negotiator)
	}
}

// socketBetween returns the address by which one node reaches another, and creates it if
// needed.
func (n *socketNetwork) socketBetween(from, to string) string {
	address := "unix:" + filepath.Join(n.dir, from+"-"+to+".sock")
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.openLinks[from+" "+to] {
		return address
	}
	n.openLinks[from+" "+to] = true
	l, err := rpc.Listen(address, 0o600)
	if err != nil {
		n.t.Error(err)
		return address
	}
	n.t.Cleanup(func() { l.Close() })
	go func() {
		for {
			near, err := l.Accept()
			if err != nil {
				return
			}
			far, err := net.Dial("unix", filepath.Join(n.dir, to+".sock"))
			if err != nil {
				near.Close()
				continue
			}
			go n.copyConnection(near, far, from+" "+to)
			go n.copyConnection(far, near, to+" "+from)
		}
	}()
	return address
}

// copyConnection copies one direction of a connection. Data that comes during a cut
// waits.
func (n *socketNetwork) copyConnection(from, to net.Conn, direction string) {
	defer from.Close()
	defer to.Close()
	piece := make([]byte, 64<<10)
	for {
		size, err := from.Read(piece)
		if err != nil {
			return
		}
		n.mu.Lock()
		for n.cutLinks[direction] && !n.closed {
			n.change.Wait()
		}
		n.mu.Unlock()
		if _, err := to.Write(piece[:size]); err != nil {
			return
		}
	}
}

// nodeNames returns the nodes of a cell of that size.
func nodeNames(count int) (all []string) {
	for i := range count {
		all = append(all, fmt.Sprintf("c%d", i+1))
	}
	return all
}
