package doctor

import (
	"context"
	"log/slog"
	"net"
	"testing"

	"github.com/roost-batch/roost/collector/dns"
	"github.com/roost-batch/roost/collector/names"
	"github.com/roost-batch/roost/internal/config"
)

// TestDNS asks the DNS server of a pool, one of another pool, a socket that answers
// nothing, and none.
func TestDNS(t *testing.T) {
	zone := names.New(names.Config{Domain: "roost.internal", Cell: "physics"})
	server, err := dns.Listen(dns.Config{Zone: zone, Log: slog.New(slog.DiscardHandler)},
		[]string{"127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- server.Run(ctx) }()
	defer func() { cancel(); <-done }()
	silent, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	for _, c := range []struct {
		addr, cell string
		level      checkLevel
		text       string
	}{
		{server.Addresses()[0], "physics", levelOK, "answers for physics.roost.internal, over UDP and TCP"},
		{server.Addresses()[0], "chemistry", levelError, "does not answer for chemistry.roost.internal over UDP"},
		{silent.LocalAddr().String(), "physics", levelError, "over UDP"},
		{"127.0.0.1:1", "physics", levelError, "over UDP"},
	} {
		n := &config.Node{Collector: &config.CollectorSettings{DNS: &config.DNSSettings{Listen: []string{c.addr},
			Domain: "roost.internal", Cell: c.cell}}}
		found := examineDNS(t.Context(), n)
		if len(found) != 1 {
			t.Fatalf("%s: %+v", c.addr, found)
		}
		expect(t, c.addr+" "+c.cell, found[0], c.level, c.text)
	}
	if found := examineDNS(t.Context(), &config.Node{Collector: &config.CollectorSettings{}}); len(found) != 0 {
		t.Errorf("a collector without DNS: %+v", found)
	}
}

// TestMissingNames checks which attempts count as refused.
func TestMissingNames(t *testing.T) {
	task := func(index, attempt int64) namedTask { return namedTask{"n1", "7.n2", index, attempt} }
	set := func(all ...namedTask) map[namedTask]bool {
		m := map[namedTask]bool{}
		for _, t := range all {
			m[t] = true
		}
		return m
	}
	before := set(task(0, 1), task(1, 1), task(2, 2), task(3, 3), task(4, 1))
	after := set(task(0, 1), task(2, 2), task(3, 3), task(4, 1), task(9, 1))
	shown := map[taskOfService]int64{{"7.n2", 0}: 1, {"7.n2", 2}: 1, {"7.n2", 3}: 4}
	missing := missingNames(before, shown, after)
	if len(missing) != 2 || !missing[task(2, 2)] || !missing[task(4, 1)] {
		t.Errorf("got %v, want an attempt behind an older one, and one without any name", missing)
	}
	found := namesFindings(3, missing)
	expect(t, "refused", found[0], levelError, "refuses the names of 2 tasks of services on n1")
	expect(t, "none refused", namesFindings(3, nil)[0], levelOK, "3 tasks of services found by name")
}
