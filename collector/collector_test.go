package collector

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/collector/adstore"
	"github.com/roost-batch/roost/collector/names"
	"github.com/roost-batch/roost/internal/adclient"
	"github.com/roost-batch/roost/internal/identity/peer"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/wire"
)

// startCollector serves a collector on a socket and returns a function that stops it.
func startCollector(t testing.TB, addr string) (stop func()) {
	t.Helper()
	l, err := rpc.Listen(addr, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		s := &grpcService{storeLoop: newStoreLoop(adstore.DefaultLimits(), testNames())}
		ended <- s.serve(ctx, rpc.NewServer(nil, peer.MethodAccess(), grpc.WaitForHandlers(true)), []net.Listener{l},
			func() {})
	}()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the collector ended with %v", err)
		}
	})
	t.Cleanup(stop)
	return stop
}

// watchMachineAds watches machine ads, and returns a channel of changes.
func watchMachineAds(t *testing.T, addrs ...string) <-chan adclient.AdChange {
	changes := make(chan adclient.AdChange, 100)
	w := adclient.AdWatcher{Collectors: addrs, Type: "Machine", Apply: func(list []adclient.AdChange, synced bool) {
		for _, c := range list {
			changes <- c
		}
	}}
	background(t, w.Run)
	return changes
}

func background(t *testing.T, run func(context.Context) error) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { defer close(ended); run(ctx) }()
	stop = sync.OnceFunc(func() { cancel(); <-ended })
	t.Cleanup(stop)
	return stop
}

func nextDelta(t *testing.T, changes <-chan adclient.AdChange) adclient.AdChange {
	t.Helper()
	select {
	case c := <-changes:
		return c
	case <-time.After(time.Minute):
		t.Fatal("nothing changed in 10 seconds")
		return adclient.AdChange{}
	}
}

// TestAdvertise follows an ad from its daemon to a watcher. It includes updates, a
// restart of the collector, and the daemon's end.
func TestAdvertise(t *testing.T) {
	addr := "unix:" + filepath.Join(t.TempDir(), "collector.sock")
	stop := startCollector(t, addr)
	client := adclient.New(adclient.ClientConfig{Collectors: []string{addr}, Type: "Machine", Name: "n1"})
	client.Update("[x=1]", map[string]string{"GrantKey": "00"})
	leave := background(t, client.Run)
	changes := watchMachineAds(t, addr)

	if c := nextDelta(t, changes); c.Name != "n1" || c.Ad != "[x=1]" || c.Sequence != 1 ||
		c.Private["GrantKey"] != "00" {
		t.Fatalf("first: %+v", c)
	}
	if n := client.Update("[x=1]", map[string]string{"GrantKey": "00"}); n != 1 {
		t.Errorf("the same ad again has sequence %d", n)
	}
	began := time.Now()
	if n := client.Update("[x=2]", nil); n != 2 {
		t.Errorf("the second ad has sequence %d", n)
	}
	if c := nextDelta(t, changes); c.Ad != "[x=2]" || c.Sequence != 2 || len(c.Private) > 0 {
		t.Fatalf("second: %+v", c)
	}
	t.Logf("from Update to the watcher: %v", time.Since(began))

	stop()
	client.Update("[x=3]", nil)
	startCollector(t, addr)
	if c := nextDelta(t, changes); c.Ad != "[x=3]" || c.Sequence != 3 {
		t.Fatalf("after the restart: %+v", c)
	}
	leave()
	if c := nextDelta(t, changes); !c.Removed || c.Name != "n1" {
		t.Fatalf("after the daemon's end: %+v", c)
	}
}

// TestTwoCollectors checks that a watcher has an ad as long as one collector has it.
func TestTwoCollectors(t *testing.T) {
	dir := t.TempDir()
	a, b := "unix:"+filepath.Join(dir, "a.sock"), "unix:"+filepath.Join(dir, "b.sock")
	stopA := startCollector(t, a)
	client := adclient.New(adclient.ClientConfig{Collectors: []string{a, b}, Type: "Machine", Name: "n1"})
	client.Update("[x=1]", nil)
	background(t, client.Run)
	changes := watchMachineAds(t, a, b)
	if c := nextDelta(t, changes); c.Ad != "[x=1]" {
		t.Fatalf("first: %+v", c)
	}
	stopA()
	startCollector(t, b)
	client.Update("[x=2]", nil)
	if c := nextDelta(t, changes); c.Ad != "[x=2]" {
		t.Fatalf("from the other: %+v", c)
	}
}

func TestQuery(t *testing.T) {
	addr := "unix:" + filepath.Join(t.TempDir(), "collector.sock")
	startCollector(t, addr)
	for i := range 3 {
		c := adclient.New(adclient.ClientConfig{Collectors: []string{addr}, Type: "Machine",
			Name: fmt.Sprintf("n%d", i)})
		c.Update(fmt.Sprintf("[MyType = \"Machine\"; Cpus = %d]", i), map[string]string{"GrantKey": "00"})
		background(t, c.Run)
	}
	changes := watchMachineAds(t, addr)
	for range 3 {
		nextDelta(t, changes)
	}
	conn, err := rpc.Dial(addr, nil, peer.Collector)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	query := func(q *wire.AdQuery) (texts []string, err error) {
		stream, err := wire.NewCollectorClient(conn).Query(t.Context(), q)
		for err == nil {
			var m *wire.AdText
			if m, err = stream.Recv(); err == nil {
				texts = append(texts, m.GetAd())
			}
		}
		if errors.Is(err, io.EOF) {
			err = nil
		}
		return texts, rpc.FromStatus(err)
	}
	texts, err := query(&wire.AdQuery{Constraint: "Cpus >= 1", Projection: []string{"Cpus"}})
	if want := `[[ MyType = "Machine"; Cpus = 1 ] [ MyType = "Machine"; Cpus = 2 ]]`; err != nil ||
		fmt.Sprint(texts) != want {
		t.Errorf("got %v, %v", texts, err)
	}
	if _, err = query(&wire.AdQuery{Constraint: "Cpus >="}); !errors.Is(err, roost.Invalid) {
		t.Errorf("a constraint that makes no sense: %v", err)
	}
}

func TestMaySpeakFor(t *testing.T) {
	tests := []struct {
		peer peer.Peer
		name string
		want bool
	}{
		{peer.Peer{Local: true}, "anything", true},
		{peer.Peer{Name: "a"}, "a", true},
		{peer.Peer{Name: "a"}, "slot1.a", true},
		{peer.Peer{Name: "a"}, "schedd@a", true},
		{peer.Peer{Name: "a"}, "ba", false},
		{peer.Peer{Name: "a"}, "a.b", false},
		{peer.Peer{Name: "a"}, "", false},
		{peer.Peer{}, ".", false},
	}
	for _, test := range tests {
		if got := mayAdvertiseName(test.peer, test.name); got != test.want {
			t.Errorf("%q for %q: %v", test.peer.Name, test.name, got)
		}
	}
}

func TestMayBe(t *testing.T) {
	startd := peer.Peer{Name: "a", Certified: []peer.Role{peer.Startd}}
	tests := []struct {
		peer peer.Peer
		ad   string
		want bool
	}{
		{startd, "Machine", true},
		{startd, "Negotiator", false},
		{startd, "Scheduler", false},
		{startd, "Other", false},
		{peer.Peer{Name: "a", Certified: []peer.Role{peer.Pilot}}, "Machine", true},
		{peer.Peer{Name: "a", Certified: []peer.Role{peer.Pilot}}, "Scheduler", false},
		{peer.Peer{Name: "a", Certified: []peer.Role{peer.Schedd}}, "Machine", false},
		{peer.Peer{Name: "a", Certified: []peer.Role{peer.Schedd, peer.Startd}}, "Machine", true},
		{peer.Peer{Name: "a", Certified: []peer.Role{peer.Negotiator}}, "Negotiator", true},
	}
	for _, test := range tests {
		if got := mayAdvertiseType(test.peer, test.ad); got != test.want {
			t.Errorf("%v as %q: %v", test.peer.Certified, test.ad, got)
		}
	}
}

// TestPilotAds checks that the ad of a pilot asks for the tasks of its owner, and for no
// others.
func TestPilotAds(t *testing.T) {
	pilot := peer.Peer{Name: "pilot-1", Certified: []peer.Role{peer.Pilot}, Owner: "ada@login1"}
	const requirements = `Requirements = TARGET.Owner == "ada" && Start`
	for name, tt := range map[string]struct {
		peer peer.Peer
		ad   string
		ok   bool
	}{
		"its owner's":       {pilot, `[PilotOwner = "ada@login1"; ` + requirements + `]`, true},
		"only a new lease":  {pilot, "", true},
		"another owner":     {pilot, `[PilotOwner = "eve@login1"; ` + requirements + `]`, false},
		"another schedd":    {pilot, `[PilotOwner = "ada@login2"; ` + requirements + `]`, false},
		"no owner":          {pilot, `[` + requirements + `]`, false},
		"everybody's tasks": {pilot, `[PilotOwner = "ada@login1"; Requirements = true]`, false},
		"another's tasks":   {pilot, `[PilotOwner = "ada@login1"; Requirements = TARGET.Owner == "bob" && Start]`, false},
		"no requirements":   {pilot, `[PilotOwner = "ada@login1"]`, false},
		"no ad":             {pilot, `[`, false},
		"no owner certified": {peer.Peer{Name: "pilot-1", Certified: []peer.Role{peer.Pilot}},
			`[PilotOwner = ""; ` + requirements + `]`, false},
		"a machine of the pool": {peer.Peer{Name: "n1", Certified: []peer.Role{peer.Startd}}, `[Requirements = true]`, true},
	} {
		if err := checkPilotAd(tt.peer, adstore.AdUpdate{Name: "pilot-1", Ad: tt.ad}); (err == nil) != tt.ok {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestPrivate checks that only negotiators see private attributes.
func TestPrivate(t *testing.T) {
	d := adstore.AdChange{Name: "n", Entry: &adstore.StoredAd{Name: "n", Private: map[string]string{"GrantKey": "00"}}}
	if m := deltaMessage(d, false); m.GetPrivate() != nil {
		t.Errorf("a peer without the role sees %v", m.GetPrivate())
	}
	if m := deltaMessage(d, true); m.GetPrivate()["GrantKey"] != "00" {
		t.Errorf("a negotiator sees %v", m.GetPrivate())
	}
}

// testNames configures names for tests.
func testNames() names.Config { return names.Config{Domain: "roost.internal", Cell: "test"} }
