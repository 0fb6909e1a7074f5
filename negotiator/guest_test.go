package negotiator

import (
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/adclient"
	"github.com/roost-batch/roost/internal/identity/peer"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/negotiator/blackhole"
	"github.com/roost-batch/roost/negotiator/fairshare"
	"github.com/roost-batch/roost/negotiator/ledger"
)

// ledgerLeader is a leader whose decisions are committed at once.
type ledgerLeader struct {
	*leaderState
	t        *testing.T
	sequence uint64
}

func newLedgerLeader(t *testing.T, now time.Time) *ledgerLeader {
	c := commitLeader(t, now, newInventory(), newLedgerStore(func(uint64) {}))
	c.updateMachines(now, nil, true)
	return &ledgerLeader{leaderState: c, t: t}
}

// connect begins the session of a schedd, which is a guest unless pool is empty.
func (l *ledgerLeader) connect(now time.Time, name, pool string) *sendQueue {
	l.t.Helper()
	mail := newSendQueue()
	mail.guestOf = pool
	if err := l.addStream(now, &wire.ScheddHello{Name: name}, mail); err != nil {
		l.t.Fatal(err)
	}
	return mail
}

// machine takes in the ad of a machine of 8 cores that accepts guests.
func (l *ledgerLeader) machine(now time.Time, claims ...string) {
	l.sequence++
	change := adclient.AdChange{Name: "n1", Sequence: l.sequence, Started: 1, Ad: fmt.Sprintf(
		"[Cpus = %d; TotalCpus = 8; AcceptsGuests = true; Claims = {%s}]", 8-len(claims), strings.Join(claims, ", ")),
		Private: map[string]string{grantKey: hex.EncodeToString(testKey)}}
	l.updateMachines(now, []machineUpdate{parseMachineUpdate(now, change, l.log)}, true)
	l.cycle(now)
}

// cycle makes a plan, and commits it and all usage.
func (l *ledgerLeader) cycle(now time.Time) {
	l.runCycle(now)
	if d, ok := l.takePendingEntry(now.Add(usageCommitInterval)); ok {
		commitEntry(l.t, l.leaderState, now, d)
	}
}

func (l *ledgerLeader) receive(now time.Time, name string, mail *sendQueue, m *wire.FromSchedd) {
	l.t.Helper()
	if err := l.handleMessage(now, name, mail, m); err != nil {
		l.t.Fatal(err)
	}
	l.cycle(now)
}

// share is what roost shares says of a submitter.
func (l *ledgerLeader) share(now time.Time, who fairshare.Submitter) (u ledger.SubmitterUsage) {
	use := ledger.PoolUse{Total: l.total}
	l.ledgerStore.view(func(of *ledger.Ledger) {
		for _, s := range use.Shares(now, of).Submitters {
			if s.User == who.Owner && s.Group == who.Group {
				u = s
			}
		}
	})
	return u
}

// usageOf is what a schedd says that the claims of a submitter hold, in cores.
func usageOf(who fairshare.Submitter, here, elsewhere int) *wire.FromSchedd {
	cores := func(n int) *wire.Resources {
		return wire.FromResources(roost.Resources{CPU: roost.MilliCPU(1000 * n)})
	}
	return &wire.FromSchedd{Of: &wire.FromSchedd_Usage{Usage: &wire.Usage{Owner: who.Owner, Group: who.Group,
		Held: cores(here), Elsewhere: cores(elsewhere)}}}
}

// TestUsageInTwoPools checks that both ledgers say the same of a task in another pool.
// They agree to the second, and neither counts it twice.
func TestUsageInTwoPools(t *testing.T) {
	begin := time.Unix(1_800_000_000, 0)
	home, host := newLedgerLeader(t, begin), newLedgerLeader(t, begin)
	ann, guest := fairshare.Submitter{Owner: "ann"}, fairshare.Submitter{Group: "peer:chem", Owner: "ann@chem"}
	const claim = `[Id = 1; Owner = "ann@chem"; Group = "peer:chem"; Band = "free"; Cpus = 1; Since = 900]`
	home.machine(begin)
	host.machine(begin)
	schedd := home.connect(begin, "sub1", "")

	// Two cores at home and one elsewhere for an hour, then two more elsewhere.
	home.receive(begin, "sub1", schedd, usageOf(ann, 2, 1))
	host.machine(begin, claim)
	now := begin.Add(time.Hour)
	home.receive(now, "sub1", schedd, usageOf(ann, 2, 3))
	host.machine(now, claim, strings.Replace(claim, "Id = 1", "Id = 2", 1),
		strings.Replace(claim, "Id = 1", "Id = 3", 1))
	now = now.Add(30 * time.Minute)
	home.receive(now, "sub1", schedd, usageOf(ann, 0, 0))
	host.machine(now)
	now = now.Add(time.Hour)
	if u := home.share(now, ann); u.CoreHours != 3 || u.CoreHoursElsewhere != 2.5 || u.CoresElsewhere != 0 {
		t.Errorf("at home: %v core-hours, %v elsewhere, and %v cores now; want 3, 2.5 and 0", u.CoreHours,
			u.CoreHoursElsewhere, u.CoresElsewhere)
	}
	if u := host.share(now, guest); u.CoreHours != 2.5 || u.CoreHoursElsewhere != 0 {
		t.Errorf("at the host: %v core-hours, %v elsewhere; want 2.5 and 0", u.CoreHours, u.CoreHoursElsewhere)
	}
	if u := host.share(now, ann); u.CoreHours != 0 {
		t.Errorf("the host's own user of that name has %v core-hours", u.CoreHours)
	}
}

// TestUsageElsewhereAtTakeover checks that a new leader goes on charging what runs in
// other pools. It does so until its schedds have reported, and no longer than a minute.
func TestUsageElsewhereAtTakeover(t *testing.T) {
	begin, ann := time.Unix(1_800_000_000, 0), fairshare.Submitter{Owner: "ann"}
	home := newLedgerLeader(t, begin)
	home.machine(begin)
	home.receive(begin, "sub1", home.connect(begin, "sub1", ""), usageOf(ann, 0, 4))

	now := begin.Add(time.Hour)
	next := &ledgerLeader{leaderState: commitLeader(t, now, home.machineInventory, home.ledgerStore), t: t}
	next.cycle(now)
	now = now.Add(loadedUsageTTL / 2)
	schedd := next.connect(now, "sub1", "")
	next.receive(now, "sub1", schedd, usageOf(ann, 0, 4))
	if u := next.share(now, ann); u.CoresElsewhere != 4 || u.CoreHoursElsewhere != 4*(now.Sub(begin).Hours()) {
		t.Errorf("after the takeover: %v cores and %v core-hours", u.CoresElsewhere, u.CoreHoursElsewhere)
	}

	gone := &ledgerLeader{leaderState: commitLeader(t, now, home.machineInventory, home.ledgerStore), t: t}
	gone.cycle(now)
	now = now.Add(loadedUsageTTL)
	gone.chargeAll(now)
	gone.cycle(now)
	if u := gone.share(now, ann); u.CoresElsewhere != 0 {
		t.Errorf("of a schedd that is away for a minute: %v cores", u.CoresElsewhere)
	}
}

// TestLyingGuest checks that what a guest says has no effect on others: its users, its
// usage, its rank.
func TestLyingGuest(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	host := newLedgerLeader(t, now)
	host.machine(now)
	guest := host.connect(now, "sub1.chem", "chem")

	victims := []fairshare.Submitter{{Owner: "ann"}, {Group: "physics", Owner: "ann"},
		{Group: "peer:chem", Owner: "bob@chem"}, {Group: "peer:bio", Owner: "eve@bio"}}
	for _, who := range victims {
		host.receive(now, "sub1.chem", guest, usageOf(who, 1000, 1000))
		host.receive(now, "sub1.chem", guest, usageOf(who, -5, -5))
	}
	host.receive(now, "sub1.chem", guest, &wire.FromSchedd{Of: &wire.FromSchedd_Demand{Demand: &wire.Demand{}}})
	host.receive(now, "sub1.chem", guest, &wire.FromSchedd{Of: &wire.FromSchedd_Outcome{Outcome: &wire.Outcome{}}})
	now = now.Add(time.Hour)
	for _, who := range victims {
		if u := host.share(now, who); u.CoreHours != 0 || u.CoreHoursElsewhere != 0 {
			t.Errorf("%v is charged %v core-hours and %v elsewhere for what a guest says", who, u.CoreHours,
				u.CoreHoursElsewhere)
		}
	}

	// Whatever it calls its users, they are users of its pool in the lowest band.
	ask := func(id uint64, owner, group, ad string) *scheddRequest {
		t.Helper()
		err := host.handleMessage(now, "sub1.chem", guest, &wire.FromSchedd{Of: &wire.FromSchedd_Request{
			Request: &wire.RequestUpdate{Id: id, Owner: owner, Group: group, Band: "production", Wanted: 1, Now: true,
				Reservation: "theirs", Queue: "short", UnixGroup: "wheel", Ad: ad,
				Proposals: []*wire.Proposal{{}}, Resources: wire.FromResources(roost.Resources{CPU: 1000})}}})
		if err != nil {
			t.Fatal(err)
		}
		return host.schedds["sub1.chem"].requests[id]
	}
	for i, group := range []string{"", "physics", "peer:bio", "peer:chem.sub"} {
		r := ask(uint64(i+1), "ann", group, `[Requirements = true; Owner = "root"; GuestOf = "bio"]`)
		if r.problem != "" || r.Submitter != (fairshare.Submitter{Group: "peer:chem", Owner: "ann@chem"}) ||
			r.Band != roost.FreeBand || r.Now || r.Queue != "" || r.UnixGroup != "" || len(r.selfPlacements) > 0 {
			t.Errorf("in group %q: %v in band %v, now %v, queue %q, problem %q", group, r.Submitter, r.Band, r.Now,
				r.Queue, r.problem)
		}
		if text := r.Class.Ad.String(); !strings.Contains(text, peer.AttrAcceptsGuests) ||
			!strings.Contains(text, peer.AttrGuestOf+` = "chem"`) {
			t.Errorf("it would match machines that accept no guests: %s", text)
		}
	}
	for i, owner := range []string{"", "ann@physics", "@", "ann x", "a/b", "a\x00", strings.Repeat("a", maxGuestUser)} {
		if r := ask(uint64(100+i), owner, "", "[]"); r.problem == "" {
			t.Errorf("a user %.20q of a guest: %v", owner, r.Submitter)
		}
	}
	if r := ask(200, "ann", "", `[ConcurrencyLimits = "matlab:2"]`); !strings.Contains(r.problem, "licences") {
		t.Errorf("licences of the host for a guest: problem %q", r.problem)
	}
}

// TestNoFakeGuest checks that schedds of the pool cannot use the groups of guests.
func TestNoFakeGuest(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	host := newLedgerLeader(t, now)
	host.machine(now)
	own := host.connect(now, "sub1", "")
	if err := host.handleMessage(now, "sub1", own, &wire.FromSchedd{Of: &wire.FromSchedd_Request{
		Request: &wire.RequestUpdate{Id: 1, Owner: "ann@chem", Group: "peer:chem", Band: "free", Wanted: 1,
			Resources: wire.FromResources(roost.Resources{CPU: 1000})}}}); err != nil {
		t.Fatal(err)
	}
	if r := host.schedds["sub1"].requests[1]; r.problem == "" {
		t.Errorf("a request of %v", r.Submitter)
	}
	host.receive(now, "sub1", own, usageOf(fairshare.Submitter{Group: "peer:chem", Owner: "ann@chem"}, 100, 100))
	now = now.Add(time.Hour)
	if u := host.share(now, fairshare.Submitter{Group: "peer:chem", Owner: "ann@chem"}); u.CoreHours != 0 {
		t.Errorf("a guest is charged %v core-hours for what another schedd says", u.CoreHours)
	}
}

// TestTooManyGuestRequests checks that a guest that has more requests than a schedd may
// loses its session, and others do not.
func TestTooManyGuestRequests(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	host := newLedgerLeader(t, now)
	guest := host.connect(now, "sub1.chem", "chem")
	var err error
	n := uint64(0)
	for err == nil && n <= maxRequests {
		n++
		err = host.handleMessage(now, "sub1.chem", guest, &wire.FromSchedd{Of: &wire.FromSchedd_Request{
			Request: &wire.RequestUpdate{Id: n, Owner: "ann", Wanted: 1,
				Resources: wire.FromResources(roost.Resources{CPU: 1000})}}})
	}
	if !errors.Is(err, roost.Exhausted) || n != maxRequests+1 {
		t.Errorf("request %d: %v", n, err)
	}
}

// TestPilotOwner checks whose outcomes count against a pilot alone.
func TestPilotOwner(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	l := newLedgerLeader(t, now)
	for name, owner := range map[string]string{"p1": `"ann@s1"`, "p2": `"ann"`, "p3": "7", "p4": `"@"`, "m1": "undefined"} {
		change := adclient.AdChange{Name: name, Sequence: 1, Started: 1, Ad: "[Cpus = 1; TotalCpus = 1; PilotOwner = " +
			owner + "]", Private: map[string]string{grantKey: hex.EncodeToString(testKey)}}
		l.updateMachines(now, []machineUpdate{parseMachineUpdate(now, change, l.log)}, true)
	}
	for machine, want := range map[string][3]bool{"p1": {true, false, false}, "p2": {true, true, false}, "p3": {},
		"p4": {}, "m1": {}, "gone": {}} {
		for i, who := range []blackhole.NodeSubmitter{{Node: "s1", Owner: "ann"}, {Node: "s2", Owner: "ann"},
			{Node: "s1", Owner: "bob"}} {
			if got := l.blackHoleDrains().isPilotOf(machine, who); got != want[i] {
				t.Errorf("%s is a pilot of %v: %v", machine, who, got)
			}
		}
	}
}
