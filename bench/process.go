package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/roost-batch/roost/bench/gauge"
)

// poolCPUTime returns the CPU time, in seconds, that the pool has used. Each daemon has
// its own entry; "tasks" is the starters together with their reaped tasks.
func (b *poolBencher) poolCPUTime() cpuUsage {
	u := cpuUsage{}
	for _, p := range gauge.ListProcesses() {
		if !p.IsBelow(b.pool.Dir) {
			continue
		}
		switch role := daemonRole(p); role {
		case "":
		case "startd":
			u[role] += p.CPUSeconds
			u["tasks"] += p.ReapedCPUSeconds // released starters
		default:
			u[role] += p.CPUSeconds + p.ReapedCPUSeconds
		}
	}
	return u
}

// cpuUsage is CPU seconds by daemon role.
type cpuUsage map[string]float64

// millisSince returns the milliseconds of CPU time that each role has used for each of n
// jobs. It counts from before, and returns the sum, too.
func (u cpuUsage) millisSince(before cpuUsage, n int) (total float64, parts string) {
	for _, role := range slices.Sorted(maps.Keys(u)) {
		ms := (u[role] - before[role]) * 1000 / float64(n)
		if total += ms; ms >= 0.005 {
			parts += fmt.Sprintf(", %s %.2f", role, ms)
		}
	}
	return total, strings.TrimPrefix(parts, ", ")
}

// daemonRole returns the role of a process of a pool.
func daemonRole(p gauge.ProcessStat) string {
	if p.Command == "roost-starter" {
		return "tasks"
	}
	for _, role := range []string{"up", "collector", "negotiator", "schedd", "startd", "web"} {
		if p.IsDaemon(role) {
			return role
		}
	}
	return ""
}

// daemonsRSS sums the resident memory of the daemons of a role, in bytes.
func (b *poolBencher) daemonsRSS(role string) (total int64) {
	for _, p := range gauge.ListProcesses() {
		if p.IsBelow(b.pool.Dir) && strings.Contains(p.Args, " "+role+" ") {
			total += p.RSS
		}
	}
	return total
}

// daemonsPSS sums the proportional shares of all daemons of the pool, in bytes.
func (b *poolBencher) daemonsPSS() (total int64, err error) {
	for _, p := range gauge.ListProcesses() {
		if role := daemonRole(p); p.IsBelow(b.pool.Dir) && role != "" && role != "tasks" {
			pss, err := p.PSS()
			if err != nil {
				return 0, err
			}
			total += pss
		}
	}
	return total, nil
}

func (b *poolBencher) addRSSLine() string {
	var parts []string
	for _, role := range []string{"up", "collector", "negotiator", "schedd", "startd"} {
		n := int64(1)
		if role == "startd" {
			n = int64(b.pool.Nodes)
		}
		parts = append(parts, fmt.Sprintf("%s %.0f MiB", strings.Replace(role, "up", "master", 1),
			float64(b.daemonsRSS(role)/n)/(1<<20)))
	}
	return strings.Join(parts, ", ")
}
