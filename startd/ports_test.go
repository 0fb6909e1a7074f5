package startd

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/wire"
)

// withPorts asks for ports for job 7 of the schedd, or another one.
func (s *fakeSchedd) withPorts(job uint64, ports ...*wire.PortRequest) *wire.ClaimReply {
	s.t.Helper()
	return s.requestClaim(func(r *wire.ClaimRequest) {
		r.Ports, r.Job = ports, fmt.Sprintf("%d.%s", job, s.name)
	})
}

// freePort is a port that nobody gets who does not ask for that one. It is below those of
// tasks and of outgoing connections, and was free a moment ago.
func freePort(t *testing.T) uint32 {
	t.Helper()
	for range 1000 {
		port := 10000 + rand.Uint32N(roost.FirstDynamicPort-10000)
		l, err := net.Listen("tcp", fmt.Sprint(":", port))
		if err == nil {
			l.Close()
			return port
		}
	}
	t.Fatal("no port is free")
	return 0
}

func TestPorts(t *testing.T) {
	p := newTestStartd(t)
	s := p.connect("host1", 1)
	static := freePort(t)
	reply := s.withPorts(7, &wire.PortRequest{Name: "http"}, &wire.PortRequest{Name: "web-ui", Static: static})
	ports := reply.GetPlaced().GetPorts()
	if reply.GetClaim() == 0 || len(ports) != 2 || ports[0].GetNumber() < roost.FirstDynamicPort ||
		ports[1].GetNumber() != static || ports[0].GetAddress() != "127.0.0.1" {
		t.Fatalf("%v", reply)
	}
	program := s.shell(`echo $ROOST_PORT_HTTP $ROOST_ADDR_WEB_UI $0 $MINE`)
	program.Arguments = append(program.Arguments, []byte("at:"+roost.PortReference("http")))
	program.Environment = append(program.Environment, []byte("MINE="+roost.PortReference("web-ui")+"/x"))
	want := fmt.Sprintf(`code 0 signal 0 cause CAUSE_EXITED out "%d 127.0.0.1:%d at:%d %d/x\n" err ""`,
		ports[0].GetNumber(), static, ports[0].GetNumber(), static)
	if got := exitText(s.run(reply.GetClaim(), program)); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	for _, bad := range []struct {
		why   string
		ports []*wire.PortRequest
	}{
		{"another task on this machine has it", []*wire.PortRequest{{Name: "a", Static: static}}},
		{"no number 65536", []*wire.PortRequest{{Name: "a", Static: 1 << 16}}},
		{"used twice", []*wire.PortRequest{{Name: "a"}, {Name: "a"}}},
		{"65 ports", make([]*wire.PortRequest, 65)},
		{`has not been given "privileged-ports"`, []*wire.PortRequest{{Name: "a", Static: 80}}},
		{`has not been given "static-ports"`, []*wire.PortRequest{{Name: "a", Host: "*"}}},
		{"is neither", []*wire.PortRequest{{Name: "a", Host: "192.0.2.1"}}},
		{"gives the numbers from", []*wire.PortRequest{{Name: "a", Static: 20000}}},
	} {
		if r := s.withPorts(8, bad.ports...); r.GetClaim() != 0 || !strings.Contains(r.GetReason(), bad.why) {
			t.Errorf("%v, want %q", r, bad.why)
		}
	}
	if r := s.requestClaim(func(r *wire.ClaimRequest) { // the token of the grant does not cover them
		r.Job, r.Ports, r.PortRights = "8.host1", []*wire.PortRequest{{Name: "a", Host: "*"}}, []string{"static-ports"}
	}); r.GetClaim() != 0 || !strings.Contains(r.GetReason(), "the grant was not made") {
		t.Errorf("%v", r)
	}
	if r := s.requestClaim(func(r *wire.ClaimRequest) {
		r.Job, r.Ports = "8.host2", []*wire.PortRequest{{Name: "a"}}
	}); r.GetClaim() != 0 || !strings.Contains(r.GetReason(), "for which job of its schedd") {
		t.Errorf("%v", r)
	}
}

// TestPortsTaken has connections of other programs hold ports: one before the claim, and
// one between two tasks on it.
func TestPortsTaken(t *testing.T) {
	p := newTestStartd(t)
	s := p.connect("host1", 1)
	server, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	connectFrom := func(port uint32) {
		t.Helper()
		d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: int(port)}}
		c, err := d.Dial("tcp", server.Addr().String())
		if err != nil {
			t.Skipf("something else has port %d: %v", port, err)
		}
		t.Cleanup(func() { c.Close() })
	}
	connectFrom(roost.FirstDynamicPort)
	reply := s.withPorts(7, &wire.PortRequest{Name: "http"})
	first := reply.GetPlaced().GetPorts()[0].GetNumber()
	if first == roost.FirstDynamicPort {
		t.Fatalf("a connection has port %d, and a claim, too", first)
	}
	program := s.shell(`echo $ROOST_PORT_HTTP`)
	if got, want := string(s.run(reply.GetClaim(), program).GetStdout()), fmt.Sprintln(first); got != want {
		t.Fatalf("got port %s, want %s", got, want)
	}
	connectFrom(first)
	s.activate(reply.GetClaim(), program, false)
	ready := s.nextMessage("another port").GetReady()
	second := ready.GetPlaced().GetPorts()
	if ready.GetClaim() != reply.GetClaim() || len(second) != 1 || second[0].GetNumber() == first {
		t.Fatalf("%v", ready)
	}
	for {
		if x := s.nextMessage("the end").GetExited(); x != nil {
			if got, want := string(x.GetStdout()), fmt.Sprintln(second[0].GetNumber()); got != want {
				t.Errorf("got port %s, want %s", got, want)
			}
			return
		}
	}
}

// TestPortsSurvive restarts the startd with a claim that has a port, and one that has
// given one back.
func TestPortsSurvive(t *testing.T) {
	p := newTestStartd(t)
	s := p.connect("host1", 1)
	held, freed := freePort(t), freePort(t)
	r := s.withPorts(7, &wire.PortRequest{Name: "a", Static: held, Listen: true})
	if r.GetClaim() == 0 {
		t.Fatalf("%v", r)
	}
	s.run(r.GetClaim(), s.shell("true")) // a claim without a starter does not survive
	other := s.withPorts(8, &wire.PortRequest{Name: "b", Static: freed})
	if other.GetClaim() == 0 {
		t.Skipf("something else has port %d: %v", freed, other)
	}
	s.send(&wire.ToStartd{Of: &wire.ToStartd_Release{Release: &wire.ReleaseClaim{Claim: other.GetClaim()}}})
	if m := s.nextMessage("the loss of a claim"); m.GetLost().GetClaim() != other.GetClaim() {
		t.Fatalf("%v", m)
	}
	file := filepath.Join(p.node.Startds[0].Dir, "claims", strconv.FormatUint(other.GetClaim(), 10), "claim")
	await(t, "the end of the claim", func() bool {
		_, err := os.Stat(file)
		return errors.Is(err, fs.ErrNotExist)
	})
	s.claim() // and all that was to be done before is done
	p.kill()
	p.start()
	s = p.connect("host1", 2)
	if r := s.withPorts(9, &wire.PortRequest{Name: "a", Static: held}); !strings.Contains(r.GetReason(),
		"another task on this machine has it") {
		t.Errorf("%v", r)
	}
	if r := s.withPorts(9, &wire.PortRequest{Name: "b", Static: freed}); !strings.Contains(r.GetReason(),
		"another job had it") {
		t.Errorf("%v", r)
	}
	if r := s.withPorts(8, &wire.PortRequest{Name: "b", Static: freed}); r.GetClaim() == 0 {
		t.Errorf("%v", r)
	}
}
