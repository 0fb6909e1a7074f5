package relay

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/roost-batch/roost/internal/identity/peer"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/wire"
)

// hostileRelay is a relay that changes what it carries. Its own TLS is in order: it is a
// collector with a certificate that somebody has taken over.
type hostileRelay struct {
	*Server
	mu      sync.Mutex
	streams int
	// returns what the relay makes of the n-th message of a stream; nil: it is honest.
	// The streams of those that dial have positive numbers, those of nodes negative ones.
	tamper func(stream, n int, data []byte) [][]byte
}

// tamperedStream is one end of a connection at a hostile relay.
type tamperedStream struct {
	bytesServer
	relay     *hostileRelay
	number, n int
	waiting   [][]byte // to be received before the next message
}

func (h *hostileRelay) newStream(s bytesServer, sign int) *tamperedStream {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.streams++
	return &tamperedStream{bytesServer: s, relay: h, number: sign * h.streams}
}

func (h *hostileRelay) Dial(s bytesServer) error   { return h.Server.Dial(h.newStream(s, 1)) }
func (h *hostileRelay) Accept(s bytesServer) error { return h.Server.Accept(h.newStream(s, -1)) }

func (h *hostileRelay) setTamper(f func(stream, n int, data []byte) [][]byte) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.tamper = f
}

func (s *tamperedStream) Recv() (*wire.RelayBytes, error) {
	for {
		if len(s.waiting) > 0 {
			data := s.waiting[0]
			s.waiting = s.waiting[1:]
			return &wire.RelayBytes{Data: data}, nil
		}
		m, err := s.bytesServer.Recv()
		if err != nil || len(m.GetData()) == 0 {
			return m, err
		}
		s.n++
		s.relay.mu.Lock()
		if s.relay.tamper == nil {
			s.relay.mu.Unlock()
			return m, nil
		}
		s.waiting = s.relay.tamper(s.number, s.n, m.GetData())
		s.relay.mu.Unlock()
	}
}

// countingStartd counts the calls that reach it.
type countingStartd struct {
	echoStartd
	calls *atomic.Int64
}

func (s countingStartd) Tail(req *wire.TailRequest, stream grpc.ServerStreamingServer[wire.LogChunk]) error {
	s.calls.Add(1)
	return s.echoStartd.Tail(req, stream)
}

// newHostilePool is a pool with a hostile relay, and a node that only it reaches.
func newHostilePool(t *testing.T) (p *testPool, h *hostileRelay, calls *atomic.Int64) {
	p = newTestPool(t)
	l, err := rpc.Listen("127.0.0.1:0", 0)
	if err != nil {
		t.Fatal(err)
	}
	h = &hostileRelay{Server: NewServer(p.log)}
	server := rpc.NewServer(p.identity("central2", peer.Collector), peer.MethodAccess())
	wire.RegisterRelayServer(server, h)
	served := make(chan struct{})
	go func() { defer close(served); server.Serve(l) }()
	t.Cleanup(func() { server.Stop(); <-served })
	p.relay = l.Addr().String()

	id, calls := p.identity("n1", peer.Startd), new(atomic.Int64)
	node, err := Listen(p.relay, id, p.log)
	if err != nil {
		t.Fatal(err)
	}
	startd := rpc.NewServer(id, peer.MethodAccess())
	wire.RegisterStartdServer(startd, countingStartd{calls: calls})
	running := make(chan struct{})
	go func() { defer close(running); startd.Serve(node) }()
	t.Cleanup(func() { startd.Stop(); node.Close(); <-running })
	return p, h, calls
}

// TestHostileRelay has a relay change what it carries in each way that it can. Nobody may
// be answered wrongly, and no call may reach the node that nobody has made. When the
// relay is honest again, all goes on.
func TestHostileRelay(t *testing.T) {
	p, h, calls := newHostilePool(t)
	c := p.dialNode(p.identity("login1", peer.Schedd), "n1")
	made := int64(0)
	call := func(text string, wait bool) error {
		made++
		most := 20 * time.Second
		if !wait { // perhaps nothing answers
			most = 700 * time.Millisecond
		}
		ctx, cancel := context.WithTimeout(t.Context(), most)
		defer cancel()
		got, err := tail(ctx, c, text, wait)
		if err == nil && got != "login1 "+text {
			t.Errorf("asked %q: got %q", text, got)
		}
		if n := calls.Load(); n > made {
			t.Errorf("%d calls were made, and %d have reached the node", made, n)
		}
		return err
	}
	if err := call("first", true); err != nil {
		t.Fatal(err)
	}
	var earlier []byte
	for name, tamper := range map[string]func(stream, n int, data []byte) [][]byte{
		"repeats": func(_, _ int, data []byte) [][]byte { return [][]byte{data, data} },
		"drops":   func(_, n int, data []byte) [][]byte { return nil },
		"turns a bit": func(_, _ int, data []byte) [][]byte {
			data = append([]byte(nil), data...)
			data[len(data)/2] ^= 1
			return [][]byte{data}
		},
		"cuts": func(_, _ int, data []byte) [][]byte { return [][]byte{data[:len(data)/2]} },
		"adds": func(_, _ int, data []byte) [][]byte { return [][]byte{data, []byte("GET / HTTP/1.1\r\n\r\n")} },
		"swaps the ends": func(_, _ int, data []byte) [][]byte {
			before := earlier
			if earlier = append([]byte(nil), data...); before == nil {
				return nil
			}
			return [][]byte{before}
		},
	} {
		t.Run(name, func(t *testing.T) {
			h.setTamper(tamper)
			failed := 0
			for range 2 {
				if call(strings.ReplaceAll(name, " ", "-"), false) != nil {
					failed++
				}
			}
			if failed == 0 {
				t.Error("no call has failed: nothing was changed")
			}
			h.setTamper(nil)
			err := call("again", true)
			for i := 0; i < 10 && err != nil; i++ { // on a connection that was damaged before
				err = call("again", true)
			}
			if err != nil {
				t.Errorf("the relay is honest again: %v", err)
			}
		})
	}
}

// TestRecordedSession has a relay play what a schedd has sent in an earlier connection.
// The node must do nothing of it again.
func TestRecordedSession(t *testing.T) {
	p, h, calls := newHostilePool(t)
	records := map[int][][]byte{} // by stream: what a schedd has sent
	h.setTamper(func(stream, _ int, data []byte) [][]byte {
		if stream > 0 {
			records[stream] = append(records[stream], append([]byte(nil), data...))
		}
		return [][]byte{data}
	})
	id := p.identity("login1", peer.Schedd)
	if got, err := tail(t.Context(), p.dialNode(id, "n1"), "once", true); got != "login1 once" || err != nil {
		t.Fatalf("%q, %v", got, err)
	}
	h.mu.Lock()
	last := h.streams
	record := records[slices.Max(slices.Collect(maps.Keys(records)))]
	h.mu.Unlock()
	if len(record) < 2 {
		t.Fatalf("%d messages were recorded", len(record))
	}
	h.setTamper(func(stream, n int, data []byte) [][]byte {
		if stream > last {
			if n == 1 {
				return record
			}
			return nil
		}
		return [][]byte{data}
	})
	if got, err := tail(t.Context(), p.dialNode(id, "n1"), "twice", false); err == nil {
		t.Errorf("got %q", got)
	}
	if n := calls.Load(); n != 1 {
		t.Errorf("the node has done %d calls of one", n)
	}
}
