package dns

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/roost-batch/roost/collector/names"
)

// lockedZone is a zone for tests.
type lockedZone struct {
	mu   sync.Mutex
	zone *names.Zone
}

func (z *lockedZone) Lookup(name string, t names.RecordType, most int, random func(n int) int) names.Answer {
	z.mu.Lock()
	defer z.mu.Unlock()
	return z.zone.Lookup(name, t, most, random)
}

func (z *lockedZone) Origin() string  { return z.zone.Origin() }
func (z *lockedZone) Version() uint64 { return z.zone.Version() }

// startServer serves a zone with a service of ready tasks and some small services. Each
// task of the first has an address of its own. It returns the server's address.
func startServer(t testing.TB, tasks, rate int) string {
	t.Helper()
	zone := names.New(names.Config{Domain: "roost.internal", Cell: "cell"})
	const each = 1000
	for m := 0; m <= tasks/each; m++ {
		address := netip.AddrFrom4([4]byte{10, 0, 0, byte(m + 1)})
		var list []string
		for i := m * each; i < min(tasks, (m+1)*each); i++ {
			list = append(list, endpointText("web", i, "ready", fmt.Sprintf("10.0.%d.%d", i/250, i%250+1)))
		}
		if m == 0 {
			list = append(list, endpointText("idle", 0, "unready", address.String()),
				endpointText("six", 0, "ready", "2001:db8::1"),
				endpointText("twin", 0, "ready", "10.1.0.1"), endpointText("twin", 1, "ready", "10.1.0.1"))
		}
		ad := names.MachineAd{Name: fmt.Sprint(m), Lease: time.Minute, Local: true, Addresses: []netip.Addr{address},
			Text: "[ Endpoints = { " + strings.Join(list, ", ") + " } ]"}
		if err := zone.SetMachine(time.Unix(1, 0), zone.ReadMachine(time.Unix(1, 0), ad)); err != nil {
			t.Fatal(err)
		}
	}
	s, err := Listen(Config{Zone: &lockedZone{zone: zone}, Rate: rate, Log: slog.New(slog.DiscardHandler)},
		[]string{"127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the server ended with %v", err)
		}
	})
	return s.Addresses()[0]
}

func endpointText(name string, index int, state, address string) string {
	return fmt.Sprintf(`[ Job = "1.%s"; Owner = "ann"; Name = %q; Index = %d; Attempt = 1; Revision = 1; State = %q; `+
		`Address = %q; Ports = [ http = %d ] ]`, name, name, index, state, address, 20000+index%1000)
}

func exchange(t testing.TB, network, address string, query *dns.Msg) *dns.Msg {
	t.Helper()
	reply, _, err := (&dns.Client{Net: network, Timeout: 10 * time.Second, UDPSize: 4096}).Exchange(query, address)
	if err != nil {
		t.Fatalf("%s over %s: %v", query.Question[0].String(), network, err)
	}
	return reply
}

func question(name string, t uint16) *dns.Msg { return new(dns.Msg).SetQuestion(name, t) }

// TestQueries asks over UDP and TCP and checks answer, code and records of each query.
func TestQueries(t *testing.T) {
	address := startServer(t, 3, 0)
	const zone = ".cell.roost.internal."
	tests := []struct {
		name                  string
		t                     uint16
		rcode, answers, extra int
		soa                   bool
	}{
		{"1.web.ann" + zone, dns.TypeA, dns.RcodeSuccess, 1, 0, false},
		{"1.WEB.aNn.CELL.roost.INTERNAL.", dns.TypeA, dns.RcodeSuccess, 1, 0, false},
		{"web.ann" + zone, dns.TypeA, dns.RcodeSuccess, 3, 0, false},
		{"web.ann" + zone, dns.TypeAAAA, dns.RcodeSuccess, 0, 0, true},
		{"twin.ann" + zone, dns.TypeA, dns.RcodeSuccess, 1, 0, false}, // a record set has no record twice
		{"six.ann" + zone, dns.TypeAAAA, dns.RcodeSuccess, 1, 0, false},
		{"web.ann" + zone, dns.TypeANY, dns.RcodeSuccess, 0, 0, true},
		{"_http._tcp.web.ann" + zone, dns.TypeSRV, dns.RcodeSuccess, 3, 3, false},
		{"_info.web.ann" + zone, dns.TypeTXT, dns.RcodeSuccess, 1, 0, false},
		{"idle.ann" + zone, dns.TypeA, dns.RcodeSuccess, 0, 0, true},
		{"any.0.idle.ann" + zone, dns.TypeA, dns.RcodeSuccess, 1, 0, false},
		{"hub.ann" + zone, dns.TypeA, dns.RcodeNameError, 0, 0, true},
		{"9.web.ann" + zone, dns.TypeA, dns.RcodeNameError, 0, 0, true},
		{zone[1:], dns.TypeSOA, dns.RcodeSuccess, 1, 0, false},
		{zone[1:], dns.TypeNS, dns.RcodeSuccess, 1, 0, false},
		{zone[1:], dns.TypeAXFR, dns.RcodeRefused, 0, 0, false},
		{"example.org.", dns.TypeA, dns.RcodeRefused, 0, 0, false},
	}
	for _, network := range []string{"udp", "tcp"} {
		for _, test := range tests {
			r := exchange(t, network, address, question(test.name, test.t))
			if r.Rcode != test.rcode || len(r.Answer) != test.answers || len(r.Extra) != test.extra ||
				(len(r.Ns) == 1) != test.soa {
				t.Errorf("%s %s over %s:\n%v", test.name, dns.TypeToString[test.t], network, r)
			}
			if r.RecursionAvailable || r.Authoritative != (r.Rcode != dns.RcodeRefused) {
				t.Errorf("%s over %s: flags %+v", test.name, network, r.MsgHdr)
			}
			for _, rr := range r.Answer {
				if test.t != dns.TypeSOA && rr.Header().Ttl != recordTTL || rr.Header().Name != test.name {
					t.Errorf("%s over %s: %v", test.name, network, rr)
				}
			}
			if test.soa && r.Ns[0].(*dns.SOA).Minttl != negativeTTL {
				t.Errorf("%s over %s: %v", test.name, network, r.Ns[0])
			}
		}
	}
}

// TestTruncated checks that a long answer over UDP is cut. Its bounds are the client's
// size and 1,232 bytes. Over TCP it has all records up to a bound.
func TestTruncated(t *testing.T) {
	address := startServer(t, 2500, 0)
	const name = "_http._tcp.web.ann.cell.roost.internal."
	for size, most := range map[uint16]int{0: 512, 1000: 1000, 4096: 1232} {
		query := question(name, dns.TypeSRV)
		if size > 0 {
			query.SetEdns0(size, false)
		}
		r := exchange(t, "udp", address, query)
		if r.Compress = true; !r.Truncated || r.Len() > most || len(r.Answer) == 0 {
			t.Errorf("a client of %d bytes got %d bytes with %d records, truncated: %v", size, r.Len(), len(r.Answer),
				r.Truncated)
		}
	}
	r := exchange(t, "tcp", address, question(name, dns.TypeSRV))
	if r.Truncated || len(r.Answer) != maxTCPRecords {
		t.Errorf("over TCP: %d records, truncated: %v", len(r.Answer), r.Truncated)
	}
	if r := exchange(t, "udp", address, question("web.ann.cell.roost.internal.", dns.TypeA)); len(r.Answer) != 16 ||
		r.Truncated {
		t.Errorf("the job's name has %d addresses, truncated: %v", len(r.Answer), r.Truncated)
	}
	badVersion := question(name, dns.TypeSRV)
	badVersion.SetEdns0(1232, false)
	badVersion.IsEdns0().SetVersion(1)
	if r := exchange(t, "udp", address, badVersion); r.Rcode != dns.RcodeBadVers || len(r.Answer) > 0 {
		t.Errorf("EDNS version 1: %v", r)
	}
}

// TestRate checks that a source gets no more answers in a second than the bound.
func TestRate(t *testing.T) {
	c := sourceCounter{most: 3}
	now, answered := time.Unix(100, 0), 0
	from, other := udpAddr("10.0.0.1:5"), udpAddr("10.0.0.2:5")
	for range 10 {
		if !c.isOver(now, from) {
			answered++
		}
	}
	if answered != 3 || c.isOver(now, other) || c.isOver(now.Add(time.Second), from) {
		t.Errorf("%d answers in a second, want 3, and others are not limited", answered)
	}
	for i := range maxSources + 10 {
		c.isOver(now, udpAddr(fmt.Sprintf("11.%d.%d.1:5", i>>8&255, i&255)))
		c.isOver(now, udpAddr(fmt.Sprintf("12.%d.%d.%d:5", i>>16, i>>8&255, i&255)))
	}
	if len(c.counts) > maxSources {
		t.Errorf("%d sources are counted", len(c.counts))
	}
}

type udpAddr string

func (a udpAddr) Network() string { return "udp" }
func (a udpAddr) String() string  { return string(a) }

// TestDig asks with the program of Debian's bind9-dnsutils.
func TestDig(t *testing.T) {
	dig, err := exec.LookPath("dig")
	if err != nil {
		t.Skip("SKIPPED: there is no dig on this host")
	}
	host, port, _ := strings.Cut(startServer(t, 100, 0), ":")
	run := func(args ...string) []string {
		out, err := exec.Command(dig, append([]string{"@" + host, "-p", port, "+short"}, args...)...).Output()
		if err != nil {
			t.Fatalf("dig %v: %v\n%s", args, err, out)
		}
		return strings.Fields(string(out))
	}
	if got := run("7.web.ann.cell.roost.internal", "A"); !slices.Equal(got, []string{"10.0.0.8"}) {
		t.Errorf("an index name: %v", got)
	}
	if got := run("_http._tcp.web.ann.cell.roost.internal", "SRV"); len(got) != 4*100 { // dig repeats over TCP
		t.Errorf("%d words in SRV records, want 400", len(got))
	}
}

// BenchmarkQueries measures queries for the address of one task over UDP. The client is
// in the same process and takes as much time as the server, so that a core answers more
// than the benchmark says.
func BenchmarkQueries(b *testing.B) {
	address := startServer(b, 1000, 0)
	b.ReportAllocs()
	before := processCPUTime(b)
	defer func() { b.ReportMetric(float64(b.N)/(processCPUTime(b)-before).Seconds(), "queries/core-second") }()
	b.RunParallel(func(p *testing.PB) {
		conn, err := dns.Dial("udp", address)
		if err != nil {
			b.Error(err)
			return
		}
		defer conn.Close()
		packed, _ := question("7.web.ann.cell.roost.internal.", dns.TypeA).Pack()
		buffer := make([]byte, 1232)
		for p.Next() {
			if _, err := conn.Write(packed); err != nil {
				b.Error(err)
			}
			if n, err := conn.Read(buffer); err != nil || n < 40 {
				b.Errorf("%d bytes, %v", n, err)
			}
		}
	})
}

// processCPUTime is the CPU time that this process has used.
func processCPUTime(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
