package guard

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/roost-batch/roost/internal/cgroup"
)

// maxProcesses bounds the task processes that are searched for a terminal.
const maxProcesses = 10000

// isTaskProcess reports whether a process of a task has a controlling terminal of that
// device number. Either a user inspects the task (roost ssh), or the task created it.
func (g *daemonContext) isTaskProcess(terminal uint64) bool {
	var groups []cgroup.TaskDir
	if g.call(context.Background(), func() {
		for _, r := range g.records.records {
			groups = append(groups, r.taskDirs()...)
		}
	}) != nil {
		return false
	}
	looked := 0
	for _, d := range groups {
		for _, pid := range d.Processes() {
			if looked++; looked > maxProcesses {
				return false
			}
			if f := statOf(pid); len(f) > ttyField &&
				f[ttyField] == strconv.FormatInt(int64(int32(terminalNumber(terminal))), 10) {
				return true
			}
		}
	}
	return false
}

// isTask reports whether a process is in the cgroup of a task. All groups of startds are
// below one named roost, or roost-yielding for low-priority tasks, anywhere in the tree.
func isTask(pid int) bool {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pid))
	return err == nil && isTaskCgroup(string(text))
}

func isTaskCgroup(groups string) bool {
	return strings.Contains(groups, "/roost/") || strings.Contains(groups, "/roost-yielding/")
}

// terminalNumber converts a device number to the form of /proc/PID/stat: 32 bits, with
// the minor's upper bits above the major's.
func terminalNumber(dev uint64) uint32 {
	major := uint32(dev >> 8 & 0xfff)
	minor := uint32(dev&0xff | dev>>12&0xfff00)
	return minor&0xff | major<<8 | minor&^0xff<<12
}

// Fields of /proc/PID/stat (proc_pid_stat(5)), counted from the one after the name in
// brackets.
const (
	ttyField     = 7 - 3
	cpuTimeField = 14 - 3 // utime, stime, cutime, cstime, in hundredths of a second
)

func statOf(pid int) []string {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return nil
	}
	_, rest, _ := strings.Cut(string(text[max(strings.LastIndexByte(string(text), ')'), 0):]), " ")
	return strings.Fields(rest)
}

// taskCPUTime returns the CPU time, in nanoseconds, of all tasks of each startd. It
// includes the startds' own work: a startd packs checkpoints, which must not count as the
// owner's work.
func (g *daemonContext) taskCPUTime() map[string]uint64 {
	parents, pids := []string{}, []int{os.Getpid()}
	if g.call(context.Background(), func() {
		for _, r := range g.records.records {
			parents = append(parents, r.parents...)
			if r.connected {
				pids = append(pids, int(r.pid))
			}
		}
	}) != nil {
		return nil
	}
	all := map[string]uint64{}
	for _, p := range parents {
		if n, ok := cgroup.CPUTime(p); ok {
			all[p] = n
		}
	}
	for _, pid := range pids {
		f := statOf(pid)
		if len(f) < cpuTimeField+4 {
			continue
		}
		var sum uint64
		for _, word := range f[cpuTimeField : cpuTimeField+4] {
			n, _ := strconv.ParseUint(word, 10, 64)
			sum += n * uint64(10*time.Millisecond)
		}
		all[strconv.Itoa(pid)] = sum
	}
	return all
}

// restoreRecords loads the startd records of an earlier guard. No startd is connected
// yet.
func (g *daemonContext) restoreRecords() {
	entries, err := loadRecords(g.dir)
	if err != nil {
		g.log.Warn("books", "err", err)
	}
	for _, e := range entries {
		if _, ok := g.node.Startd(e.Name); !ok {
			continue
		}
		r := g.records.record(e.Name)
		r.report, r.frozenGroups, r.hasUnsentFreeze = e.Report, e.Frozen, len(e.Frozen) > 0
		for _, parent := range e.Parents {
			if len(cgroup.TaskDirs(parent)) > 0 {
				r.parents = append(r.parents, parent)
			}
		}
	}
}
