package operate

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestJudge: each thing that is slow is found, and a node at rest has no findings.
func TestJudge(t *testing.T) {
	rest := func() *measurement {
		return &measurement{Seconds: 3,
			Machine: machineLoad{Cores: 2, CPUPressure: 5, AvailableBytes: 2 << 30, MemoryBytes: 4 << 30},
			Daemons: []daemonUse{{Role: "schedd", Ready: true, CPU: 0.2, CPUWait: 0.01, Files: 40, FileLimit: 1024,
				Answer: &timeSpread{0.001, 0.01}, OwnTimes: []ownTime{{"roost_schedd_commit_seconds", 10, 0.002}}}},
			Disks: []diskLatency{{"/var/lib/roost/schedd", timeSpread{0.001, 0.01}, 9 << 30}}}
	}
	if got := judge(rest()); len(got) > 0 {
		t.Errorf("a node at rest: %+v", got)
	}
	for what, tt := range map[string]struct {
		change func(*measurement)
		level  findingLevel
		text   string
	}{
		"does not serve": {func(m *measurement) { m.Daemons[0].Ready, m.Daemons[0].LastExit = false, "killed" },
			levelFail, "it does not serve; its last process ended: killed"},
		"died":        {func(m *measurement) { m.Daemons[0].Restarts = 2 }, levelWarn, "it died 2 times"},
		"busy":        {func(m *measurement) { m.Daemons[0].CPU = 1.4 }, levelWarn, "it uses 1.4 cores"},
		"waits":       {func(m *measurement) { m.Daemons[0].CPUWait = 0.5 }, levelWarn, "waited for a CPU in 50 %"},
		"files":       {func(m *measurement) { m.Daemons[0].Files = 900 }, levelWarn, "900 of 1024 files"},
		"answers":     {func(m *measurement) { m.Daemons[0].Answer.Median = 0.3 }, levelWarn, "it answers in 300 ms"},
		"commits":     {func(m *measurement) { m.Daemons[0].OwnTimes[0].Mean = 0.1 }, levelWarn, "is 100 ms on av"},
		"own problem": {func(m *measurement) { m.problems = []string{"no collector"} }, levelWarn, "no collector"},
		"swap": {func(m *measurement) { m.Daemons[0].SwapBytes, m.Daemons[0].PageFaults = 1<<30, 3000 }, levelWarn,
			"swapped out"},
		"disk": {func(m *measurement) { m.Disks[0].Fsync.Max = 0.4 }, levelWarn, "400 ms at most"},
		"no answer": {func(m *measurement) { m.failures = []finding{{levelFail, "schedd", "it does not answer", ""}} },
			levelFail, "it does not answer"},
		"room": {func(m *measurement) { m.Disks[0].FreeBytes = 1 << 20 }, levelFail, "1MiB are free"},
		"cpu":  {func(m *measurement) { m.Machine.CPUPressure = 70 }, levelWarn, "waited for a CPU"},
		"io":   {func(m *measurement) { m.Machine.DiskPressure = 70 }, levelWarn, "waited for a disk"},
		"memory": {func(m *measurement) { m.Machine.AvailableBytes = 1 << 20 }, levelWarn,
			"1MiB of 4GiB memory are left"},
	} {
		m := rest()
		tt.change(m)
		got := judge(m)
		if len(got) != 1 || got[0].Level != tt.level || !strings.Contains(got[0].Text, tt.text) {
			t.Errorf("%s: %+v, want one %s with %q", what, got, tt.level, tt.text)
		}
	}
}

// TestReadProcess: what a process has used is read from files of the kernel. What it used
// in between is the difference.
func TestReadProcess(t *testing.T) {
	proc := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		path := filepath.Join(proc, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("7/stat", "7 (a) daemon) S 1 7 7 0 -1 4194560 900 0 12 0 150 50 0 0 20 0 9 0 100 1 1")
	write("7/task/7/schedstat", "2000000000 300000000 10\n")
	write("7/task/8/schedstat", "1000000000 200000000 10\n")
	write("7/status", "Name:\ta\nVmRSS:\t    2048 kB\nVmSwap:\t      4 kB\n")
	write("7/limits", "Limit  Soft Limit Hard Limit Units\nMax open files    1024   524288   files\n")
	write("pressure/io", "some avg10=12.50 avg60=1.00 avg300=0.10 total=5\nfull avg10=1.00 avg60=0 avg300=0 total=1\n")
	write("meminfo", "MemTotal: 4096 kB\nMemFree: 1 kB\nMemAvailable: 1024 kB\n")
	u, err := readProcess(proc, 7)
	want := processUse{cpu: 2 * time.Second, cpuWait: 500 * time.Millisecond, pageFaults: 12, memory: 2 << 20,
		swap: 4 << 10, fileMaximum: 1024}
	if err != nil || u != want {
		t.Errorf("got %+v, %v, want %+v", u, err, want)
	}
	later := u
	later.cpu, later.cpuWait, later.pageFaults = u.cpu+time.Second, u.cpuWait+4*time.Second, 20
	var d daemonUse
	if d.add(u, later, 2); d.CPU != 0.5 || d.CPUWait != 2 || d.PageFaults != 8 || d.MemoryBytes != 2<<20 {
		t.Errorf("in between: %+v", d)
	}
	if m := readMachine(proc); m.DiskPressure != 12.5 || m.CPUPressure != 0 || m.MemoryBytes != 4<<20 ||
		m.AvailableBytes != 1<<20 {
		t.Errorf("machine: %+v", m)
	}
	if _, err := readProcess(proc, 8); err == nil {
		t.Error("a process that does not exist is read")
	}
}

// TestMeasureDisk: pages are stored, and no file is left.
func TestMeasureDisk(t *testing.T) {
	dir := t.TempDir()
	d, err := measureDisk(context.Background(), dir)
	if err != nil {
		t.Skipf("SKIPPED: no files without a name here: %v", err)
	}
	if d.Directory != dir || d.Fsync.Median <= 0 || d.Fsync.Max < d.Fsync.Median || d.FreeBytes <= 0 {
		t.Errorf("%+v", d)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
	if _, err := measureDisk(context.Background(), filepath.Join(dir, "none")); err == nil {
		t.Error("a directory that does not exist is measured")
	}
}

// TestParseOwnTimes: only histograms of loops and commits are read, and only those that
// have observed something.
func TestParseOwnTimes(t *testing.T) {
	got := parseOwnTimes(strings.NewReader(`# HELP roost_schedd_commit_seconds Time
roost_schedd_commit_seconds_bucket{le="0.001"} 3
roost_schedd_commit_seconds_sum 0.5
roost_schedd_commit_seconds_count 10
roost_schedd_submits_total{result="accepted"} 5
roost_collector_update_seconds_sum 0
roost_collector_update_seconds_count 0
`))
	if want := []ownTime{{"roost_schedd_commit_seconds", 10, 0.05}}; !slices.Equal(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}
