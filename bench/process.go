package main

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

type samples []time.Duration

// at returns a percentile, rounded to what the clock and the noise allow.
func (s samples) at(percent int) time.Duration {
	sorted := slices.Sorted(slices.Values(s))
	return sorted[(len(sorted)-1)*percent/100].Round(10 * time.Microsecond)
}

type figures []float64

func (s figures) median() float64 {
	if len(s) == 0 {
		return 0
	}
	return slices.Sorted(slices.Values(s))[len(s)/2]
}

func row(what, format string, args ...any) {
	fmt.Printf("%-52s %s\n", what, fmt.Sprintf(format, args...))
}

// aimed prints a value beside what it should be at most.
func aimed(what string, met bool, aim, format string, args ...any) {
	verdict := "met"
	if !met {
		verdict = "MISSED"
	}
	row(what, "%s  (aim: at most %s, %s)", fmt.Sprintf(format, args...), aim, verdict)
}

// process is a line of /proc.
type process struct {
	pid     int
	command string
	args    string
	rss     int64   // bytes
	own     float64 // CPU seconds
	reaped  float64 // CPU seconds of its reaped children
}

func (p process) below(dir string) bool { return strings.Contains(p.args, dir) }

func processes() []process {
	var out []process
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range dirs {
		stat, err := os.ReadFile(dir + "/stat")
		args, _ := os.ReadFile(dir + "/cmdline")
		open, end := strings.IndexByte(string(stat), '('), strings.LastIndexByte(string(stat), ')')
		if err != nil || open < 0 || end < open {
			continue
		}
		f := strings.Fields(string(stat)[end+1:])
		number := func(i int) int64 { n, _ := strconv.ParseInt(f[i], 10, 64); return n }
		pid, _ := strconv.Atoi(filepath.Base(dir))
		out = append(out, process{
			pid: pid, command: strings.TrimSuffix(string(stat)[open+1:end], ")"), args: strings.ReplaceAll(string(args), "\x00", " "),
			rss: number(21) * int64(os.Getpagesize()), own: float64(number(11)+number(12)) / 100, reaped: float64(number(13)+number(14)) / 100,
		})
	}
	return out
}

// cpu is the CPU time, in seconds, that the pool has used: each daemon's own, and under "tasks" what the starters have used together with the
// tasks that they reaped.
func (b *bencher) cpu() usage {
	u := usage{}
	for _, p := range processes() {
		if !p.below(b.pool.Dir) {
			continue
		}
		switch role := p.role(); role {
		case "":
		case "startd":
			u[role] += p.own
			u["tasks"] += p.reaped // starters that were released
		default:
			u[role] += p.own + p.reaped
		}
	}
	return u
}

// usage is CPU seconds by who used them.
type usage map[string]float64

// since returns how many milliseconds each has used for each of n jobs since before, the sum first.
func (u usage) since(before usage, n int) (total float64, parts string) {
	for _, role := range slices.Sorted(maps.Keys(u)) {
		ms := (u[role] - before[role]) * 1000 / float64(n)
		if total += ms; ms >= 0.005 {
			parts += fmt.Sprintf(", %s %.2f", role, ms)
		}
	}
	return total, strings.TrimPrefix(parts, ", ")
}

// role is the daemon that a process of a pool is.
func (p process) role() string {
	if p.command == "roost-starter" {
		return "tasks"
	}
	for _, role := range []string{"up", "collector", "negotiator", "schedd", "startd"} {
		if p.command == "roost" && strings.Contains(p.args, "roost "+role+" ") {
			return role
		}
	}
	return ""
}

// rss sums the resident memory of the daemons of that role, in bytes.
func (b *bencher) rss(role string) (total int64) {
	for _, p := range processes() {
		if p.below(b.pool.Dir) && strings.Contains(p.args, " "+role+" ") {
			total += p.rss
		}
	}
	return total
}

func (b *bencher) rssLine() string {
	var parts []string
	for _, role := range []string{"up", "collector", "negotiator", "schedd", "startd"} {
		n := int64(1)
		if role == "startd" {
			n = int64(b.pool.Nodes)
		}
		parts = append(parts, fmt.Sprintf("%s %.0f MiB", strings.Replace(role, "up", "master", 1), float64(b.rss(role)/n)/(1<<20)))
	}
	return strings.Join(parts, ", ")
}
