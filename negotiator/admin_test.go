package negotiator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	grpcpeer "google.golang.org/grpc/peer"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/identity/peer"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/negotiator/fairshare"
	"github.com/roost-batch/roost/negotiator/ledger"
)

// fakeRegistry is a ledger without a log.
type fakeRegistry struct {
	ledger *ledger.Ledger
	now    time.Time
	status poolStatus
}

func newFakeRegistry() *fakeRegistry {
	o := &fakeRegistry{ledger: ledger.New(), now: time.Unix(1_000_000, 0)}
	o.applyEntry(ledger.LogEntry{Lead: "c1"})
	o.status = poolStatus{
		PoolUse: ledger.PoolUse{Total: roost.Resources{CPU: 100_000}, Free: roost.Resources{CPU: 20_000},
			Usage: map[fairshare.Submitter]roost.Resources{{Owner: "ann"}: {CPU: 60_000},
				{Group: "sci", Owner: "bob"}: {CPU: 20_000}},
			HasWaiting: map[fairshare.Submitter]bool{{Owner: "ann"}: true}}, machineExists: func(name string) bool {
			return name == "n1"
		},
	}
	return o
}

func (o *fakeRegistry) applyEntry(e ledger.LogEntry) ledger.EntryResult {
	e.At = o.now.UnixNano()
	if e.Lead == "" {
		e.Epoch, _ = o.ledger.Epoch()
	}
	return o.ledger.Apply(&e)
}

func (o *fakeRegistry) viewLedger(_ context.Context, look func(time.Time, *ledger.Ledger, *poolStatus)) error {
	look(o.now, o.ledger, &o.status)
	return nil
}

func (o *fakeRegistry) commitCommand(_ context.Context, c ledger.AdminCommand) error {
	return o.applyEntry(ledger.LogEntry{Commands: []ledger.AdminCommand{c}}).Commands[0]
}

// callerContext returns the context of a call by a peer.
func callerContext(p peer.Peer) context.Context {
	return grpcpeer.NewContext(context.Background(), &grpcpeer.Peer{AuthInfo: p})
}

func newAdminService(o *fakeRegistry) *adminService {
	a := &adminService{ledgerAdmin: o, nodeName: "c1", leadership: newLeadership()}
	a.leadership.setState(func(p *leadershipState) {
		*p = leadershipState{epoch: 1, isLeader: true, leader: "unix:/c1"}
	})
	return a
}

// TestAdminCaller checks who may change something, by where the command comes from.
func TestAdminCaller(t *testing.T) {
	own := peer.Peer{Local: true, UID: uint32(os.Geteuid())}
	node := func(name string, roles ...peer.Role) peer.Peer { return peer.Peer{Name: name, Certified: roles} }
	tests := []struct {
		what    string
		peer    peer.Peer
		who     string
		trusted bool
		want    error
	}{
		{"the daemons' own user, at the negotiator's socket", own, "", false, nil},
		{"a user, through the schedd of a personal pool", own, "ann@c1", false, roost.PermissionDenied},
		{"root, through the schedd of a personal pool", own, "root@c1", true, nil},
		{"root, through the schedd of this central manager", node("c1", peer.Schedd), "root@c1", true, nil},
		{"root of another node", node("n1", peer.Schedd), "root@n1", true, roost.PermissionDenied},
		{"an administrator of another node", node("n1", peer.Schedd), "carl@n1", false, nil},
		{"a node that lends itself another's name", node("n2", peer.Schedd), "carl@n1", false, roost.PermissionDenied},
		{"a node that says nobody asks", node("n2", peer.Schedd), "", true, roost.PermissionDenied},
		{"root of another central manager", node("c2", peer.Schedd, peer.Negotiator), "root@c2", true, nil},
		{"what another negotiator passes on", node("c2", peer.Negotiator), "ann@n1", false, roost.PermissionDenied},
	}
	for _, test := range tests {
		o := newFakeRegistry()
		o.commitCommand(context.Background(), ledger.AdminCommand{Trusted: true, Verb: ledger.VerbSet,
			Kind: ledger.KindAdmin, Object: []byte(`{"who":"carl@n1","capabilities":["limits"]}`)})
		_, err := newAdminService(o).handleRequest(callerContext(test.peer), &wire.CellRequest{
			Verb: "set", Kind: "limit", Object: []byte(`{"name":"matlab","count":3}`), Who: test.who,
			Trusted: test.trusted,
		})
		if test.want == nil && err != nil || !errors.Is(err, test.want) {
			t.Errorf("%s: got %v, want %v", test.what, err, test.want)
		}
		if set := len(o.ledger.Limits()) == 1; set != (test.want == nil) {
			t.Errorf("%s: it is set: %v", test.what, set)
		}
	}
}

// TestEveryAdminVerb checks that each verb of each kind reaches the ledger. Without a
// capability none does, and everybody may read.
func TestEveryAdminVerb(t *testing.T) {
	user := peer.Peer{Name: "n1", Certified: []peer.Role{peer.Schedd}}
	for _, kind := range ledger.Kinds() {
		a := newAdminService(newFakeRegistry())
		for _, verb := range ledger.Verbs(kind) {
			_, err := a.handleRequest(callerContext(user), &wire.CellRequest{Verb: string(verb), Kind: string(kind),
				Name: "x", Object: []byte("{}"), Who: "ann@n1"})
			if !errors.Is(err, roost.PermissionDenied) ||
				!strings.Contains(fmt.Sprint(err), ledger.CapabilityFor(kind)) {
				t.Errorf("%s %s: %v", verb, kind, err)
			}
		}
		if _, err := a.handleRequest(callerContext(user),
			&wire.CellRequest{Verb: "show", Kind: string(kind), Who: "ann@n1"}); err != nil {
			t.Errorf("show %s: %v", kind, err)
		}
	}
	a := newAdminService(newFakeRegistry())
	for _, kind := range []string{showShares, showSettings, showCapabilities} {
		if _, err := a.handleRequest(callerContext(user),
			&wire.CellRequest{Verb: "show", Kind: kind, Who: "ann@n1"}); err != nil {
			t.Errorf("show %s: %v", kind, err)
		}
	}
	for _, bad := range []*wire.CellRequest{{Verb: "show", Kind: "cheese"}, {Verb: "eat", Kind: "quota"}, {},
		{Verb: "show", Kind: "queue", Name: "none"}} {
		if _, err := a.handleRequest(callerContext(peer.Peer{Local: true}), bad); err == nil {
			t.Errorf("%v was taken", bad)
		}
	}
}

// TestNoLeader checks that a negotiator that knows no leader says so, and that a request
// is forwarded only once.
func TestNoLeader(t *testing.T) {
	for _, p := range []leadershipState{{}, {leader: "unix:/nowhere"}} {
		a := newAdminService(newFakeRegistry())
		a.leadership.setState(func(now *leadershipState) { *now = p })
		_, err := a.handleRequest(callerContext(peer.Peer{Local: true}),
			&wire.CellRequest{Verb: "show", Kind: "quota", Passed: p.leader != ""})
		if !errors.Is(err, roost.Unavailable) {
			t.Errorf("%+v: %v", p, err)
		}
	}
}

func TestUnknownNode(t *testing.T) {
	a := newAdminService(newFakeRegistry())
	for node, want := range map[string]error{"n1": nil, "n7": roost.NotFound} {
		_, err := a.handleRequest(callerContext(peer.Peer{Local: true}),
			&wire.CellRequest{Verb: "set", Kind: "drain", Object: fmt.Appendf(nil, `{"node":%q}`, node)})
		if !errors.Is(err, want) {
			t.Errorf("%s: %v", node, err)
		}
	}
}

// TestShares compares the report with results worked out by hand, for two who use the
// pool and one who did.
func TestShares(t *testing.T) {
	o := newFakeRegistry()
	ann, bob, carl := fairshare.Submitter{Owner: "ann"}, fairshare.Submitter{Group: "sci", Owner: "bob"},
		fairshare.Submitter{Owner: "carl"}
	set := func(kind ledger.ObjectKind, text string) {
		if err := o.commitCommand(context.Background(),
			ledger.AdminCommand{Trusted: true, Verb: ledger.VerbSet, Kind: kind, Object: []byte(text)}); err != nil {
			t.Fatal(err)
		}
	}
	set(ledger.KindGroup, `{"name":"sci","cores":30}`)
	set(ledger.KindSubmitter, `{"user":"carl","ceiling":5}`)
	o.applyEntry(ledger.LogEntry{Holds: []ledger.UsageUpdate{{Submitter: ann, Cores: 60}, {Submitter: bob, Cores: 20},
		{Submitter: carl, Cores: 1}}})
	o.now = o.now.Add(24 * time.Hour) // half of the use
	got := o.status.Shares(o.now, o.ledger)
	text, _ := json.Marshal(got)
	byName := map[string]ledger.SubmitterUsage{}
	for _, s := range got.Submitters {
		byName[s.Name] = s
	}
	close := func(name string, got, want float64) {
		if d := got - want; d > 1e-9*want || d < -1e-9*want {
			t.Errorf("%s: got %v, want %v", name, got, want)
		}
	}
	close("ann's priority", byName["ann"].EffectivePriority, 30_000)
	close("ann's hours", byName["ann"].CoreHours, 60*24)
	close("ann's share", byName["ann"].PoolShare, 0.25) // 1/30 : 1/10
	close("bob's share", byName["sci.bob"].PoolShare, 0.75)
	close("ann could", byName["ann"].CouldGetCores, 20)     // what is free
	close("bob could", byName["sci.bob"].CouldGetCores, 10) // 75 are due to bob, and the group has 30
	close("carl's share", byName["carl"].PoolShare, 1/(500.0/30_000+500.0/10_000+1))
	if got.Submitters[0].Name != "carl" || *byName["carl"].Ceiling != 5 || byName["carl"].CouldGetCores != 5 {
		t.Errorf("%s", text)
	}
}
