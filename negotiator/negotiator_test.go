package negotiator

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/auth"
	"github.com/roost-batch/roost/internal/config"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/wire"
)

// fakeCollector tells watchers of machines what the test tells it.
type fakeCollector struct {
	wire.UnimplementedCollectorServer
	deltas chan *wire.AdDelta
}

func (f *fakeCollector) Advertise(stream grpc.BidiStreamingServer[wire.AdUpdate, wire.AdAck]) error {
	for {
		u, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = stream.Send(&wire.AdAck{Sequence: u.GetSequence()})
		}
		if err != nil {
			return err
		}
	}
}

func (f *fakeCollector) Watch(_ *wire.WatchAds, stream grpc.ServerStreamingServer[wire.AdDelta]) error {
	for {
		select {
		case d := <-f.deltas:
			if err := stream.Send(d); err != nil {
				return err
			}
		case <-stream.Context().Done():
			return nil
		}
	}
}

// pool is a negotiator with a collector that the test plays.
type pool struct {
	t         *testing.T
	node      *config.Node
	collector *fakeCollector
}

func newPool(t *testing.T) *pool {
	dir := t.TempDir()
	p := &pool{t: t, collector: &fakeCollector{deltas: make(chan *wire.AdDelta, 100)}}
	p.node = &config.Node{
		Name: "head", Dir: dir, Collectors: []string{"unix:" + filepath.Join(dir, "c.sock")},
		Negotiator: &config.Negotiator{Listen: []string{"unix:" + filepath.Join(dir, "n.sock")}, Cycle: time.Hour},
	}
	server := rpc.NewServer(nil, auth.Methods())
	wire.RegisterCollectorServer(server, p.collector)
	l := p.listen(p.node.Collectors[0])
	go server.Serve(l)
	t.Cleanup(server.Stop)
	return p
}

func (p *pool) listen(addr string) net.Listener {
	l, err := rpc.Listen(addr, 0o600)
	if err != nil {
		p.t.Fatal(err)
	}
	return l
}

// start starts the negotiator and returns what stops it.
func (p *pool) start() (stop func()) {
	l, err := open(filepath.Join(p.node.Dir, "negotiator"), p.node.Negotiator.Cycle, slog.New(slog.DiscardHandler))
	if err != nil {
		p.t.Fatal(err)
	}
	listener := p.listen(p.node.Negotiator.Listen[0])
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		server := rpc.NewServer(nil, auth.Methods(), grpc.WaitForHandlers(true))
		ended <- l.serve(ctx, server, []net.Listener{listener}, p.node, nil, func() {})
	}()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			p.t.Errorf("the negotiator ended with %v", err)
		}
	})
	p.t.Cleanup(stop)
	return stop
}

func (p *pool) machine(name string, sequence uint64, cpus int) {
	p.collector.deltas <- &wire.AdDelta{
		Name: name, Sequence: sequence, Started: 1, Ad: fmt.Sprintf("[Cpus = %d; TotalCpus = 16]", cpus),
		Private: map[string]string{grantKey: hex.EncodeToString(testKey)},
	}
}

// join starts a conversation as a schedd.
func (p *pool) join(name string) (grpc.BidiStreamingClient[wire.FromSchedd, wire.ToSchedd], uint64) {
	p.t.Helper()
	conn, err := rpc.Dial(p.node.Negotiator.Listen[0], nil, auth.Negotiator)
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { conn.Close() })
	stream, err := wire.NewNegotiatorClient(conn).Negotiate(p.t.Context(), grpc.WaitForReady(true))
	if err != nil {
		p.t.Fatal(err)
	}
	p.say(stream, &wire.FromSchedd{Of: &wire.FromSchedd_Hello{Hello: &wire.ScheddHello{Name: name}}})
	hello := p.hear(stream).GetHello()
	if hello.GetName() != "head" {
		p.t.Fatalf("the negotiator calls itself %q", hello.GetName())
	}
	return stream, hello.GetEpoch()
}

func (p *pool) say(stream grpc.BidiStreamingClient[wire.FromSchedd, wire.ToSchedd], m *wire.FromSchedd) {
	p.t.Helper()
	if err := stream.Send(m); err != nil {
		p.t.Fatal(err)
	}
}

func (p *pool) hear(stream grpc.BidiStreamingClient[wire.FromSchedd, wire.ToSchedd]) *wire.ToSchedd {
	p.t.Helper()
	m, err := stream.Recv()
	if err != nil {
		p.t.Fatal(err)
	}
	return m
}

// hearGrant skips explanations.
func (p *pool) hearGrant(stream grpc.BidiStreamingClient[wire.FromSchedd, wire.ToSchedd]) *wire.Grant {
	p.t.Helper()
	for {
		if g := p.hear(stream).GetGrant(); g != nil {
			return g
		}
	}
}

func wish(id uint64, wanted uint32, seen uint64) *wire.FromSchedd {
	return &wire.FromSchedd{Of: &wire.FromSchedd_Request{Request: &wire.RequestUpdate{
		Id: id, Owner: "ann", Wanted: wanted, GrantsSeen: &seen, Resources: wire.FromResources(roost.Resources{CPU: 1000}),
	}}}
}

// TestNegotiate takes a request to its grant over real sockets, and an ad that frees a core to the next one.
func TestNegotiate(t *testing.T) {
	p := newPool(t)
	stop := p.start()
	stream, epoch := p.join("s")
	p.machine("n1", 1, 1)
	p.collector.deltas <- &wire.AdDelta{Synced: true}
	p.say(stream, wish(1, 100, 0))
	g := p.hearGrant(stream)
	if g.GetNode() != "n1" || g.GetEpoch() != epoch || !wire.CheckCapability(testKey, g) {
		t.Fatalf("first grant: %v", g)
	}
	var least time.Duration
	sequence := uint64(1)
	for range 20 {
		sequence++
		p.say(stream, &wire.FromSchedd{Of: &wire.FromSchedd_Result{Result: &wire.GrantResult{Grant: g.GetId(), Claimed: true, AdSequence: sequence}}})
		sequence++
		began := time.Now()
		p.machine("n1", sequence, 1)
		g = p.hearGrant(stream)
		if took := time.Since(began); least == 0 || took < least {
			least = took
		}
	}
	t.Logf("from a machine's ad to the grant: %v at best", least)

	p.say(stream, &wire.FromSchedd{Of: &wire.FromSchedd_Usage{Usage: &wire.Usage{Owner: "ann", Held: wire.FromResources(roost.Resources{CPU: 1000})}}})
	p.say(stream, wish(2, 1, g.GetId()))
	stop()
	if _, err := os.Stat(filepath.Join(p.node.Dir, "negotiator", usageFile)); err != nil {
		t.Errorf("usage was not saved: %v", err)
	}
	p.start()
	if _, again := p.join("s"); again != epoch+1 {
		t.Errorf("epoch %d after %d", again, epoch)
	}
}

// TestReplaced holds that a newer conversation of a schedd ends the older one.
func TestReplaced(t *testing.T) {
	p := newPool(t)
	p.start()
	old, _ := p.join("s")
	p.join("s")
	if _, err := old.Recv(); !errors.Is(rpc.FromStatus(err), roost.Stale) {
		t.Errorf("the older conversation ends with %v", err)
	}
}

func TestEpoch(t *testing.T) {
	dir, now := t.TempDir(), time.Unix(5000, 0)
	for want := uint64(5000); want < 5003; want++ {
		if got, err := nextEpoch(dir, now); err != nil || got != want {
			t.Fatalf("got %d, %v, want %d", got, err, want)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, epochFile), []byte("junk"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := nextEpoch(dir, now); !errors.Is(err, roost.BadConfig) {
		t.Errorf("junk: %v", err)
	}
}

// TestLostUsage holds that usage that cannot be read is put aside and does not keep the negotiator down.
func TestLostUsage(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, usageFile), []byte("junk"), 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := open(dir, 0, slog.New(slog.DiscardHandler))
	if err != nil || l.period != defaultPeriod {
		t.Fatalf("open: %v", err)
	}
	if text, err := os.ReadFile(filepath.Join(dir, usageFile+".bad")); string(text) != "junk" {
		t.Errorf("put aside: %q, %v", text, err)
	}
}
