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

// settle is how long daemons may tidy up before their memory is read.
const settle = 5 * time.Second

// sleepers are as many jobs as there are slots.
const sleepers = 16

// central sums the memory (PSS) of the central daemons, and says which they are.
func (a *agent) central() (total float64, parts string, err error) {
	each := map[string]int64{}
	for _, p := range gauge.Processes() {
		role := a.role(p)
		if role == "" {
			continue
		}
		size, err := p.PSS()
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
			continue // one that forked to answer somebody
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

// idle reads the memory of the central daemons of a pool that has just been started.
func (a *agent) idle(ctx context.Context, _ order, ans *answer) error {
	if err := pause(ctx, 2*settle); err != nil {
		return err
	}
	return a.weigh("idle", ans)
}

func (a *agent) weigh(figure string, ans *answer) error {
	total, parts, err := a.central()
	if err == nil {
		ans.add(figure, total)
		ans.Note = parts
	}
	return err
}

// queuedArray reads it while an array waits, and queuedEach while as many jobs do.
func (a *agent) queuedArray(ctx context.Context, o order, ans *answer) error {
	return a.queued(ctx, o.Count, "array", a.heldArray, ans)
}

func (a *agent) queuedEach(ctx context.Context, o order, ans *answer) error {
	return a.queued(ctx, o.Count, "each", a.heldEach, ans)
}

func (a *agent) queued(ctx context.Context, n int, figure string, fill func(context.Context, int) error, ans *answer) error {
	began := time.Now()
	if err := fill(ctx, n); err != nil {
		return err
	}
	took := time.Since(began)
	if err := pause(ctx, settle); err != nil {
		return err
	}
	if err := a.weigh(figure, ans); err != nil {
		return err
	}
	ans.Note += fmt.Sprintf("; submitted in %.1f s", took.Seconds())
	return a.wipe(ctx)
}

// everything sums the memory of all processes of the system but those of jobs, and of ours.
func everything() (total float64) {
	for _, p := range gauge.Processes() {
		if p.PID == 1 || p.PID == os.Getpid() || p.Command == "sleep" {
			continue
		}
		if size, err := p.PSS(); err == nil { // it may have ended
			total += float64(size)
		}
	}
	return total
}

// spent sums the CPU time, in seconds, of all processes of the system that there are or were: of one that has ended, its parent knows. What our own
// commands took is left out.
func spent() (total float64) {
	for _, p := range gauge.Processes() {
		if p.PID != os.Getpid() {
			total += p.Own + p.Reaped
		}
	}
	return total
}

// running reads how much more memory everything takes for each job that runs, the job's own processes apart.
func (a *agent) running(ctx context.Context, _ order, ans *answer) error {
	if err := pause(ctx, settle); err != nil {
		return err
	}
	before := everything()
	argv, err := a.array(sleepers, "/bin/sleep", "1000")
	if err != nil {
		return err
	}
	if _, err := a.do(ctx, argv...); err != nil {
		return err
	}
	err = until(ctx, 200*time.Millisecond, "not all jobs run", func() bool {
		n := 0
		for _, p := range gauge.Processes() {
			if p.Command == "sleep" && strings.HasSuffix(strings.TrimSpace(p.Args), "1000") {
				n++
			}
		}
		return n >= sleepers
	})
	if err != nil {
		return err
	}
	if err := pause(ctx, settle); err != nil {
		return err
	}
	ans.add("running", (everything()-before)/sleepers)
	return a.wipe(ctx)
}

// kill ends the daemon of that role, as the kernel's killer of processes would.
func (a *agent) kill(role string) (time.Time, error) {
	for _, p := range gauge.Processes() {
		if a.role(p) == role {
			return time.Now(), syscall.Kill(p.PID, syscall.SIGKILL)
		}
	}
	return time.Time{}, fmt.Errorf("%s: it does not run", role)
}
