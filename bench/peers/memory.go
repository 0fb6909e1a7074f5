package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/roost-batch/roost/bench/gauge"
)

// quiesceTime is how long daemons may clean up before their memory is read.
const quiesceTime = 5 * time.Second

// sleepers is the number of sleeping jobs, equal to the number of slots.
const sleepers = 16

// centralMemory sums the memory (PSS) of the central daemons, and names these.
func (a *systemAgent) centralMemory() (total float64, parts string, err error) {
	each := map[string]int64{}
	for _, p := range gauge.ListProcesses() {
		role := a.daemonRole(p)
		if role == "" {
			continue
		}
		size, err := p.PSS()
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
			continue // a forked process that answers a request
		}
		if err != nil {
			return 0, "", fmt.Errorf("%s: %w", role, err)
		}
		each[role] += size
		total += float64(size)
	}
	if total == 0 {
		return 0, "", fmt.Errorf("none of the central daemons runs")
	}
	var list []string
	for _, role := range slices.Sorted(maps.Keys(each)) {
		list = append(list, fmt.Sprintf("%s %.1f", role, float64(each[role])/(1<<20)))
	}
	return total, strings.Join(list, ", ") + " MiB", nil
}

// measureIdleMemory reads the memory of the central daemons of a newly started pool.
func (a *systemAgent) measureIdleMemory(ctx context.Context, _ measureSpec, ans *measureResult) error {
	if err := sleepContext(ctx, 2*quiesceTime); err != nil {
		return err
	}
	return a.measureQueuedMemory("idle", ans)
}

func (a *systemAgent) measureQueuedMemory(figure string, ans *measureResult) error {
	total, parts, err := a.centralMemory()
	if err == nil {
		ans.addValue(figure, total)
		ans.Note = parts
	}
	return err
}

// measureQueuedArray reads the memory while an array waits. measureQueuedJobs does so
// while as many jobs wait.
func (a *systemAgent) measureQueuedArray(ctx context.Context, o measureSpec, ans *measureResult) error {
	return a.measureQueued(ctx, o.Count, "array", a.submitHeldArray, ans)
}

func (a *systemAgent) measureQueuedJobs(ctx context.Context, o measureSpec, ans *measureResult) error {
	return a.measureQueued(ctx, o.Count, "each", a.submitHeldJobs, ans)
}

func (a *systemAgent) measureQueued(ctx context.Context, n int, figure string, fill func(context.Context, int) error,
	ans *measureResult) error {
	began := time.Now()
	if err := fill(ctx, n); err != nil {
		return err
	}
	took := time.Since(began)
	if err := sleepContext(ctx, quiesceTime); err != nil {
		return err
	}
	if err := a.measureQueuedMemory(figure, ans); err != nil {
		return err
	}
	ans.Note += fmt.Sprintf("; submitted in %.1f s", took.Seconds())
	return a.removeAllJobs(ctx)
}

// allMemory sums the memory of all processes of the system, without jobs and this
// program.
func allMemory() (total float64) {
	for _, p := range gauge.ListProcesses() {
		if p.PID == 1 || p.PID == os.Getpid() || p.Command == "sleep" {
			continue
		}
		if size, err := p.PSS(); err == nil { // it may have ended
			total += float64(size)
		}
	}
	return total
}

// cpuTimeSpent sums the CPU time, in seconds, of all present and past processes of the
// system. That of an ended process is in its parent's. The bench's own commands are left
// out.
func cpuTimeSpent() (total float64) {
	for _, p := range gauge.ListProcesses() {
		if p.PID != os.Getpid() {
			total += p.CPUSeconds + p.ReapedCPUSeconds
		}
	}
	return total
}

// measureRunningMemory measures how much more memory the system needs for each running
// job, without the job's own processes.
func (a *systemAgent) measureRunningMemory(ctx context.Context, _ measureSpec, ans *measureResult) error {
	if err := sleepContext(ctx, quiesceTime); err != nil {
		return err
	}
	before := allMemory()
	argv, err := a.submitArray(sleepers, "/bin/sleep", "1000")
	if err != nil {
		return err
	}
	if _, err := a.runAsUser(ctx, argv...); err != nil {
		return err
	}
	err = pollUntil(ctx, 200*time.Millisecond, "not all jobs run", func() bool {
		n := 0
		for _, p := range gauge.ListProcesses() {
			if p.Command == "sleep" && strings.HasSuffix(strings.TrimSpace(p.Args), "1000") {
				n++
			}
		}
		return n >= sleepers
	})
	if err != nil {
		return err
	}
	if err := sleepContext(ctx, quiesceTime); err != nil {
		return err
	}
	ans.addValue("running", (allMemory()-before)/sleepers)
	return a.removeAllJobs(ctx)
}

// killDaemon kills the daemon of a role with SIGKILL.
func (a *systemAgent) killDaemon(role string) (time.Time, error) {
	for _, p := range gauge.ListProcesses() {
		if a.daemonRole(p) == role {
			return time.Now(), syscall.Kill(p.PID, syscall.SIGKILL)
		}
	}
	return time.Time{}, fmt.Errorf("%s: it does not run", role)
}
