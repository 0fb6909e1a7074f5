package probe

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/roost-batch/roost/startd/health"
)

// serverVariable has this program serve HTTP instead of running tests. So its CPU time is
// not counted with the prober's.
const serverVariable = "PROBE_TEST_SERVER"

func TestMain(m *testing.M) {
	if os.Getenv(serverVariable) != "" {
		serve()
	}
	os.Exit(m.Run())
}

func serve() {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	fmt.Println(listener.Addr())
	go func() { // until the test ends
		os.Stdin.Read(make([]byte, 1))
		os.Exit(0)
	}()
	panic(http.Serve(listener, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintln(w, "ok")
	})))
}

// startServer serves HTTP in another process.
func startServer(t testing.TB) netip.AddrPort {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), serverVariable+"=1")
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stdin.Close(); cmd.Wait() })
	line := make([]byte, 64)
	n, err := stdout.Read(line)
	if err != nil {
		t.Fatal(err)
	}
	return netip.MustParseAddrPort(strings.TrimSpace(string(line[:n])))
}

// startProber runs a prober until the test ends.
func startProber(t testing.TB, observe Observer) *Prober {
	t.Helper()
	p, err := New(observe)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- p.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != context.Canceled {
			t.Error(err)
		}
	})
	return p
}

// newTarget returns a target with one check, whose reports come on the channel.
func newTarget(c health.Check, ports map[string]netip.AddrPort) (Target, chan health.Report) {
	c.Name = "up"
	if c.Every == 0 {
		c.Every = 20 * time.Millisecond
	}
	if c.Timeout == 0 {
		c.Timeout = 10 * time.Second
	}
	c.Fails, c.Passes = max(c.Fails, 1), max(c.Passes, 1)
	reports := make(chan health.Report, 100)
	return Target{Checks: []health.Check{c}, Ports: ports, Suspended: func() bool { return false },
		Report: func(r health.Report, _ []health.CheckResult) { reports <- r }}, reports
}

// awaitReport waits for a report of that state.
func awaitReport(t *testing.T, reports <-chan health.Report, want health.State) health.Report {
	t.Helper()
	for late := time.After(30 * time.Second); ; {
		select {
		case r := <-reports:
			if r.State == want {
				return r
			}
		case <-late:
			t.Fatalf("no report of %v", want)
		}
	}
}
