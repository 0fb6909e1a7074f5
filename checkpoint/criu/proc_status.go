package criu

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

func procPath(pid int, name string) string { return filepath.Join("/proc", strconv.Itoa(pid), name) }

// hasEnded reports whether a process does not exist, or is dead and not yet reaped.
func hasEnded(pid int) bool {
	state := statusFields(procPath(pid, "status"))["State"]
	return state == "" || state[0] == 'Z' || state[0] == 'X'
}

// processTree lists a process and all its descendants. It may miss processes forked
// meanwhile.
func processTree(pid int) []int {
	all := []int{pid}
	for i := 0; i < len(all); i++ {
		for _, tid := range threadIDs(all[i]) {
			text, _ := os.ReadFile(procPath(all[i], "task/"+strconv.Itoa(tid)+"/children"))
			for word := range strings.FieldsSeq(string(text)) {
				if child, err := strconv.Atoi(word); err == nil {
					all = append(all, child)
				}
			}
		}
	}
	return all
}

// threadIDs lists the threads of a process.
func threadIDs(pid int) []int { return numericEntries(procPath(pid, "task")) }

// numericEntries lists the entries of a directory that are numbers.
func numericEntries(dir string) []int {
	entries, _ := os.ReadDir(dir)
	list := make([]int, 0, len(entries))
	for _, e := range entries {
		if n, err := strconv.Atoi(e.Name()); err == nil {
			list = append(list, n)
		}
	}
	return list
}

// statusFields reads fields of a status file (proc(5)), by their names.
func statusFields(path string) map[string]string {
	text, _ := os.ReadFile(path)
	fields := map[string]string{}
	for line := range strings.Lines(string(text)) {
		if name, value, ok := strings.Cut(line, ":"); ok {
			fields[name] = strings.TrimSpace(value)
		}
	}
	return fields
}

// innerPID returns the number of a process or thread in its own PID namespace.
func innerPID(fields map[string]string) int {
	all := strings.Fields(fields["NSpid"])
	if len(all) == 0 {
		return 0
	}
	n, _ := strconv.Atoi(all[len(all)-1])
	return n
}

// processName returns the name of a process.
func processName(pid int) string {
	text, _ := os.ReadFile(procPath(pid, "comm"))
	return strings.TrimSpace(string(text))
}

// descriptorTargets reads the targets of the descriptors of a process.
func descriptorTargets(pid int) map[int]string {
	all := map[int]string{}
	for _, fd := range numericEntries(procPath(pid, "fd")) {
		if to, err := os.Readlink(procPath(pid, "fd/"+strconv.Itoa(fd))); err == nil {
			all[fd] = to
		}
	}
	return all
}

// exitCode returns the exit status of a dead process that its parent has not reaped yet
// (proc_pid_stat(5), field 52).
func exitCode(pid int) (code syscall.WaitStatus, ok bool) {
	text, _ := os.ReadFile(procPath(pid, "stat"))
	_, rest, _ := strings.Cut(string(text[max(strings.LastIndexByte(string(text), ')'), 0):]), " ")
	fields := strings.Fields(rest) // from the third field on
	if len(fields) < 50 || fields[0] != "Z" {
		return 0, false
	}
	n, err := strconv.ParseUint(fields[49], 10, 32)
	return syscall.WaitStatus(n), err == nil
}
