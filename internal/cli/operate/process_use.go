package operate

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// clockTicks is the unit of times in /proc/PID/stat on Linux (proc(5), USER_HZ).
const clockTicks = 100

// processUse is what a process has used since its start.
type processUse struct {
	cpu, cpuWait       time.Duration
	pageFaults         int64 // that needed a disk
	memory, swap       int64 // bytes
	files, fileMaximum int
}

// readProcess reads what a process has used. proc is /proc.
func readProcess(proc string, pid int) (u processUse, err error) {
	dir := filepath.Join(proc, strconv.Itoa(pid))
	stat, err := os.ReadFile(filepath.Join(dir, "stat"))
	if err != nil {
		return u, err
	}
	name := strings.LastIndexByte(string(stat), ')') // it may have spaces and parentheses
	fields := strings.Fields(string(stat[name+1:]))  // from field 3 of proc(5) on
	if len(fields) < 13 {
		return u, fmt.Errorf("%s/stat has %d fields", dir, len(fields))
	}
	u.pageFaults = number(fields[9])
	u.cpu = time.Duration(number(fields[11])+number(fields[12])) * time.Second / clockTicks
	threads, _ := filepath.Glob(filepath.Join(dir, "task", "*", "schedstat"))
	for _, path := range threads {
		text, _ := os.ReadFile(path)
		if f := strings.Fields(string(text)); len(f) > 1 { // run time, wait time in nanoseconds
			u.cpuWait += time.Duration(number(f[1]))
		}
	}
	status, _ := os.ReadFile(filepath.Join(dir, "status"))
	u.memory, u.swap = kibibytes(string(status), "VmRSS:"), kibibytes(string(status), "VmSwap:")
	if open, err := os.ReadDir(filepath.Join(dir, "fd")); err == nil {
		u.files = len(open)
	}
	limits, _ := os.ReadFile(filepath.Join(dir, "limits"))
	for line := range strings.Lines(string(limits)) {
		if after, found := strings.CutPrefix(line, "Max open files"); found {
			if f := strings.Fields(after); len(f) > 0 {
				u.fileMaximum = int(min(number(f[0]), math.MaxInt32)) // the soft limit
			}
		}
	}
	return u, nil
}

// number reads a number; 0 where there is none.
func number(text string) int64 {
	n, _ := strconv.ParseInt(text, 10, 64)
	return n
}

// kibibytes returns the bytes in a line "NAME: 12 kB" of a text.
func kibibytes(text, name string) int64 {
	for line := range strings.Lines(text) {
		if after, found := strings.CutPrefix(line, name); found {
			if f := strings.Fields(after); len(f) > 0 {
				return number(f[0]) << 10
			}
		}
	}
	return 0
}

// add adds what a process used between two readings. A thread that ended in between takes
// its waiting time along.
func (d *daemonUse) add(before, now processUse, seconds float64) {
	if seconds > 0 && before != (processUse{}) {
		d.CPU = (now.cpu - before.cpu).Seconds() / seconds
		d.CPUWait = max(now.cpuWait-before.cpuWait, 0).Seconds() / seconds
		d.PageFaults = now.pageFaults - before.pageFaults
	}
	d.MemoryBytes, d.SwapBytes, d.Files, d.FileLimit = now.memory, now.swap, now.files, now.fileMaximum
}

// readMachine reads what the machine is short of. Kernels without pressure accounting
// have pressures of 0.
func readMachine(proc string) (m machineLoad) {
	for name, to := range map[string]*float64{"cpu": &m.CPUPressure, "io": &m.DiskPressure,
		"memory": &m.MemoryPressure} {
		text, _ := os.ReadFile(filepath.Join(proc, "pressure", name))
		if _, after, found := strings.Cut(string(text), "avg10="); found {
			value, _, _ := strings.Cut(after, " ")
			*to, _ = strconv.ParseFloat(value, 64)
		}
	}
	text, _ := os.ReadFile(filepath.Join(proc, "meminfo"))
	m.MemoryBytes = kibibytes(string(text), "MemTotal:")
	m.AvailableBytes = kibibytes(string(text), "MemAvailable:")
	return m
}
