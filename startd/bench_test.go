package startd

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/roost-batch/roost/internal/wire"
)

// BenchmarkActivate runs /bin/true over 16 claims: acknowledgement and next activation go
// out in one go, as a schedd does it.
func BenchmarkActivate(b *testing.B) {
	p := newTestStartd(b)
	s := p.connect("host1", 1)
	program := s.shell("")
	program.Executable, program.Arguments = "/bin/true", nil
	var all []uint64
	for range 16 {
		reply := s.requestClaim(func(r *wire.ClaimRequest) {
			r.Resources = &wire.Resources{MilliCpu: 250, Memory: 64 << 20}
		})
		if reply.GetClaim() == 0 {
			b.Fatal(reply.GetReason())
		}
		all = append(all, reply.GetClaim())
	}
	claims := make(map[uint64]uint64) // of the task that runs on it
	for _, claim := range all {
		claims[s.activate(claim, program, false).Job] = claim
	}
	used := processorTime(b, p.cmd.Process.Pid)
	b.ResetTimer()
	for n := 0; n < b.N; {
		x := s.nextMessage("an exit").GetExited()
		if x == nil {
			continue
		}
		n++
		job := x.GetAttempt().GetJob()
		s.acknowledge(x.GetAttempt())
		claims[s.activate(claims[job], program, false).Job] = claims[job]
		delete(claims, job)
	}
	b.StopTimer()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "tasks/s")
	used = processorTime(b, p.cmd.Process.Pid) - used
	b.ReportMetric(float64(used.Microseconds())/float64(b.N), "µs-CPU/task")
	b.ReportMetric(residentMemory(b, p.cmd.Process.Pid), "MiB-RSS")
}

// BenchmarkLatency measures from the word to the news that the processes run, one at a
// time.
func BenchmarkLatency(b *testing.B) {
	p := newTestStartd(b)
	s := p.connect("host1", 1)
	claim := s.claim()
	program := s.shell("")
	program.Executable, program.Arguments = "/bin/true", nil
	s.run(claim, program)
	var total time.Duration
	for b.Loop() {
		began := time.Now()
		a := s.activate(claim, program, false)
		s.awaitStarted(a)
		total += time.Since(began)
		s.awaitOnlyExit(a)
		s.acknowledge(a)
	}
	b.ReportMetric(float64(total.Microseconds())/float64(b.N), "µs/start")
}

// residentMemory is the memory of a process, in MiB.
func residentMemory(b *testing.B, pid int) float64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		b.Fatal(err)
	}
	var kib float64
	if _, rest, ok := strings.Cut(string(text), "VmRSS:"); ok {
		fmt.Sscan(rest, &kib)
	}
	return kib / 1024
}

// processorTime is the time that a process has used.
func processorTime(b *testing.B, pid int) time.Duration {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		b.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), ") ")
	fields := strings.Fields(rest)
	var user, system int64
	fmt.Sscan(fields[11]+" "+fields[12], &user, &system)
	return time.Duration(user+system) * (time.Second / 100) // USER_HZ is 100 on every Linux that we run on
}
