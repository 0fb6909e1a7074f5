package collector

import (
	"encoding/base64"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/collector/adstore"
	"github.com/roost-batch/roost/collector/names"
	"github.com/roost-batch/roost/internal/config"
	"github.com/roost-batch/roost/internal/identity/peer"
	"github.com/roost-batch/roost/internal/identity/pki"
	"github.com/roost-batch/roost/internal/rpc"
)

const cellQueueName = "lab"

// rightsPool is a pool with an authority, whose machines advertise endpoints.
type rightsPool struct {
	testing.TB
	authority string
	now       time.Time
	sequence  uint64 // of the last ad
}

func newRightsPool(t testing.TB) *rightsPool {
	p := &rightsPool{TB: t, authority: t.TempDir(), now: time.Now()}
	if err := pki.Init(p.authority, "lab"); err != nil {
		t.Fatal(err)
	}
	return p
}

func (p *rightsPool) identity(name string, roles ...peer.Role) *rpc.Identity {
	p.Helper()
	files, err := pki.IssueTo(p.authority, name, roles)
	if err != nil {
		p.Fatal(err)
	}
	id, err := pki.Load(&config.TLSFiles{CA: files.CA, Certificate: files.Certificate, Key: files.Key})
	if err != nil {
		p.Fatal(err)
	}
	id.CellQueue = cellQueueName
	return id
}

// signedEndpoint is an endpoint in the ad of a machine, with the right that it shows.
type signedEndpoint struct {
	roost.NameRight
	signature   []byte
	certificate []byte
}

func (p *rightsPool) sign(by *rpc.Identity, r roost.NameRight) signedEndpoint {
	p.Helper()
	signature, certificates, err := by.Sign(roost.NameRightUse, r.Text())
	if err != nil {
		p.Fatal(err)
	}
	return signedEndpoint{r, signature, certificates[0]}
}

// adOf returns the ad of a machine with endpoints.
func adOf(machine string, endpoints ...signedEndpoint) string {
	var list, signers []string
	for _, e := range endpoints {
		list = append(list, fmt.Sprintf("[ Job = %q; Name = %q; Owner = %q; Index = %d; Attempt = %d; "+
			"State = \"ready\"; Ports = [ http = 20001 ]; Expires = %d; Signature = %q; Signer = %q ]", e.Job, e.Name,
			e.Owner, e.Index, e.Attempt, e.Expires, base64.StdEncoding.EncodeToString(e.signature),
			roost.NameSignerKey(e.certificate)))
		if c := fmt.Sprintf("%q", base64.StdEncoding.EncodeToString(e.certificate)); !slices.Contains(signers, c) {
			signers = append(signers, c)
		}
	}
	return fmt.Sprintf("[ MyType = \"Machine\"; Name = %q; Machine = %q; Endpoints = { %s }; "+
		"EndpointSigners = { %s } ]", machine, machine,
		strings.Join(list, ", "), strings.Join(signers, ", "))
}

// advertise brings the ad of a node to a collector, from an address of the node's.
func (p *rightsPool) advertise(o *storeLoop, node, address, ad string) {
	p.Helper()
	p.sequence++
	if _, err := o.store.Update(time.Now(), adstore.AdUpdate{Type: "Machine", Name: node, Node: node, Ad: ad,
		From: netip.MustParseAddr(address), Lease: time.Minute, Started: 1, Sequence: p.sequence}); err != nil {
		p.Fatal(err)
	}
	o.updateNames(p.now)
}

// shown lists the endpoints that have names, with their machines.
func shown(o *storeLoop) (list []string) {
	for _, e := range o.names.zone.List(names.Selection{}) {
		list = append(list, fmt.Sprintf("%d.%s.%s %s attempt %d on %s %v", e.Index, e.Name, e.Owner, e.Job, e.Attempt,
			e.Node, e.State))
	}
	return list
}

// TestEndpointAttacks has a machine claim the names of others' attempts. Without the
// check of rights each attack succeeds, so that the test shows what the check is for.
func TestEndpointAttacks(t *testing.T) {
	p := newRightsPool(t)
	schedd, other := p.identity("s1", peer.Schedd, peer.Startd), p.identity("s2", peer.Schedd)
	leader := p.identity("cm", peer.Schedd, peer.CellQueue, peer.Collector)
	hostile := p.identity("m2", peer.Startd)
	foreign := newRightsPool(t).identity("s1", peer.Schedd)
	hour := p.now.Add(time.Hour).Unix()
	victim := roost.NameRight{Job: "12.s1", Index: 0, Attempt: 3, Owner: "ann", Name: "web", Machine: "m1",
		Expires: hour}
	cell := roost.NameRight{Job: "7.lab", Index: 1, Attempt: 2, Owner: "bob", Name: "hub", Machine: "m1",
		Expires: hour}
	own := roost.NameRight{Job: "12.s1", Index: 1, Attempt: 1, Owner: "ann", Name: "web", Machine: "m2",
		Expires: hour}
	honest := []string{"0.web.ann 12.s1 attempt 3 on m1 ready", "1.hub.bob 7.lab attempt 2 on m1 ready"}

	newer, newerCell := victim, cell
	newer.Attempt, newer.Machine = 9, "m2"
	newerCell.Attempt, newerCell.Machine = 9, "m2"
	changed := func(change func(*roost.NameRight)) signedEndpoint {
		e := p.sign(schedd, own)
		change(&e.NameRight)
		return e
	}
	later := victim
	later.Attempt = 9
	replayed := p.sign(schedd, later)
	old := own
	old.Expires = p.now.Add(-time.Minute).Unix()
	attacks := map[string]signedEndpoint{
		"without a signature":         {NameRight: newer},
		"another machine's right":     replayed,
		"signed by the machine":       p.sign(hostile, newer),
		"signed by another schedd":    p.sign(other, newer),
		"of another pool's authority": p.sign(foreign, newer),
		"of the cell's queue":         p.sign(schedd, newerCell),
		"another attempt":             changed(func(r *roost.NameRight) { r.Index, r.Attempt = 0, 9 }),
		"another task":                changed(func(r *roost.NameRight) { r.Index = 5 }),
		"another owner":               changed(func(r *roost.NameRight) { r.Owner = "bob" }),
		"another name":                changed(func(r *roost.NameRight) { r.Name = "hub" }),
		"another job":                 changed(func(r *roost.NameRight) { r.Job = "13.s1" }),
		"a later end":                 changed(func(r *roost.NameRight) { r.Expires += 3600 }),
		"after its end":               p.sign(schedd, old),
		"the signature of the victim": {newer, replayed.signature, replayed.certificate},
	}
	for name, attack := range attacks {
		for _, checked := range []bool{true, false} {
			o := newStoreLoop(adstore.DefaultLimits(), testNames())
			if checked {
				o.rights = newRightChecker(leader)
			}
			p.advertise(o, "m1", "10.0.0.1", adOf("m1", p.sign(schedd, victim), p.sign(leader, cell)))
			if got := shown(o); !slices.Equal(got, honest) {
				t.Fatalf("before the attack: %q", got)
			}
			p.advertise(o, "m2", "10.0.0.2", adOf("m2", attack))
			if got := shown(o); slices.Equal(got, honest) != checked {
				t.Errorf("%s, rights checked: %v: %q", name, checked, got)
			} else if refused := o.names.zone.Refused(); checked && refused != 1 {
				t.Errorf("%s: %d endpoints are refused, want 1", name, refused)
			}
		}
	}
	o := newStoreLoop(adstore.DefaultLimits(), testNames())
	o.rights = newRightChecker(leader)
	p.advertise(o, "m2", "10.0.0.2", adOf("m2", p.sign(schedd, own)))
	if got := shown(o); !slices.Equal(got, []string{"1.web.ann 12.s1 attempt 1 on m2 ready"}) {
		t.Errorf("the machine's own attempt: %q", got)
	}
}

// TestRightsExpire checks that an endpoint goes when its right expires, and stays when a
// schedd renews the right.
func TestRightsExpire(t *testing.T) {
	p := newRightsPool(t)
	schedd := p.identity("s1", peer.Schedd)
	o := newStoreLoop(adstore.DefaultLimits(), testNames())
	o.rights = newRightChecker(schedd)
	right := func(index uint32, until time.Duration) signedEndpoint {
		return p.sign(schedd, roost.NameRight{Job: "12.s1", Index: index, Attempt: 1, Owner: "ann", Name: "web",
			Machine: "m1", Expires: p.now.Add(until).Unix()})
	}
	p.advertise(o, "m1", "10.0.0.1", adOf("m1", right(0, 10*time.Second), right(1, time.Minute)))
	if got := shown(o); len(got) != 2 {
		t.Fatalf("at first: %q", got)
	}
	version := o.names.Version()
	p.advertise(o, "m1", "10.0.0.1", adOf("m1", right(0, 20*time.Second), right(1, time.Minute)))
	if got := shown(o); len(got) != 2 || o.names.Version() != version {
		t.Errorf("renewed: %q, version %d after %d", got, o.names.Version(), version)
	}
	p.now = p.now.Add(15 * time.Second)
	o.names.change(func(z *names.Zone) { z.RenewLease(p.now, "m1", names.DefaultLease) })
	if got := shown(o); len(got) != 2 {
		t.Errorf("before the end of the renewed right: %q", got)
	}
	p.now = p.now.Add(5 * time.Second)
	o.names.change(func(z *names.Zone) { z.RenewLease(p.now, "m1", names.DefaultLease); z.Check() })
	if got := shown(o); len(got) != 1 || !strings.HasPrefix(got[0], "1.web") {
		t.Errorf("after the end of a right: %q", got)
	}
}

// TestFailedRightsAreBounded checks that a hostile ad does not cost a verification for
// each of its endpoints.
func TestFailedRightsAreBounded(t *testing.T) {
	p := newRightsPool(t)
	schedd := p.identity("s1", peer.Schedd)
	c := newRightChecker(schedd)
	calls := 0
	var endpoints []signedEndpoint
	for i := range uint32(1000) {
		e := p.sign(schedd, roost.NameRight{Job: "12.s1", Index: i, Attempt: 1, Owner: "ann", Name: "web",
			Machine: "m2", Expires: p.now.Add(time.Hour).Unix()})
		e.signature[0] ^= 1
		endpoints = append(endpoints, e)
	}
	zone := names.New(testNames())
	err := zone.SetMachine(p.now, zone.ReadMachine(p.now, names.MachineAd{Name: "m2", Node: "m2",
		Text: adOf("m2", endpoints...), Addresses: []netip.Addr{netip.MustParseAddr("10.0.0.2")},
		Check: func(r roost.NameRight, signature, certificate []byte) error {
			calls++
			return c.check(r, signature, certificate)
		}}))
	if err == nil || zone.Refused() != 1000 || calls > 100 {
		t.Errorf("%d refused with %d verifications, %v", zone.Refused(), calls, err)
	}
	if len(zone.List(names.Selection{})) > 0 {
		t.Error("an endpoint without a valid signature has a name")
	}
}

// BenchmarkRights measures reading an ad whose 100 endpoints are new: with rights, and
// without.
func BenchmarkRights(b *testing.B) {
	p := newRightsPool(b)
	schedd := p.identity("s1", peer.Schedd)
	checker := newRightChecker(schedd)
	var endpoints []signedEndpoint
	for i := range uint32(100) {
		endpoints = append(endpoints, p.sign(schedd, roost.NameRight{Job: "12.s1", Index: i, Attempt: 1, Owner: "ann",
			Name: "web", Machine: "m1", Expires: p.now.Add(time.Hour).Unix()}))
	}
	ad := names.MachineAd{Name: "m1", Node: "m1", Text: adOf("m", endpoints...),
		Addresses: []netip.Addr{netip.MustParseAddr("10.0.0.1")}}
	for name, check := range map[string]names.CheckRight{"checked": checker.check, "unchecked": nil} {
		b.Run(name, func(b *testing.B) {
			ad.Check = check
			zone := names.New(testNames())
			before := cpuTime(b)
			for range b.N {
				zone.ReadMachine(p.now, ad)
			}
			b.ReportMetric(float64((cpuTime(b)-before).Nanoseconds())/1000/float64(b.N*100), "cpu-µs/endpoint")
		})
	}
}

// cpuTime is the CPU time of this process so far.
func cpuTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
