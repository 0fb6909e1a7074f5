package ca

import (
	"fmt"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/roost-batch/roost/internal/rpc"
)

func TestWrongTokensAreCounted(t *testing.T) {
	var w failedJoins
	a, b := netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.2")
	at := func(s int) time.Time { return noon.Add(time.Duration(s) * time.Second) }
	for i := range freeAttempts {
		if got := w.waitTime(a, at(0)); got != 0 {
			t.Errorf("try %d: got %v", i, got)
		}
		w.recordFailure(a, at(0))
	}
	if got := w.waitTime(a, at(0)); got != retryInterval {
		t.Errorf("then: got %v, want %v", got, retryInterval)
	}
	if got := w.waitTime(b, at(0)); got != 0 {
		t.Errorf("another address: got %v", got)
	}
	if got := w.waitTime(a, at(10)); got != 0 {
		t.Errorf("after ten seconds: got %v", got)
	}
	for i := range 3 * maxTrackedAddrs {
		w.recordFailure(netip.MustParseAddr(fmt.Sprintf("10.1.%d.%d", i/256%256, i%256)), at(i/100))
	}
	if len(w.resetAt) > maxTrackedAddrs {
		t.Errorf("%d addresses are remembered", len(w.resetAt))
	}
}

func TestLimitKey(t *testing.T) {
	for given, want := range map[string]string{"10.0.0.1:7": "10.0.0.1", "[::ffff:10.0.0.1]:7": "10.0.0.1",
		"[2001:db8:1:2:3::4]:7": "2001:db8:1:2::", "[fe80::1%eth0]:7": "fe80::"} {
		host, port, err := net.SplitHostPort(given)
		if err != nil {
			t.Fatal(err)
		}
		ip := netip.MustParseAddr(host)
		addr := net.TCPAddrFromAddrPort(netip.AddrPortFrom(ip, 7))
		if got := rpc.LimitKey(addr); got.String() != want || port != "7" {
			t.Errorf("%s: got %v, want %s", given, got, want)
		}
	}
	if got := rpc.LimitKey(&net.UnixAddr{Name: "/x"}); got.IsValid() {
		t.Errorf("a socket: got %v", got)
	}
}
