package probe

import (
	"net/netip"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/roost-batch/roost/startd/health"
)

// bareRequestTime returns the CPU time of one check by system calls alone: a connection,
// a request, the answer. It is what a check costs at least on this machine.
func bareRequestTime(b *testing.B, to netip.AddrPort) time.Duration {
	b.Helper()
	const requests = 2000
	request := requestText(&health.Check{Path: "/", Port: "http"}, map[string]netip.AddrPort{"http": to})
	address, buffer := &unix.SockaddrInet4{Port: int(to.Port()), Addr: to.Addr().As4()}, make([]byte, maxBody)
	before := cpuTime(b)
	for range requests {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err == nil {
			err = unix.Connect(fd, address)
		}
		if err == nil {
			_, err = unix.Write(fd, request)
		}
		if err == nil {
			_, err = unix.Read(fd, buffer)
		}
		if err == nil {
			err = unix.SetsockoptLinger(fd, unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1})
		}
		if err != nil {
			b.Fatal(err)
		}
		unix.Close(fd)
	}
	return (cpuTime(b) - before) / requests
}

// BenchmarkHTTPChecks reports the CPU time of 10,000 HTTP checks every 10 s. The server
// is another process.
func BenchmarkHTTPChecks(b *testing.B) {
	const checks, every = 10_000, 10 * time.Second
	address := startServer(b)
	bare := bareRequestTime(b, address)
	var results, bad atomic.Int64
	p := startProber(b, func(_ health.CheckKind, o health.Outcome, _ time.Duration) {
		results.Add(1)
		if o != health.Passed {
			bad.Add(1)
		}
	})
	for range checks {
		defer p.Start(Target{Checks: []health.Check{{Name: "up", Path: "/", Port: "http", Every: every,
			Timeout: 5 * time.Second, Fails: 3, Passes: 1}}, Ports: map[string]netip.AddrPort{"http": address},
			Suspended: func() bool { return false }, Report: func(health.Report, []health.CheckResult) {}}).Stop()
	}
	<-time.After(time.Second)
	for b.Loop() {
		before, began, done := cpuTime(b), time.Now(), results.Load()
		<-time.After(every / 2)
		used, took, n := cpuTime(b)-before, time.Since(began), results.Load()-done
		b.ReportMetric(float64(used.Microseconds())/float64(n), "cpu-µs/check")
		b.ReportMetric(float64(bare.Microseconds()), "bare-cpu-µs/check")
		b.ReportMetric(100*used.Seconds()/took.Seconds(), "%-of-a-core")
		b.ReportMetric(float64(n)/took.Seconds(), "checks/s")
	}
	if bad.Load() > 0 {
		b.Errorf("%d checks did not pass", bad.Load())
	}
}

func cpuTime(b *testing.B) time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
