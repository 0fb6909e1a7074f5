package starterclient_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// maxResident bounds the resident memory of a starter that waits for a task, in KiB.
// DESIGN says 4 MiB; an idle starter needs less.
const maxResident = 7 << 9

func TestManyTasksInARow(t *testing.T) { runBothWays(t, testManyTasksInARow) }

func testManyTasksInARow(t *testing.T) {
	b := spawn(t, time.Minute)
	_, state := adoptStarter(t, b.dir)
	b, _ = adoptStarter(t, b.dir)
	o := shellCmd(1, "")
	o.Executable, o.Arguments = "/bin/true", []string{"true"}
	counts := func() string {
		fds, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", state.Starter))
		if err != nil {
			t.Fatal(err)
		}
		open := 0
		for _, fd := range fds {
			// those belong to the Go runtime
			if to, err := os.Readlink(fd); err == nil && !strings.HasPrefix(to, "anon_inode:[event") {
				open++
			}
		}
		children, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", state.Starter, state.Starter))
		return fmt.Sprintf("%d descriptors, children %q", open, children)
	}
	var before string
	for n := range 1000 {
		o.Attempt.Number = uint32(n + 1)
		b.begin(o)
		if exit := b.end(); exit.Code != 0 || exit.Signal != 0 || exit.Step != 0 {
			t.Fatalf("task %d: %+v", n, exit)
		}
		if n == 10 {
			before = counts()
		}
		b.DiscardAttempt(o.Attempt)
		os.RemoveAll(ioOf(b.dir, o.Attempt))
	}
	o.Attempt.Number = 2000
	b.begin(o)
	b.end()
	if after := counts(); after != before {
		t.Errorf("after 1000 tasks %s, before %s", after, before)
	}
	entries, err := os.ReadDir(b.dir)
	if err != nil || len(entries) > 7 {
		t.Errorf("%d files in the claim's directory, %v", len(entries), err)
	}
	checkResidentMemory(t, int(state.Starter))
}

func TestResidentMemory(t *testing.T) { runBothWays(t, testResidentMemory) }

func testResidentMemory(t *testing.T) {
	b := spawn(t, time.Minute)
	o := shellCmd(1, "sleep 60")
	for n := range 200 {
		o.Environment = append(o.Environment, fmt.Sprintf("VARIABLE_%d=%s", n, strings.Repeat("x", 100)))
	}
	b.begin(o)
	_, state := adoptStarter(t, b.dir)
	checkResidentMemory(t, int(state.Starter))
}

// checkResidentMemory checks that an idle starter uses no more memory than it may.
func checkResidentMemory(t *testing.T, pid int) {
	t.Helper()
	for late := time.Now().Add(time.Minute); ; <-time.After(50 * time.Millisecond) {
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
		if err != nil {
			t.Fatal(err)
		}
		var now, most int
		for line := range strings.Lines(string(status)) {
			fmt.Sscanf(line, "VmRSS: %d kB", &now)
			fmt.Sscanf(line, "VmHWM: %d kB", &most)
		}
		if now > 0 && now <= maxResident {
			t.Logf("VmRSS %d KiB, VmHWM %d KiB", now, most)
			return
		}
		if now == 0 || time.Now().After(late) {
			t.Fatalf("VmRSS %d KiB, want at most %d", now, maxResident)
		}
	}
}

func BenchmarkTrue(b *testing.B) {
	s := spawn(b, time.Hour)
	o := shellCmd(1, "")
	o.Executable, o.Arguments = "/bin/true", []string{"true"}
	n := uint32(0)
	for b.Loop() {
		n++
		o.Attempt.Number = n
		s.begin(o)
		s.end()
		s.DiscardAttempt(o.Attempt)
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "tasks/s")
}
