package starterclient_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// BenchmarkSandboxedTrue runs /bin/true by turns as a child, as a task, and as a task in
// the full sandbox. The child is a child of this process. The benchmark reports the
// medians of the time to the end of each, and the CPU time of starter and tasks. Machines
// differ from day to day, but the ratio within one run does not.
func BenchmarkSandboxedTrue(b *testing.B) {
	for _, user := range []struct {
		name string
		uid  uint32
	}{{"root", 0}, {"user", nobody}} {
		b.Run(user.name, func(b *testing.B) {
			plain, confined := spawn(b, time.Hour), newSandboxedStarter(b, time.Hour)
			var forked, task, sandboxed []time.Duration
			n, cpu := uint32(0), confined.cpuTime()
			for b.Loop() {
				n++
				began := time.Now()
				if err := exec.Command("/bin/true").Run(); err != nil {
					b.Fatal(err)
				}
				forked = append(forked, time.Since(began))
				task = append(task, plain.timeTrue(n, user.uid))
				sandboxed = append(sandboxed, confined.timeTrue(n, user.uid))
			}
			b.ReportMetric(float64((confined.cpuTime()-cpu).Microseconds())/float64(n), "sandboxed-cpu-µs")
			base := median(forked)
			for name, of := range map[string][]time.Duration{"task": task, "sandboxed": sandboxed} {
				b.ReportMetric(float64(median(of).Microseconds()), name+"-µs")
				b.ReportMetric(float64(median(of))/float64(base), name+"/fork+exec")
			}
			b.ReportMetric(float64(base.Microseconds()), "fork+exec-µs")
		})
	}
}

// timeTrue runs one task and returns how long it took to the event of its end.
func (b *testStarter) timeTrue(number, uid uint32) time.Duration {
	o := shellCmd(number, "")
	o.Executable, o.Arguments, o.UID, o.GID = "/bin/true", []string{"true"}, uid, uid
	o.IO = filepath.Join(b.dir, "io") // as in a startd, for one task after the other
	began := time.Now()
	b.begin(o)
	b.end()
	took := time.Since(began)
	b.DiscardAttempt(o.Attempt)
	return took
}

// cpuTime is what a starter and the tasks that it has waited for have used so far.
func (b *testStarter) cpuTime() (used time.Duration) {
	b.t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", b.PID()))
	if err != nil {
		b.t.Fatal(err)
	}
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')'):]))
	for _, field := range fields[12:16] { // utime, stime, cutime, cstime (proc(5))
		ticks, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			b.t.Fatal(err)
		}
		used += time.Duration(ticks) * 10 * time.Millisecond
	}
	return used
}

func median(list []time.Duration) time.Duration {
	slices.Sort(list)
	return list[len(list)/2]
}
