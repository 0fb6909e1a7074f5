package meter

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/startd/starter/proto"
)

// clockTicks is how many ticks the kernel counts in a second for /proc (USER_HZ,
// proc(5)). It is 100 on everything that Roost runs on.
const clockTicks = 100

// maxTree bounds how many processes are looked at for one task where there is no group
// that counts for us.
const maxTree = 4096

// treeUsage adds up what the descendants of a starter use, from /proc. What has ended and
// was not waited for by one of them is not seen.
func treeUsage(starter int, now *wire.TaskUsage) {
	if starter <= 0 {
		return
	}
	todo := taskProcesses(starter)
	for len(todo) > 0 && now.Processes < maxTree {
		pid := todo[0]
		todo = append(todo[1:], children(pid)...)
		now.Processes++
		user, system := processCPUTime(pid)
		now.UserCpu += user
		now.SystemCpu += system
		now.Memory += anonSharedRSS(pid)
		for line := range strings.Lines(readProcFile(pid, "io")) {
			name, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
			n, _ := strconv.ParseInt(value, 10, 64)
			switch name {
			case "read_bytes":
				now.ReadBytes += n
			case "write_bytes":
				now.WriteBytes += n
			}
		}
	}
}

// session finds the session of a task's first process. That is the first below its
// starter that runs no program of Roost's, and is not the init of its sandbox. 0: there
// is none yet.
func (m *attemptMeter) session() int {
	if m.Starter <= 0 {
		return 0
	}
	own := m.startupPrograms()
	todo := taskProcesses(m.Starter)
	for looked := 0; len(todo) > 0 && looked < maxTree; looked++ {
		if pid := todo[0]; !runsProgram(pid, own) && !isInit(pid) {
			return sessionNumber(pid)
		}
		todo = append(todo[1:], children(todo[0])...)
	}
	return 0
}

// taskProcesses lists the children of a starter that belong to its task. The one that
// creates sandboxes belongs to none. It has that name, runs as root, and is in no PID
// namespace of its own: a user's process that is a child of the starter can have the name
// at most.
func taskProcesses(starter int) []int {
	return slices.DeleteFunc(children(starter), func(pid int) bool {
		name, root, nested := false, false, false
		for line := range strings.Lines(readProcFile(pid, "status")) {
			switch fields := strings.Fields(line); {
			case len(fields) < 2:
			case fields[0] == "Name:":
				name = fields[1] == proto.SandboxServer
			case fields[0] == "Uid:":
				root = fields[1] == "0"
			case fields[0] == "NSpid:":
				nested = len(fields) > 2
			}
		}
		return name && root && !nested
	})
}

// isInit reports whether a process is the first of a PID namespace of its own
// (pid_namespaces(7)).
func isInit(pid int) bool {
	for line := range strings.Lines(readProcFile(pid, "status")) {
		if numbers, ok := strings.CutPrefix(line, "NSpid:"); ok {
			in := strings.Fields(numbers)
			return len(in) > 1 && in[len(in)-1] == "1"
		}
	}
	return false
}

// sessionNumber is the session of a process: field 6 of stat, the fourth after the name
// in parentheses.
func sessionNumber(pid int) int {
	stat := readProcFile(pid, "stat")
	fields := strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:])
	if len(fields) < 4 {
		return 0
	}
	id, _ := strconv.Atoi(fields[3])
	return id
}

func readProcFile(pid int, name string) string {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/%s", pid, name))
	return string(text)
}

// children lists the children of all threads of a process.
func children(pid int) []int {
	threads, _ := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	var all []int
	for _, t := range threads {
		text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%s/children", pid, t.Name()))
		for word := range bytes.FieldsSeq(text) {
			if child, err := strconv.Atoi(string(word)); err == nil {
				all = append(all, child)
			}
		}
	}
	return all
}

// processCPUTime is the CPU time of a process and of children that it has waited for, in
// nanoseconds. It is in fields 14 to 17 of stat, the twelfth after the name in
// parentheses and on.
func processCPUTime(pid int) (user, system int64) {
	stat := readProcFile(pid, "stat")
	fields := strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:])
	if len(fields) < 15 {
		return 0, 0
	}
	at := func(i int) int64 {
		n, _ := strconv.ParseInt(fields[i], 10, 64)
		return n * (1e9 / clockTicks)
	}
	return at(11) + at(13), at(12) + at(14)
}

// anonSharedRSS is the memory of a process that cannot be dropped: anonymous and shared.
// Pages that several processes share count for each.
func anonSharedRSS(pid int) int64 {
	total := int64(0)
	for line := range strings.Lines(readProcFile(pid, "status")) {
		name, value, _ := strings.Cut(line, ":")
		if name == "RssAnon" || name == "RssShmem" {
			n, _ := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 64)
			total += n * int64(roost.KiB)
		}
	}
	return total
}

// TreeStopped reports whether all descendants of a starter are stopped or have ended.
// The first process of a sandbox does nothing but wait for its children.
func TreeStopped(starter int, sandboxed bool) bool {
	if starter <= 0 {
		return true
	}
	todo := children(starter)
	if sandboxed {
		first := todo
		todo = nil
		for _, pid := range first {
			todo = append(todo, children(pid)...)
		}
	}
	for n := 0; len(todo) > 0 && n < maxTree; n++ {
		pid := todo[0]
		todo = append(todo[1:], children(pid)...)
		stat := readProcFile(pid, "stat")
		_, rest, _ := strings.Cut(stat[strings.LastIndexByte(stat, ')')+1:], " ")
		if rest != "" && !strings.ContainsRune("TtZX", rune(rest[0])) {
			return false
		}
	}
	return true
}
