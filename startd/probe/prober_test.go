package probe

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/roost-batch/roost/startd/health"
)

func ignoreResult(health.CheckKind, health.Outcome, time.Duration) {}

// listenRaw serves each connection with f.
func listenRaw(t *testing.T, f func(net.Conn)) map[string]netip.AddrPort {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() { defer c.Close(); f(c) }()
		}
	}()
	return map[string]netip.AddrPort{"http": l.Addr().(*net.TCPAddr).AddrPort()}
}

// TestHTTPAnswers checks what is made of the answers of a server.
func TestHTTPAnswers(t *testing.T) {
	p := startProber(t, ignoreResult)
	answer := func(text string) func(net.Conn) {
		return func(c net.Conn) {
			c.Read(make([]byte, 4096))
			for _, part := range strings.SplitAfter(text, "|") {
				c.Write([]byte(strings.TrimSuffix(part, "|")))
				runtime.Gosched()
			}
			io.Copy(io.Discard, c)
		}
	}
	for _, c := range []struct {
		name   string
		server func(net.Conn)
		state  health.State
		detail string
	}{
		{"ok", answer("HTTP/1.1 200 OK\r\n\r\nbody"), health.Ready, ""},
		{"in parts", answer("HTT|P/1.|0 20|0 OK\r|\n\r\n"), health.Ready, ""},
		{"a redirect is an answer", answer("HTTP/1.1 302 Found\r\nLocation: http://192.0.2.1/\r\n\r\n"), health.Ready,
			""},
		{"unavailable", answer("HTTP/1.1 503 Service Unavailable\r\n\r\n"), health.Unready, "503 Service Unavailable"},
		{"control characters", answer("HTTP/1.1 500 a\x1b[31mb\xff\r\n\r\n"), health.Unready, "500 a[31mb"},
		{"long reason", answer("HTTP/1.1 500 " + strings.Repeat("x", 300) + "\r\n\r\n"), health.Unready,
			"500 " + strings.Repeat("x", maxStatusText-4)},
		{"endless line", answer(strings.Repeat("x", 100_000)), health.Unready, "the answer is not HTTP"},
		{"another protocol", answer("SSH-2.0-OpenSSH\r\n"), health.Unready, "the answer is not HTTP"},
		{"short line", answer("HTTP/1.1 2\r\n"), health.Unready, "the answer is not HTTP"},
		{"no answer", func(c net.Conn) { c.Read(make([]byte, 4096)) }, health.Unready,
			"it closed the connection without an answer"},
	} {
		t.Run(strings.ReplaceAll(c.name, " ", "_"), func(t *testing.T) {
			target, reports := newTarget(health.Check{Kind: health.HTTPCheck, Path: "/", Port: "http"},
				listenRaw(t, c.server))
			defer p.Start(target).Stop()
			if r := awaitReport(t, reports, c.state); r.Detail != c.detail {
				t.Errorf("got %q, want %q", r.Detail, c.detail)
			}
		})
	}
}

// TestRequest checks what a server is asked.
func TestRequest(t *testing.T) {
	got := make(chan string, 1000)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got <- fmt.Sprint(r.Method, " ", r.URL, " ", r.Host, " ", r.Header.Get("X-Key"), " ",
			r.Header.Get("User-Agent"), " ", r.Close)
	}))
	defer server.Close()
	address := netip.MustParseAddrPort(server.Listener.Addr().String())
	p := startProber(t, ignoreResult)
	for _, c := range []struct {
		check health.Check
		want  string
	}{
		{health.Check{Path: "/up?x=1"}, "GET /up?x=1 " + address.String() + "  roost-check true"},
		{health.Check{Path: "/", Method: "HEAD", Headers: []string{"Host: hub.example", "X-Key: 1"}},
			"HEAD / hub.example 1 roost-check true"},
	} {
		c.check.Port = "http"
		target, reports := newTarget(c.check, map[string]netip.AddrPort{"http": address})
		w := p.Start(target)
		awaitReport(t, reports, health.Ready)
		w.Stop()
		if r := <-got; r != c.want {
			t.Errorf("got %q, want %q", r, c.want)
		}
		for len(got) > 0 {
			<-got
		}
	}
}

// TestTCPAndClosedPorts checks connections without a request, and ports on which nobody
// listens or that are not the task's.
func TestTCPAndClosedPorts(t *testing.T) {
	p := startProber(t, ignoreResult)
	open := listenRaw(t, func(c net.Conn) {})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed := map[string]netip.AddrPort{"http": l.Addr().(*net.TCPAddr).AddrPort()}
	l.Close()
	for _, c := range []struct {
		kind   health.CheckKind
		ports  map[string]netip.AddrPort
		state  health.State
		detail string
	}{
		{health.TCPCheck, open, health.Ready, ""},
		{health.TCPCheck, closed, health.Unready, "connection refused"},
		{health.HTTPCheck, closed, health.Unready, "connection refused"},
		{health.TCPCheck, nil, health.Unready, `the task has no port "http"`},
	} {
		target, reports := newTarget(health.Check{Kind: c.kind, Path: "/", Port: "http"}, c.ports)
		w := p.Start(target)
		if r := awaitReport(t, reports, c.state); r.Detail != c.detail {
			t.Errorf("%v: got %q, want %q", c.kind, r.Detail, c.detail)
		}
		w.Stop()
	}
}

// TestTimeout checks that a server that does not answer in time fails.
func TestTimeout(t *testing.T) {
	p := startProber(t, ignoreResult)
	// a prober that is late itself, on a busy machine, tries again
	target, reports := newTarget(health.Check{Kind: health.HTTPCheck, Path: "/", Port: "http",
		Timeout: 200 * time.Millisecond}, listenRaw(t, func(c net.Conn) { io.Copy(io.Discard, c) }))
	defer p.Start(target).Stop()
	if r := awaitReport(t, reports, health.Unready); r.Detail != "no answer within 200ms" {
		t.Errorf("got %q", r.Detail)
	}
}

// TestSuspendedTasksAreNotChecked checks that a task that stands still is not asked, and
// keeps its state.
func TestSuspendedTasksAreNotChecked(t *testing.T) {
	unknown, asked := make(chan bool, 1000), atomic.Int32{}
	p := startProber(t, func(_ health.CheckKind, o health.Outcome, _ time.Duration) {
		if o == health.Unknown {
			unknown <- true
		}
	})
	var suspended atomic.Bool
	target, reports := newTarget(health.Check{Kind: health.HTTPCheck, Path: "/", Port: "http"},
		listenRaw(t, func(c net.Conn) {
			asked.Add(1)
			c.Read(make([]byte, 4096))
			c.Write([]byte("HTTP/1.1 200 OK\r\n\r\n"))
			io.Copy(io.Discard, c)
		}))
	target.Suspended = suspended.Load
	defer p.Start(target).Stop()
	awaitReport(t, reports, health.Ready)
	suspended.Store(true)
	<-unknown
	before := asked.Load()
	for range 5 {
		<-unknown
	}
	if after := asked.Load(); after > before+1 { // one may have been under way
		t.Errorf("asked %d times while it stood still", after-before)
	}
	if len(reports) > 0 {
		t.Errorf("a report: %v", <-reports)
	}
}

// TestCommands checks that exec checks of one task run one at a time. The end of a
// command decides. What could not be run changes no state, and the check says why.
func TestCommands(t *testing.T) {
	p := startProber(t, ignoreResult)
	check := health.Check{Kind: health.ExecCheck, Command: []string{"a"}, Every: 5 * time.Millisecond,
		Timeout: 10 * time.Second, Fails: 1, Passes: 1}
	one, other := check, check
	one.Name, other.Name, other.Command = "one", "other", []string{"b"}
	reports := make(chan health.Report, 1000)
	var running, most atomic.Int32
	runs, troubles := make(chan bool), make(chan string, 1000)
	var fault, broken atomic.Bool
	w := p.Start(Target{Checks: []health.Check{one, other}, Suspended: func() bool { return false },
		Report: func(r health.Report, results []health.CheckResult) {
			if text := results[0].Trouble + results[1].Trouble; text != "" && r.State == health.Ready {
				troubles <- text
			} else {
				reports <- r
			}
		},
		Exec: func(ctx context.Context, command []string) (string, error) {
			if n := running.Add(1); n > most.Load() {
				most.Store(n)
			}
			defer running.Add(-1)
			runtime.Gosched()
			select {
			case runs <- true:
			default:
			}
			if broken.Load() {
				return "", errors.New("no descriptors")
			}
			if fault.Load() && command[0] == "b" {
				return "exit code 3", nil
			}
			return "", nil
		}})
	defer w.Stop()
	awaitReport(t, reports, health.Ready)
	fault.Store(true)
	if r := awaitReport(t, reports, health.Unready); r.Check != "other" || r.Detail != "exit code 3" {
		t.Errorf("got %v", r)
	}
	fault.Store(false)
	awaitReport(t, reports, health.Ready)
	broken.Store(true)
	for range 6 {
		<-runs
	}
	if got, want := <-troubles, "the command cannot be run: no descriptors"; got != want {
		t.Errorf("the check says %q, want %q", got, want)
	}
	if len(reports) > 0 || most.Load() != 1 {
		t.Errorf("%d reports, and up to %d commands at a time", len(reports), most.Load())
	}
}

// TestCommandTimeout checks that a command that does not end in time is ended, and fails.
func TestCommandTimeout(t *testing.T) {
	p := startProber(t, ignoreResult)
	target, reports := newTarget(health.Check{Kind: health.ExecCheck, Command: []string{"a"},
		Timeout: 100 * time.Millisecond}, nil)
	target.Exec = func(ctx context.Context, _ []string) (string, error) {
		<-ctx.Done()
		return "", ctx.Err()
	}
	defer p.Start(target).Stop()
	if r := awaitReport(t, reports, health.Unready); r.Detail != "it did not end within 100ms" {
		t.Errorf("got %q", r.Detail)
	}
}

// TestLeavingAndHeldTasksAreNotChecked checks both. The checks of another task show that
// time goes on.
func TestLeavingAndHeldTasksAreNotChecked(t *testing.T) {
	p := startProber(t, ignoreResult)
	var runs atomic.Int32
	target, reports := newTarget(health.Check{Kind: health.ExecCheck}, nil)
	target.Exec = func(context.Context, []string) (string, error) { runs.Add(1); return "", nil }
	ticks := make(chan bool)
	clock, _ := newTarget(health.Check{Kind: health.ExecCheck}, nil)
	clock.Report = func(health.Report, []health.CheckResult) {}
	clock.Exec = func(ctx context.Context, _ []string) (string, error) {
		select {
		case ticks <- true:
		case <-ctx.Done():
		}
		return "", nil
	}
	defer p.Start(clock).Stop()
	w := p.Start(target)
	defer w.Stop()
	awaitReport(t, reports, health.Ready)
	quiet := func(what string) {
		t.Helper()
		<-ticks // what was posted before is carried out by the next
		<-ticks
		before := runs.Load()
		for range 5 {
			<-ticks
		}
		if n := runs.Load(); n > before+1 { // one may have been under way
			t.Errorf("%s: it was checked %d times", what, n-before)
		}
	}
	w.Hold(time.Hour)
	quiet("held")
	w.Hold(0)
	for n := runs.Load(); runs.Load() == n; {
		<-ticks
	}
	w.Leave()
	awaitReport(t, reports, health.Leaving)
	quiet("leaving")
}

// TestManyConnections checks that more checks at a time than there may be connections all
// get their turn.
func TestManyConnections(t *testing.T) {
	const n = 3 * maxConnections / 2
	address := startServer(t)
	p := startProber(t, ignoreResult)
	ready := make(chan bool, n)
	for range n {
		var once atomic.Bool
		defer p.Start(Target{Checks: []health.Check{{Name: "up", Path: "/", Port: "http", Every: 100 * time.Millisecond,
			Timeout: 10 * time.Second, Fails: 3, Passes: 1}}, Ports: map[string]netip.AddrPort{"http": address},
			Suspended: func() bool { return false }, Report: func(r health.Report, _ []health.CheckResult) {
				if r.State == health.Ready && once.CompareAndSwap(false, true) {
					ready <- true
				}
			}}).Stop()
	}
	late := time.After(time.Minute)
	for i := range n {
		select {
		case <-ready:
		case <-late:
			t.Fatalf("%d of %d are ready", i, n)
		}
	}
}
