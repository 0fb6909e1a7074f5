package operate

import (
	"fmt"

	"github.com/roost-batch/roost"
)

// finding is something slow, and what to do about it.
type finding struct {
	Level findingLevel `json:"level"`
	What  string       `json:"what"` // a daemon, a directory or the machine
	Text  string       `json:"text"`
	Cure  string       `json:"cure,omitempty"`
}

type findingLevel string

const (
	levelWarn findingLevel = "warn"
	levelFail findingLevel = "fail"
)

// Limits beyond which something is slow. Times are in seconds, and parts of a time are
// below 1.
const (
	busyLoop      = 0.9  // cores: a daemon has one loop
	longCPUWait   = 0.3  // part of the time in which threads of a daemon waited for a CPU
	highPressure  = 40.0 // percent
	slowFsync     = 0.02
	slowestFsync  = 0.25
	slowAnswer    = 0.1
	slowestAnswer = 1.0
	slowCycle     = 1.0
	slowCommit    = 0.05
	slowUpdate    = 0.05
	manyFaults    = 100 // page faults from a disk in a second
	fullFiles     = 0.8 // part of the limit
	littleDisk    = 1 << 30
	littleMemory  = 0.05 // part of all
)

// judge says what of a measurement is slow.
func judge(m *measurement) (all []finding) {
	all = append(all, m.failures...)
	for i := range m.Daemons {
		all = append(all, judgeDaemon(&m.Daemons[i], m.Seconds)...)
	}
	for _, problem := range m.problems {
		all = append(all, finding{levelWarn, "schedd", problem, ""})
	}
	for _, d := range m.Disks {
		all = append(all, judgeDisk(d)...)
	}
	return append(all, judgeMachine(m.Machine)...)
}

func judgeDaemon(d *daemonUse, seconds float64) (all []finding) {
	warn := func(cure, format string, args ...any) {
		all = append(all, finding{levelWarn, d.title(), fmt.Sprintf(format, args...), cure})
	}
	if !d.Ready {
		text := "it does not serve"
		if d.LastExit != "" {
			text += "; its last process ended: " + d.LastExit
		}
		return []finding{{levelFail, d.title(), text, "look at its log, " + d.log}}
	}
	if d.Restarts > 0 {
		warn("look at its log, "+d.log, "it died %d times since its master was started, the last time: %s", d.Restarts,
			d.LastExit)
	}
	if d.CPU >= busyLoop {
		warn("see what it does with roost log-level, and in roost-sizing(7) what one daemon can do",
			"it uses %.1f cores, and its loop can use one", d.CPU)
	}
	if d.CPUWait >= longCPUWait {
		warn("offer fewer cores in the startd's block of the node file, or run the daemon on another machine",
			"its threads waited for a CPU in %.0f %% of the time", 100*d.CPUWait)
	}
	if d.SwapBytes > 0 && float64(d.PageFaults) >= manyFaults*seconds {
		warn("add memory, or offer less of it in the startd's block of the node file",
			"%s of it is swapped out, and it waited for a disk %d times to go on", roost.Bytes(d.SwapBytes),
			d.PageFaults)
	}
	if d.FileLimit > 0 && float64(d.Files) >= fullFiles*float64(d.FileLimit) {
		warn("raise LimitNOFILE of its unit, or ulimit -n", "it has %d of %d files open", d.Files, d.FileLimit)
	}
	if a := d.Answer; a != nil && (a.Median >= slowAnswer || a.Max >= slowestAnswer) {
		warn("look at the disk and the CPU of the schedd above; see roost-sizing(7) for how many jobs one takes",
			"it answers in %s, and in %s at most, with %d tasks in its queue", millis(a.Median), millis(a.Max),
			d.Queued+d.Running)
	}
	for _, t := range d.OwnTimes {
		if limit := ownTimeLimit(t.Name); t.Mean >= limit {
			warn("see ALERTS in roost-metrics(7)", "%s is %s on average, since it was started; below %s is usual",
				t.Name, millis(t.Mean), millis(limit))
		}
	}
	return all
}

func ownTimeLimit(name string) float64 {
	switch name {
	case "roost_negotiator_cycle_seconds":
		return slowCycle
	case "roost_collector_update_seconds":
		return slowUpdate
	}
	return slowCommit
}

func judgeDisk(d diskLatency) (all []finding) {
	if d.Fsync.Median >= slowFsync || d.Fsync.Max >= slowestFsync {
		all = append(all, finding{levelWarn, d.Directory, fmt.Sprintf("its disk takes %s to store a page, %s at most",
			millis(d.Fsync.Median), millis(d.Fsync.Max)), "put it on a local SSD, or move what else writes there " +
			"elsewhere: each submit and each start of a task waits for that"})
	}
	if d.FreeBytes < littleDisk {
		all = append(all, finding{levelFail, d.Directory, fmt.Sprintf("%s are free on its disk",
			roost.Bytes(d.FreeBytes)), "make room: daemons stop when they cannot write"})
	}
	return all
}

func judgeMachine(m machineLoad) (all []finding) {
	for _, p := range []struct {
		value      float64
		what, cure string
	}{
		{m.CPUPressure, "a CPU", "offer fewer cores in the startd's block of the node file"},
		{m.DiskPressure, "a disk", "roost top shows which tasks write most; disk rates in roost-job(5) limit them"},
		{m.MemoryPressure, "memory", "offer less memory in the startd's block of the node file"},
	} {
		if p.value >= highPressure {
			all = append(all, finding{levelWarn, "machine", fmt.Sprintf("in %.0f %% of the last 10 seconds something "+
				"waited for %s", p.value, p.what), p.cure})
		}
	}
	if m.MemoryBytes > 0 && float64(m.AvailableBytes) < littleMemory*float64(m.MemoryBytes) {
		all = append(all, finding{levelWarn, "machine", fmt.Sprintf("%s of %s memory are left",
			roost.Bytes(m.AvailableBytes), roost.Bytes(m.MemoryBytes)),
			"offer less memory in the startd's block of the node file"})
	}
	return all
}
