package gauge

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Process is a line of /proc.
type Process struct {
	PID     int
	Parent  int
	Command string  // the name of its program, cut to 15 bytes as in /proc/PID/comm
	Args    string  // with blanks between
	RSS     int64   // bytes
	Own     float64 // CPU seconds
	Reaped  float64 // CPU seconds of its reaped children
}

// Below says whether the directory is named among the arguments.
func (p Process) Below(dir string) bool { return strings.Contains(p.Args, dir) }

// Processes lists those that can be seen. What ends meanwhile is left out.
func Processes() []Process {
	var out []Process
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

// parseStat reads /proc/PID/stat (proc_pid_stat(5)); a program's name may hold blanks and brackets.
func parseStat(stat, args string) (Process, bool) {
	open, end := strings.IndexByte(stat, '('), strings.LastIndexByte(stat, ')')
	if open < 0 || end < open {
		return Process{}, false
	}
	f := strings.Fields(stat[end+1:])
	if len(f) < 22 {
		return Process{}, false
	}
	number := func(i int) int64 { n, _ := strconv.ParseInt(f[i], 10, 64); return n }
	pid, err := strconv.Atoi(strings.TrimSpace(stat[:open]))
	return Process{
		PID: pid, Parent: int(number(1)), Command: stat[open+1 : end], Args: strings.ReplaceAll(args, "\x00", " "),
		RSS: number(21) * int64(os.Getpagesize()), Own: float64(number(11)+number(12)) / 100, Reaped: float64(number(13)+number(14)) / 100,
	}, err == nil
}

// PSS is the process's proportional share of memory, in bytes: of pages that n processes share, it counts one n-th of each. Only root may ask for
// those of other users.
func (p Process) PSS() (int64, error) {
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
