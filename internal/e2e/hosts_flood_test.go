package e2e

import (
	"context"
	"crypto/tls"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/roost-batch/roost/internal/wire"
)

// The flood against each of three daemons at once.
const (
	halfOpenConnections = 2000
	slowConnections     = 500
	floodClients        = 8
	honestInterval      = 50 * time.Millisecond
	floodCalls          = 100 // of the honest client, during the flood
	maxHonestDelay      = time.Second
)

// floodConnections opens idle connections, starts requests without ending them, and calls
// without pause. Meanwhile an honest client must be served.
func (a *attackedPool) floodConnections() {
	ctx, cancel := context.WithCancel(a.Context())
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	sock := filepath.Join(a.nodes["submit"].dir, "run", "schedd.sock")
	anonymousDialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}}
	var open atomic.Int64
	hold := func(n int, dial func() (net.Conn, error), text []byte) {
		for range n {
			if conn, err := dial(); err == nil {
				open.Add(1)
				if len(text) > 0 {
					conn.Write(text)
				}
				running.Go(func() { <-ctx.Done(); conn.Close() })
			}
		}
	}
	for _, daemon := range []string{"collector", "startd"} {
		hold(halfOpenConnections/2, func() (net.Conn, error) {
			return anonymousDialer.DialContext(ctx, "tcp", a.addresses[daemon])
		}, nil)
		own := a.ids["startd"].TLS()
		hold(slowConnections/4, func() (net.Conn, error) {
			conn, err := anonymousDialer.DialContext(ctx, "tcp", a.addresses[daemon])
			if err != nil {
				return nil, err
			}
			conn.SetDeadline(time.Now().Add(awaitTimeout))
			return tls.Client(conn, own), nil
		}, unfinishedRequest("/roost.wire.Collector/Query"))
	}
	hold(slowConnections/2, func() (net.Conn, error) {
		return dialAs(mallory, sock)
	}, unfinishedRequest("/roost.wire.Schedd/Submit"))
	if a.Logf("%d connections are held", open.Load()); open.Load() < (halfOpenConnections+slowConnections)*9/10 {
		a.Errorf("that is no flood: may this process have so many descriptors?")
	}
	var floods atomic.Int64
	for range floodClients {
		loud, node := wire.NewScheddClient(a.dialSchedd(mallory)),
			wire.NewCollectorClient(a.dialDaemon("collector", a.ids["startd"]))
		running.Go(func() {
			for ctx.Err() == nil {
				loud.Health(ctx, &wire.HealthRequest{})
				loud.Act(ctx, &wire.ActRequest{Verb: wire.ActRequest_REMOVE,
					Selection: &wire.Selection{Selectors: []string{a.job}}})
				if s, err := node.Query(ctx, &wire.AdQuery{Type: "Machine"}); err == nil {
					for err == nil {
						_, err = s.Recv()
					}
				}
				floods.Add(3)
			}
		})
	}
	honest := a.newIdentity("honest", "schedd")
	// Each call has a connection of its own, as each command does.
	asks := map[string]func(context.Context) error{
		"schedd": func(ctx context.Context) error {
			_, err := wire.NewScheddClient(a.dialSchedd(someone)).Health(ctx, &wire.HealthRequest{})
			return err
		},
		"collector": func(ctx context.Context) error {
			s, err := wire.NewCollectorClient(a.dialDaemon("collector", honest)).Query(ctx,
				&wire.AdQuery{Type: "Machine"})
			return firstStreamError(s, err)
		},
		"startd": func(ctx context.Context) error {
			s, err := wire.NewStartdClient(a.dialDaemon("startd", honest)).Session(ctx)
			if err == nil {
				err = s.Send(&wire.ToStartd{Of: &wire.ToStartd_Hello{Hello: &wire.SessionHello{Schedd: "honest",
					Incarnation: uint64(time.Now().UnixNano()), Started: 1}}})
			}
			return firstStreamError(s, err)
		},
	}
	var honestCalls sync.WaitGroup
	for name, ask := range asks {
		honestCalls.Go(func() { a.callDuringFlood(ctx, name, ask, &floods) })
	}
	honestCalls.Wait()
	a.awaitLogged("central", "closed a connection that had not identified itself")
	if n := strings.Count(a.nodes["submit"].logText(), "/Act REMOVE"); n > 10 {
		a.Errorf("a user has filled the log with %d lines", n)
	}
}

// callDuringFlood calls a daemon as an honest client, and checks how long it waits.
func (a *attackedPool) callDuringFlood(ctx context.Context, name string, ask func(context.Context) error,
	floods *atomic.Int64) {
	var took []time.Duration
	tick := time.NewTicker(honestInterval)
	defer tick.Stop()
	for range floodCalls {
		<-tick.C
		one, done := context.WithTimeout(ctx, awaitTimeout)
		began := time.Now()
		if err := ask(one); err != nil {
			a.Errorf("%s does not answer an honest client: %v", name, err)
		}
		took = append(took, time.Since(began))
		done()
	}
	slices.Sort(took)
	a.Logf("%s: half of the answers within %v, nine of ten within %v, all within %v; %d calls of the flood so far",
		name, took[len(took)/2], took[len(took)*9/10], took[len(took)-1], floods.Load())
	if took[len(took)*9/10] > maxHonestDelay {
		a.Errorf("%s keeps an honest client waiting: %v", name, took)
	}
}

// unfinishedRequest returns the start of a call over HTTP/2, with five bytes of a message
// of a million. The format is that of RFC 9113 and RFC 7541 (literals without an index).
func unfinishedRequest(method string) []byte {
	frame := func(kind, flags, stream byte, payload []byte) []byte {
		n := len(payload)
		return append([]byte{byte(n >> 16), byte(n >> 8), byte(n), kind, flags, 0, 0, 0, stream}, payload...)
	}
	var block []byte
	for _, h := range [][2]string{{":method", "POST"}, {":scheme", "http"}, {":path", method}, {":authority", "roost"},
		{"content-type", "application/grpc"}, {"te", "trailers"}} {
		block = append(append(append(block, 0, byte(len(h[0]))), h[0]...), byte(len(h[1])))
		block = append(block, h[1]...)
	}
	text := append([]byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), frame(4, 0, 0, nil)...)
	text = append(text, frame(1, 4, 1, block)...)
	return append(text, frame(0, 0, 1, []byte{0, 0, 15, 66, 64, 1, 2, 3, 4, 5})...)
}
