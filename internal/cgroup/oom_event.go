package cgroup

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/roost-batch/roost"
)

// OOMEvent describes what the kernel did when the group reached its memory limit.
type OOMEvent struct {
	Kills       int         // processes that it killed since the group was made
	MemoryLimit roost.Bytes // of the task; 0: none
	Process     string      // name of the process that was killed last; empty: unknown
	PID         int         // pid of that process
	ProcessRSS  roost.Bytes // anonymous and shared memory of that process when it was killed
	PeakMemory  roost.Bytes // the most memory of the group, including memory files and caches; 0: unknown
}

// OOM returns how many processes the kernel killed. It also returns the one that was
// killed last, if the kernel log is readable.
func (g *ClaimGroup) OOM() (OOMEvent, error) {
	o := OOMEvent{Kills: g.stableKillCount(), MemoryLimit: g.memoryLimit(), PeakMemory: g.peakMemory()}
	if o.Kills > 0 {
		findOOMRecord(g.path, &o)
	}
	return o, nil
}

// stableKillCount returns the number of kills. The first event of a group may be read as
// zero just after the kill, so it is read again.
func (g *ClaimGroup) stableKillCount() int {
	for range 3 {
		if n := g.killCount(); n > 0 {
			return n
		}
		time.Sleep(time.Millisecond)
	}
	return g.killCount()
}

func (g *ClaimGroup) killCount() int {
	switch {
	case g.unified != "":
		return int(g.readTable(filepath.Join(g.unified, "memory.events"))["oom_kill"])
	case g.host.v1["memory"]:
		return int(g.readTable(filepath.Join(g.version1Dir("memory"), "memory.oom_control"))["oom_kill"])
	}
	return 0
}

// peakMemory returns the highest memory use of the group, of all kinds of memory. Kernels
// before 5.19 do not report it for groups of version 2.
func (g *ClaimGroup) peakMemory() roost.Bytes {
	switch {
	case g.unified != "":
		return roost.Bytes(g.readSingle(filepath.Join(g.unified, "memory.peak")))
	case g.host.v1["memory"]:
		return roost.Bytes(g.readSingle(filepath.Join(g.version1Dir("memory"), "memory.max_usage_in_bytes")))
	}
	return 0
}

// memoryLimit returns the memory limit without the part for the starter.
func (g *ClaimGroup) memoryLimit() roost.Bytes {
	var n roost.Bytes
	switch {
	case g.unified != "":
		n = roost.Bytes(g.readSingle(filepath.Join(g.unified, "memory.max")))
	case g.host.v1["memory"]:
		n = roost.Bytes(g.readSingle(filepath.Join(g.version1Dir("memory"), "memory.limit_in_bytes")))
	}
	if n <= starterMemory || n > roost.PiB { // "max", or version 1's value for no limit
		return 0
	}
	return n - starterMemory
}

// maxRecords bounds how many records of the kernel log are read. The log has some
// thousand lines, and others may write to it meanwhile.
const maxRecords = 100_000

// findOOMRecord searches the kernel log for the last killed process of the group
// (mm/oom_kill.c, dump_oom_victim and __oom_kill_process).
func findOOMRecord(path string, o *OOMEvent) {
	fd, err := unix.Open("/dev/kmsg", unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return
	}
	defer unix.Close(fd)
	buffer := make([]byte, 8192)
	for range maxRecords {
		n, err := unix.Read(fd, buffer)
		if err == unix.EPIPE { // the next record has been overwritten
			continue
		}
		if err != nil || n <= 0 {
			return
		}
		if _, line, ok := strings.Cut(string(buffer[:n]), ";"); ok {
			line, _, _ = strings.Cut(line, "\n")
			parseOOMRecord(line, path, o)
		}
	}
}

// parseOOMRecord parses one line. The names of groups are Roost's own, but a process
// chooses its own name, which may contain anything, so the line is read from both ends.
func parseOOMRecord(line, path string, o *OOMEvent) {
	if rest, ok := strings.CutPrefix(line, "oom-kill:"); ok {
		_, rest, _ = strings.Cut(rest, ",oom_memcg=")
		group, rest, ok := strings.Cut(rest, ",task_memcg=")
		_, task, named := strings.Cut(rest, ",task=")
		if !ok || !named || !strings.HasSuffix(strings.TrimSuffix(strings.TrimSuffix(group, "/"+runLeaf), "/"+taskPart),
			path) {
			return
		}
		at := strings.LastIndex(task, ",pid=")
		if at < 0 {
			return
		}
		pid, _, _ := strings.Cut(task[at+len(",pid="):], ",")
		if n, err := strconv.Atoi(pid); err == nil {
			o.Process, o.PID, o.ProcessRSS = task[:at], n, 0
		}
		return
	}
	_, rest, ok := strings.Cut(line, "Killed process "+strconv.Itoa(o.PID)+" (")
	if !ok || o.PID == 0 {
		return
	}
	at := strings.LastIndex(rest, ") total-vm:")
	if at < 0 {
		return
	}
	o.ProcessRSS = kilobytes(rest[at:], "anon-rss:") + kilobytes(rest[at:], "shmem-rss:")
}

// kilobytes reads an amount such as "anon-rss:123kB".
func kilobytes(text, name string) roost.Bytes {
	_, rest, _ := strings.Cut(text, name)
	digits, _, _ := strings.Cut(rest, "kB")
	n, _ := strconv.ParseInt(digits, 10, 64)
	return roost.Bytes(n) * roost.KiB
}

// CanReadKernelLog reports whether the kernel log can be read, and so the name of a
// killed process.
func CanReadKernelLog() bool {
	f, err := os.Open("/dev/kmsg")
	if err == nil {
		f.Close()
	}
	return err == nil
}
