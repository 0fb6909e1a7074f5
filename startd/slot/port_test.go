package slot

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/roost-batch/roost"
)

// portPlay asks a table for claims with ports.
type portPlay struct {
	t     *testing.T
	table *ClaimTable
	now   roost.BootTime
	grant uint64
	busy  map[uint16]bool // ports that something else on the machine has
}

func newPortPlay(t *testing.T, settings PortSettings) *portPlay {
	p := &portPlay{t: t, table: newTestTable(t, QueueOptions{}), now: roost.BootTime(time.Hour),
		busy: map[uint16]bool{}}
	p.table.ports = newPortTable(settings)
	if err := p.table.Connected(p.now, 1, "s1", 1, 1); err != nil {
		t.Fatal(err)
	}
	return p
}

func (p *portPlay) isFree(port roost.ClaimPort) bool { return !p.busy[port.Number] }

func (p *portPlay) ask(job string, wanted ...roost.PortRequest) (*Claim, error) {
	p.t.Helper()
	p.grant++
	c, err := p.table.DecideClaim(p.now, ClaimRequest{
		Session: 1, Schedd: "s1", Grant: roost.GrantID{Epoch: 1, ID: p.grant}, Owner: "ann", Lease: time.Hour,
		TokenValid: true, Resources: roost.Resources{CPU: 10, Memory: roost.MiB},
		Ports: PortNeeds{Wanted: wanted, Job: job, IsFree: p.isFree},
	})
	p.do()
	return c, err
}

// do carries out what the table says.
func (p *portPlay) do() {
	effects, _ := p.table.Todo(p.now)
	for _, e := range effects {
		if e, ok := e.(CreateClaim); ok {
			p.table.ClaimCreated(e.Claim.ID)
		}
	}
	p.table.Todo(p.now)
	p.table.Check()
}

func (p *portPlay) release(c *Claim) {
	p.t.Helper()
	if !p.table.Release(1, "s1", c.ID) {
		p.t.Fatalf("%v is not given back", c)
	}
	p.do()
}

func (p *portPlay) refuses(job, want string, wanted ...roost.PortRequest) {
	p.t.Helper()
	if c, err := p.ask(job, wanted...); err == nil || !strings.Contains(err.Error(), want) {
		p.t.Fatalf("a claim of job %s: %v, %v, want %q", job, c, err, want)
	}
}

// foreign checks which ports the ad has as taken by other programs, and as taken at all.
func (p *portPlay) foreign(want, taken string) {
	p.t.Helper()
	for name, want := range map[string]string{roost.AttrPortsForeign: want, roost.AttrPortsTaken: taken} {
		got := ""
		if list, ok := p.table.Ad().Lookup(name); ok {
			got = list.String()
		}
		if got != want {
			p.t.Errorf("%s is %s, want %s", name, got, want)
		}
	}
}

func TestStaticPort(t *testing.T) {
	p, ssh := newPortPlay(t, PortSettings{}), roost.PortRequest{Name: "ssh", Static: 2222}
	first, err := p.ask("s1/1", ssh)
	if err != nil || len(first.Ports) != 1 || first.Ports[0].Number != 2222 {
		t.Fatalf("%v, %v", first, err)
	}
	if taken, _ := p.table.Ad().Lookup(roost.AttrPortsTaken); taken.String() != "{ 2222 }" {
		t.Errorf("the ad has taken ports %v", taken)
	}
	p.refuses("s1/1", "another task on this machine has it", ssh)
	p.release(first)
	p.refuses("s1/2", "for 45s yet", ssh)
	again, err := p.ask("s1/1", ssh) // the same job may
	if err != nil {
		t.Fatal(err)
	}
	p.release(again)
	ad := p.table.Ad()
	if _, ok := ad.Lookup(roost.AttrPortsTaken); ok {
		t.Error("a port in quarantine counts as taken, for its own job, too")
	}
	if list, _ := ad.Lookup(roost.AttrPortsQuarantined); !strings.Contains(list.String(), `"s1/1"`) {
		t.Errorf("the ad has ports in quarantine %v", list)
	}
	p.now += roost.BootTime(45 * time.Second)
	if _, err := p.ask("s1/2", ssh); err != nil {
		t.Fatal(err)
	}
	p.busy[8080] = true
	p.refuses("s1/3", "something else on this machine has it", roost.PortRequest{Name: "http", Static: 8080})
	if n := PortsOf(p.table).Table().Counts(); n.Busy != 1 || n.Held != 1 {
		t.Errorf("counts: %+v", n)
	}
	p.foreign("{ 8080 }", "{ 2222,8080 }")
	p.busy[8080] = false
	if _, err := p.ask("s1/3", roost.PortRequest{Name: "http", Static: 8080}); err != nil {
		t.Fatal(err)
	}
	p.foreign("", "{ 2222,8080 }")
	p.busy[9090] = true
	p.refuses("s1/4", "ss -tlnp sport = :9090", roost.PortRequest{Name: "http", Static: 9090})
	p.foreign("{ 9090 }", "{ 2222,8080,9090 }")
	version := p.table.Version()
	p.now += roost.BootTime(foreignTime)
	if p.do(); p.table.Version() == version {
		t.Error("nobody advertises that the port may be free again")
	}
	p.foreign("", "{ 2222,8080 }")
	p.refuses("", "for which job", roost.PortRequest{Name: "http"})
	p.refuses("s1/3", "this machine gives the numbers", roost.PortRequest{Name: "http", Static: 20001})
}

func TestDynamicPorts(t *testing.T) {
	p := newPortPlay(t, PortSettings{First: 30000, Last: 30003})
	http, grpc := roost.PortRequest{Name: "http"}, roost.PortRequest{Name: "grpc"}
	p.busy[30000] = true
	first, err := p.ask("s1/1", http, grpc)
	if err != nil || first.Ports[0].Number != 30001 || first.Ports[1].Number != 30002 {
		t.Fatalf("%v, %v", first.Ports, err)
	}
	second, err := p.ask("s1/2", http)
	if err != nil || second.Ports[0].Number != 30003 {
		t.Fatalf("%v, %v", second.Ports, err)
	}
	p.refuses("s1/3", "no number from 30000 to 30003 is free", http)
	p.release(first)
	p.refuses("s1/3", "is free", http)
	if c, err := p.ask("s1/1", http); err != nil || c.Ports[0].Number != 30001 {
		t.Fatalf("%v, %v", c, err)
	}
	p.now += roost.BootTime(time.Minute)
	if c, err := p.ask("s1/3", http); err != nil || c.Ports[0].Number != 30002 {
		t.Fatalf("%v, %v", c, err)
	}
	if list, _ := p.table.Ad().Lookup(roost.AttrPortRange); list.String() != "{ 30000,30003 }" {
		t.Errorf("the ad has the range %v", list)
	}
	if list, ok := p.table.Ad().Lookup(roost.AttrPortsTaken); ok {
		t.Errorf("dynamic ports are in the ad: %v", list)
	}
}

// TestRecheckPorts has something else take the ports of a claim before its next attempt.
func TestRecheckPorts(t *testing.T) {
	p := newPortPlay(t, PortSettings{First: 30000, Last: 30009})
	c, err := p.ask("s1/1", roost.PortRequest{Name: "a"}, roost.PortRequest{Name: "b", Listen: true},
		roost.PortRequest{Name: "c", Static: 90})
	if err != nil {
		t.Fatal(err)
	}
	if changed, err := PortsOf(p.table).Recheck(p.now, c.ID, p.isFree); changed || err != nil {
		t.Fatal(changed, err)
	}
	p.busy[30000], p.busy[30001] = true, true // 30001 is bound for the claim
	if changed, err := PortsOf(p.table).Recheck(p.now, c.ID, p.isFree); !changed || err != nil {
		t.Fatal(changed, err)
	}
	p.table.Check()
	if c.Ports[0].Number != 30002 || c.Ports[1].Number != 30001 || c.Ports[2].Number != 90 {
		t.Fatalf("%+v", c.Ports)
	}
	p.busy[90] = true
	if changed, err := PortsOf(p.table).Recheck(p.now, c.ID, p.isFree); changed || !errors.Is(err, roost.Conflict) {
		t.Fatal(changed, err)
	}
}

// TestAdoptedPorts restarts the startd with a claim that has ports, and one in
// quarantine.
func TestAdoptedPorts(t *testing.T) {
	old := newPortPlay(t, PortSettings{})
	ssh, web := roost.PortRequest{Name: "ssh", Static: 2222}, roost.PortRequest{Name: "web", Static: 80}
	c, err := old.ask("s1/1", ssh)
	if err != nil {
		t.Fatal(err)
	}
	gone, err := old.ask("s1/2", web)
	if err != nil {
		t.Fatal(err)
	}
	old.release(gone)
	p := newPortPlay(t, PortSettings{})
	p.table.ids.next = 10
	PortsOf(p.table).Table().RestoreFreed(p.now, PortsOf(old.table).Table().Freed())
	if err := p.table.Adopt(p.now, Claim{ID: c.ID, Schedd: "s1", Owner: "ann", Resources: c.Resources,
		Placement: c.Placement, State: Idle, Lease: c.Lease, LeasePeriod: time.Hour, Ports: c.Ports,
		PortJob: c.PortJob}); err != nil {
		t.Fatal(err)
	}
	p.table.Check()
	p.refuses("s1/3", "another task on this machine has it", ssh)
	p.refuses("s1/3", "clients may look for that", web)
	adopted, _ := p.table.Claim(c.ID)
	p.release(adopted)
	p.refuses("s1/3", "for 45s yet", ssh)
}

// TestRandomPorts holds the table against plain books: who has a port, and which job had
// it last until when.
func TestRandomPorts(t *testing.T) {
	for seed := range uint64(100) {
		r := rand.New(rand.NewPCG(seed, 0))
		p := newPortPlay(t, PortSettings{First: 30000, Last: 30007})
		type last struct {
			job   string
			until roost.BootTime
		}
		holders, freed, claims := map[uint16]*Claim{}, map[uint16]last{}, []*Claim(nil)
		for range 300 {
			p.now += roost.BootTime(r.Int64N(int64(20 * time.Second)))
			if len(claims) > 0 && r.IntN(2) == 0 {
				i := r.IntN(len(claims))
				c := claims[i]
				claims = slices.Delete(claims, i, i+1)
				p.release(c)
				for _, port := range c.Ports {
					delete(holders, port.Number)
					freed[port.Number] = last{c.PortJob, p.now + roost.BootTime(defaultQuarantine)}
				}
				continue
			}
			job := fmt.Sprint("s1/", r.IntN(3))
			wanted := []roost.PortRequest{{Name: "a"}, {Name: "b", Static: uint16(80 + r.IntN(3))}}[r.IntN(2):]
			p.busy = map[uint16]bool{uint16(30000 + r.IntN(8)): true}
			c, err := p.ask(job, wanted...)
			if err != nil {
				for _, w := range wanted {
					f := freed[w.Static]
					mayHave := f.job == job || p.now >= f.until
					if w.Static != 0 && holders[w.Static] == nil && mayHave && len(wanted) == 1 {
						t.Fatalf("seed %d: port %d was free: %v", seed, w.Static, err)
					}
				}
				continue
			}
			claims = append(claims, c)
			for _, port := range c.Ports {
				if o := holders[port.Number]; o != nil {
					t.Fatalf("seed %d: %v and %v have port %d", seed, o, c, port.Number)
				}
				if f := freed[port.Number]; f.job != job && p.now < f.until {
					t.Fatalf("seed %d: port %d of job %s goes to %s at once", seed, port.Number, f.job, job)
				}
				if p.busy[port.Number] {
					t.Fatalf("seed %d: port %d is another's", seed, port.Number)
				}
				holders[port.Number] = c
			}
		}
	}
}

// TestStaticPortsAreBounded has so many ports taken that the ad is full of them.
func TestStaticPortsAreBounded(t *testing.T) {
	p := newPortPlay(t, PortSettings{})
	for i := range maxStaticPorts {
		p.table.ports.holders[uint16(1024+i)] = 1
	}
	if list, ok := p.table.Ad().Eval(roost.AttrPortsTaken, nil).Elements(nil); !ok || len(list) != maxStaticPorts {
		t.Fatalf("%d ports in the ad", len(list))
	}
	s := portSearch{PortTable: p.table.ports, now: p.now, job: "s1/1"}
	if _, err := s.find([]roost.PortRequest{{Name: "a", Static: 80}}); !errors.Is(err, roost.Exhausted) {
		t.Fatal(err)
	}
}

// TestQuarantineOrder has quarantines begin in another order than they end. Each must end
// in time, and those that ended early must take no room.
func TestQuarantineOrder(t *testing.T) {
	q := newPortQuarantine()
	for i, until := range []roost.BootTime{30, 10, 20} {
		q.addFreed(FreedPort{Number: uint16(i + 1), Job: "s1/1", Until: until})
		q.checkQuarantine()
	}
	for now, left := range map[roost.BootTime][]uint16{10: {1, 3}, 20: {1}, 30: nil} {
		of := portQuarantine{freed: map[uint16]FreedPort{}, byJob: map[string][]uint16{}}
		for _, f := range q.Freed() {
			of.addFreed(f)
		}
		if of.endDue(now); !slices.Equal(of.byJob["s1/1"], left) {
			t.Errorf("at %d: %v are in quarantine, want %v", now, of.byJob["s1/1"], left)
		}
		of.checkQuarantine()
	}
	for range 10 * maxFreedPorts { // the same job has its port again and again
		q.addFreed(FreedPort{Number: 1, Job: "s1/1", Until: 30})
	}
	q.checkQuarantine()
	for i := range 10 * maxFreedPorts {
		q.addFreed(FreedPort{Number: 1, Job: "s1/1", Until: roost.BootTime(30 + i)})
	}
	if len(q.ends) > 3*maxFreedPorts {
		t.Errorf("%d ends are remembered of %d quarantines", len(q.ends), len(q.freed))
	}
}
