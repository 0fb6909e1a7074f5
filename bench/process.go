package main

import (
	"fmt"
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

// process is a line of /proc.
type process struct {
	pid     int
	command string
	args    string
	rss     int64   // bytes
	cpu     float64 // seconds, with its reaped children
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
			rss: number(21) * int64(os.Getpagesize()), cpu: float64(number(11)+number(12)+number(13)+number(14)) / 100,
		})
	}
	return out
}

// cpu is the CPU time, in seconds, that the pool's daemons have used, with what they have reaped: starters and tasks among it.
func (b *bencher) cpu() (total float64) {
	for _, p := range processes() {
		if p.below(b.pool.Dir) && (p.command == "roost" || p.command == "roost-starter") {
			total += p.cpu
		}
	}
	return total
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
