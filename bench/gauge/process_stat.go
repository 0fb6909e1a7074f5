package gauge

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// ProcessStat is a process in /proc.
type ProcessStat struct {
	PID              int
	Parent           int
	Command          string  // name of its program, cut to 15 bytes as in /proc/PID/comm
	Args             string  // joined by blanks
	RSS              int64   // bytes
	CPUSeconds       float64 // seconds
	ReapedCPUSeconds float64 // seconds of its reaped children
}

// IsBelow reports whether the arguments contain a directory.
func (p ProcessStat) IsBelow(dir string) bool { return strings.Contains(p.Args, dir) }

// maxComm is the longest name of a process, in bytes (proc_pid_comm(5)).
const maxComm = 15

// IsDaemon reports whether the process is Roost's daemon of a role, or, as up, the master
// of a pool. Releases before roost-daemon ran them in roost.
func (p ProcessStat) IsDaemon(role string) bool {
	programs := []string{"roost-daemon", "roost-negotiator", "roost-web", "roost-accountant", "roost"}
	isStarted := func(program string) bool { return strings.Contains(p.Args, program+" "+role+" ") }
	comm := func(program string) bool { return p.Command == program[:min(len(program), maxComm)] }
	return slices.ContainsFunc(programs, comm) && slices.ContainsFunc(programs, isStarted)
}

// ListProcesses lists the visible processes. Processes that end meanwhile are left out.
func ListProcesses() []ProcessStat {
	var out []ProcessStat
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range dirs {
		stat, err := os.ReadFile(dir + "/stat")
		if err != nil {
			continue
		}
		args, _ := os.ReadFile(dir + "/cmdline")
		if p, ok := parseStat(string(stat), string(args)); ok {
			out = append(out, p)
		}
	}
	return out
}

// parseStat parses /proc/PID/stat (proc_pid_stat(5)). A program's name may contain blanks
// and brackets.
func parseStat(stat, args string) (ProcessStat, bool) {
	open, end := strings.IndexByte(stat, '('), strings.LastIndexByte(stat, ')')
	if open < 0 || end < open {
		return ProcessStat{}, false
	}
	f := strings.Fields(stat[end+1:])
	if len(f) < 22 {
		return ProcessStat{}, false
	}
	number := func(i int) int64 { n, _ := strconv.ParseInt(f[i], 10, 64); return n }
	pid, err := strconv.Atoi(strings.TrimSpace(stat[:open]))
	return ProcessStat{
		PID: pid, Parent: int(number(1)), Command: stat[open+1 : end], Args: strings.ReplaceAll(args, "\x00", " "),
		RSS: number(21) * int64(os.Getpagesize()), CPUSeconds: float64(number(11)+number(12)) / 100,
		ReapedCPUSeconds: float64(number(13)+number(14)) / 100,
	}, err == nil
}

// PSS returns the process's proportional share of memory, in bytes. A page that n
// processes share counts as one n-th. Only root may read it of other users' processes.
func (p ProcessStat) PSS() (int64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", p.PID))
	if err != nil {
		return 0, err
	}
	return parsePSS(text)
}

func parsePSS(rollup []byte) (int64, error) {
	lines := bufio.NewScanner(bytes.NewReader(rollup))
	for lines.Scan() {
		if f := strings.Fields(lines.Text()); len(f) == 3 && f[0] == "Pss:" && f[2] == "kB" {
			n, err := strconv.ParseInt(f[1], 10, 64)
			return n << 10, err
		}
	}
	return 0, fmt.Errorf("smaps_rollup: it has no line Pss")
}
