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
	"github.com/roost-batch/roost/internal/auth"
	"github.com/roost-batch/roost/internal/config"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/negotiator/ledger"
	"github.com/roost-batch/roost/negotiator/share"
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
	dial      func(string) (*grpc.ClientConn, error) // how it reaches others
	server    *server                                // as it was last started
	applied   chan struct{}                          // has one if an entry was applied since it was last taken
}

func newPool(t *testing.T) *pool {
	dir := t.TempDir()
	return poolAt(t, dir, "head", "unix:"+filepath.Join(dir, "n.sock"))
}

func poolAt(t *testing.T, dir, name, address string) *pool {
	p := &pool{t: t, collector: &fakeCollector{deltas: make(chan *wire.AdDelta, 100)}, applied: make(chan struct{}, 1)}
	p.node = &config.Node{
		Name: name, Dir: dir, Collectors: []string{"unix:" + filepath.Join(dir, "c.sock")},
		Negotiator: &config.Negotiator{Listen: []string{address}, Cycle: time.Hour},
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
	s, err := open(p.node, nil, p.dial, slog.New(slog.DiscardHandler))
	if err != nil {
		p.t.Fatal(err)
	}
	p.server = s
	told := s.record.applied
	s.record.applied = func(epoch uint64) {
		told(epoch)
		select {
		case p.applied <- struct{}{}:
		default:
		}
	}
	listener := p.listen(p.node.Negotiator.Listen[0])
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		ended <- s.serve(ctx, rpc.NewServer(nil, auth.Methods(), grpc.WaitForHandlers(true)), []net.Listener{listener}, func() {})
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
	client := wire.NewNegotiatorClient(conn)
	watch, err := client.Watch(p.t.Context(), &wire.WatchLeader{}, grpc.WaitForReady(true))
	for leads := false; !leads; {
		var news *wire.LeaderNews
		if err == nil {
			news, err = watch.Recv()
		}
		if err != nil {
			p.t.Fatal(err)
		}
		leads = news.GetLeads()
	}
	stream, err := client.Negotiate(p.t.Context())
	if err != nil {
		p.t.Fatal(err)
	}
	p.say(stream, &wire.FromSchedd{Of: &wire.FromSchedd_Hello{Hello: &wire.ScheddHello{Name: name}}})
	hello := p.hear(stream).GetHello()
	if hello.GetName() != p.node.Name {
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
	if g.GetNode() != "n1" || g.GetEpoch() != epoch || !wire.CheckCapability(testKey, g, "") {
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
	p.start()
	if _, again := p.join("s"); again <= epoch {
		t.Errorf("epoch %d after %d", again, epoch)
	}
}

// TestTakeOver holds that what was kept before there was a log is taken over once, and that what makes no sense is put aside and does not keep the
// negotiator down.
func TestTakeOver(t *testing.T) {
	for text, want := range map[string]float64{
		`{"version":1,"accounts":[{"owner":"ann","priority":4,"core_seconds":5000,"factor":1000,"at":"2026-01-01T00:00:00Z"}]}`: 5000,
		"junk": 0,
	} {
		p := newPool(t)
		file := filepath.Join(p.node.Dir, "negotiator", oldUsage)
		if err := errors.Join(os.Mkdir(filepath.Dir(file), 0o700), os.WriteFile(file, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			stop := p.start()
			p.join("s")
			p.server.record.look(func(l *ledger.Ledger) {
				if got := l.Book().Used(time.Now(), share.Submitter{Owner: "ann"}); got != want {
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

// TestReplaced holds that a newer conversation of a schedd ends the older one.
func TestReplaced(t *testing.T) {
	p := newPool(t)
	p.start()
	old, _ := p.join("s")
	p.join("s")
	var err error
	for err == nil {
		_, err = old.Recv()
	}
	if !errors.Is(rpc.FromStatus(err), roost.Stale) {
		t.Errorf("the older conversation ends with %v", err)
	}
}

// TestSpeaksAgain holds that a negotiator says again who leads though nothing has changed, sooner than it promises.
func TestSpeaksAgain(t *testing.T) {
	p := newPool(t)
	p.start()
	p.join("s")
	conn, err := rpc.Dial(p.node.Negotiator.Listen[0], nil, auth.Negotiator)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	watch, err := wire.NewNegotiatorClient(conn).Watch(t.Context(), &wire.WatchLeader{}, grpc.WaitForReady(true))
	for range 2 {
		var news *wire.LeaderNews
		if err == nil {
			news, err = watch.Recv()
		}
		if err != nil {
			t.Fatal(err)
		}
		if within := time.Duration(news.GetWithinMs()) * time.Millisecond; !news.GetLeads() || within < 2*beat {
			t.Errorf("it says %v, and speaks every %v", news, beat)
		}
	}
}
