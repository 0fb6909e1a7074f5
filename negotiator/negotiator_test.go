package negotiator

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/config"
	"github.com/roost-batch/roost/internal/identity/peer"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/negotiator/fairshare"
	"github.com/roost-batch/roost/negotiator/ledger"
)

// fakeCollector sends watchers of machines what the test gives it.
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

// collectorTest is a negotiator with a collector that the test controls.
type collectorTest struct {
	t         *testing.T
	node      *config.Node
	collector *fakeCollector
	dial      func(string) (*grpc.ClientConn, error) // how it connects to others
	server    *replicatedServer                      // as last started
	applied   chan struct{}                          // has one if an entry was applied since it was last taken
}

func newCollectorTest(t *testing.T) *collectorTest {
	dir := t.TempDir()
	return collectorTestAt(t, dir, "head", "unix:"+filepath.Join(dir, "n.sock"))
}

func collectorTestAt(t *testing.T, dir, name, address string) *collectorTest {
	p := &collectorTest{t: t, collector: &fakeCollector{deltas: make(chan *wire.AdDelta, 100)},
		applied: make(chan struct{}, 1)}
	p.node = &config.Node{
		Name: name, Dir: dir, Collectors: []string{"unix:" + filepath.Join(dir, "c.sock")},
		Negotiator: &config.NegotiatorSettings{Listen: []string{address}, Cycle: time.Hour},
	}
	server := rpc.NewServer(nil, peer.MethodAccess())
	wire.RegisterCollectorServer(server, p.collector)
	l := p.listenAt(p.node.Collectors[0])
	go server.Serve(l)
	t.Cleanup(server.Stop)
	return p
}

func (p *collectorTest) listenAt(addr string) net.Listener {
	l, err := rpc.Listen(addr, 0o600)
	if err != nil {
		p.t.Fatal(err)
	}
	return l
}

// startNegotiator starts the negotiator and returns a function that stops it.
func (p *collectorTest) startNegotiator() (stop func()) {
	s, err := openServer(p.node, nil, p.dial, slog.New(slog.DiscardHandler))
	if err != nil {
		p.t.Fatal(err)
	}
	p.server = s
	applied := s.ledgerStore.onApplied
	s.ledgerStore.onApplied = func(epoch uint64) {
		applied(epoch)
		select {
		case p.applied <- struct{}{}:
		default:
		}
	}
	listener := p.listenAt(p.node.Negotiator.Listen[0])
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		ended <- s.serve(ctx, rpc.NewServer(nil, peer.MethodAccess(), grpc.WaitForHandlers(true)),
			[]net.Listener{listener}, func() {})
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

func (p *collectorTest) addMachine(name string, sequence uint64, cpus int) {
	p.collector.deltas <- &wire.AdDelta{
		Name: name, Sequence: sequence, Started: 1, Ad: fmt.Sprintf("[Cpus = %d; TotalCpus = 16]", cpus),
		Private: map[string]string{grantKey: hex.EncodeToString(testKey)},
	}
}

// joinSchedd begins a session as a schedd.
func (p *collectorTest) joinSchedd(name string) (grpc.BidiStreamingClient[wire.FromSchedd, wire.ToSchedd], uint64) {
	p.t.Helper()
	return p.joinAs(&wire.ScheddHello{Name: name})
}

func (p *collectorTest) joinAs(
	schedd *wire.ScheddHello) (grpc.BidiStreamingClient[wire.FromSchedd, wire.ToSchedd], uint64) {
	p.t.Helper()
	conn, err := rpc.Dial(p.node.Negotiator.Listen[0], nil, peer.Negotiator)
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { conn.Close() })
	client := wire.NewNegotiatorClient(conn)
	watch, err := client.Watch(p.t.Context(), &wire.WatchLeader{}, grpc.WaitForReady(true))
	for leads := false; !leads; {
		var update *wire.LeaderNews
		if err == nil {
			update, err = watch.Recv()
		}
		if err != nil {
			p.t.Fatal(err)
		}
		leads = update.GetLeads()
	}
	stream, err := client.Negotiate(p.t.Context())
	if err != nil {
		p.t.Fatal(err)
	}
	p.sendMessage(stream, &wire.FromSchedd{Of: &wire.FromSchedd_Hello{Hello: schedd}})
	hello := p.receiveMessage(stream).GetHello()
	if hello.GetName() != p.node.Name {
		p.t.Fatalf("the negotiator calls itself %q", hello.GetName())
	}
	return stream, hello.GetEpoch()
}

func (p *collectorTest) sendMessage(stream grpc.BidiStreamingClient[wire.FromSchedd, wire.ToSchedd],
	m *wire.FromSchedd) {
	p.t.Helper()
	if err := stream.Send(m); err != nil {
		p.t.Fatal(err)
	}
}

func (p *collectorTest) receiveMessage(stream grpc.BidiStreamingClient[wire.FromSchedd, wire.ToSchedd]) *wire.ToSchedd {
	p.t.Helper()
	m, err := stream.Recv()
	if err != nil {
		p.t.Fatal(err)
	}
	return m
}

// receiveGrant returns the next grant, skipping explanations.
func (p *collectorTest) receiveGrant(stream grpc.BidiStreamingClient[wire.FromSchedd, wire.ToSchedd]) *wire.Grant {
	p.t.Helper()
	for {
		if g := p.receiveMessage(stream).GetGrant(); g != nil {
			return g
		}
	}
}

func requestMessage(id uint64, wanted uint32, seen uint64) *wire.FromSchedd {
	return &wire.FromSchedd{Of: &wire.FromSchedd_Request{Request: &wire.RequestUpdate{
		Id: id, Owner: "ann", Wanted: wanted, GrantsSeen: &seen,
		Resources: wire.FromResources(roost.Resources{CPU: 1000}),
	}}}
}

// TestNegotiate follows a request to its grant over real sockets. An ad that frees a core
// then leads to the next grant.
func TestNegotiate(t *testing.T) {
	p := newCollectorTest(t)
	stop := p.startNegotiator()
	stream, epoch := p.joinSchedd("s")
	p.addMachine("n1", 1, 1)
	p.collector.deltas <- &wire.AdDelta{Synced: true}
	p.sendMessage(stream, requestMessage(1, 100, 0))
	g := p.receiveGrant(stream)
	if g.GetNode() != "n1" || g.GetEpoch() != epoch || !wire.CheckClaimToken(testKey, g, "") {
		t.Fatalf("first grant: %v", g)
	}
	var least time.Duration
	sequence := uint64(1)
	for range 20 {
		sequence++
		p.sendMessage(stream, &wire.FromSchedd{Of: &wire.FromSchedd_Result{Result: &wire.GrantResult{Grant: g.GetId(),
			Claimed: true, AdSequence: sequence}}})
		sequence++
		began := time.Now()
		p.addMachine("n1", sequence, 1)
		g = p.receiveGrant(stream)
		if took := time.Since(began); least == 0 || took < least {
			least = took
		}
	}
	t.Logf("from a machine's ad to the grant: %v at best", least)

	p.sendMessage(stream, &wire.FromSchedd{Of: &wire.FromSchedd_Usage{Usage: &wire.Usage{Owner: "ann",
		Held: wire.FromResources(roost.Resources{CPU: 1000})}}})
	p.sendMessage(stream, requestMessage(2, 1, g.GetId()))
	stop()
	p.startNegotiator()
	if _, again := p.joinSchedd("s"); again <= epoch {
		t.Errorf("epoch %d after %d", again, epoch)
	}
}

// TestLegacyFiles checks that state from before the log existed is adopted once. Invalid
// state is set aside and does not prevent the start.
func TestLegacyFiles(t *testing.T) {
	for text, want := range map[string]float64{
		`{"version":1,"accounts":[{"owner":"ann","priority":4,"core_seconds":5000,"factor":1000,"at":"2026-01-01T00:00:00Z"}]}`: 5000,
		"junk": 0,
	} {
		p := newCollectorTest(t)
		file := filepath.Join(p.node.Dir, "negotiator", legacyUsageFile)
		if err := errors.Join(os.Mkdir(filepath.Dir(file), 0o700),
			os.WriteFile(file, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			stop := p.startNegotiator()
			p.joinSchedd("s")
			p.server.ledgerStore.view(func(l *ledger.Ledger) {
				if got := l.Accountant().CoreSeconds(time.Now(), fairshare.Submitter{Owner: "ann"}); got != want {
					t.Errorf("%s: ann has used %v, want %v", text, got, want)
				}
			})
			stop()
			if _, err := os.Stat(file); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("the old file is still there: %v", err)
			}
		}
	}
}

// TestNewerStreamReplaces checks that a newer session of a schedd ends the older one.
func TestNewerStreamReplaces(t *testing.T) {
	p := newCollectorTest(t)
	p.startNegotiator()
	old, _ := p.joinSchedd("s")
	p.joinSchedd("s")
	var err error
	for err == nil {
		_, err = old.Recv()
	}
	if !errors.Is(rpc.FromStatus(err), roost.Stale) {
		t.Errorf("the older conversation ends with %v", err)
	}
}

// TestHeartbeat checks that a negotiator reports who leads without a change, sooner than
// it promises.
func TestHeartbeat(t *testing.T) {
	p := newCollectorTest(t)
	p.startNegotiator()
	p.joinSchedd("s")
	conn, err := rpc.Dial(p.node.Negotiator.Listen[0], nil, peer.Negotiator)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	watch, err := wire.NewNegotiatorClient(conn).Watch(t.Context(), &wire.WatchLeader{}, grpc.WaitForReady(true))
	for range 2 {
		var update *wire.LeaderNews
		if err == nil {
			update, err = watch.Recv()
		}
		if err != nil {
			t.Fatal(err)
		}
		if within := time.Duration(update.GetWithinMs()) * time.Millisecond; !update.GetLeads() ||
			within < 2*heartbeatInterval {
			t.Errorf("it says %v, and speaks every %v", update, heartbeatInterval)
		}
	}
}
