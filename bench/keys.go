package main

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/bench/gauge"
	"github.com/roost-batch/roost/internal/cgroup"
	"github.com/roost-batch/roost/internal/config"
	"github.com/roost-batch/roost/internal/e2e"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/wire"
)

// How often a key is pressed, and how soon everything must be frozen then.
const (
	keyRounds = 20
	keyTarget = 250 * time.Millisecond
)

// measureKeys measures from a key at a terminal until all tasks of a busy desktop are
// frozen. They are frozen by guard and startd, and by the guard alone while the startd
// hangs.
func (b *poolBencher) measureKeys() error {
	if os.Geteuid() != 0 {
		b.addRow("from a key until tasks stand still", "not measured: only root gives a pool terminals of its own")
		return nil
	}
	dir := filepath.Join(b.dir, "pool")
	owner := dir + "-owner.hcl"
	// other load on this machine is not the owner's
	if err := os.WriteFile(owner, []byte("foreign_cpu = 1000\n"), 0o644); err != nil {
		return err
	}
	d := config.StartdSettings{Name: "desktop", AllowRoot: true,
		Resources: roost.Resources{CPU: 64000, Memory: 8 * roost.GiB, Disk: roost.GiB}}
	d.Policy = config.OwnerPolicy{Preset: "desktop", StartAfter: time.Second, ResumeAfter: 2 * time.Second,
		LeaveAfter: time.Hour}
	pool, err := e2e.Start(b.ctx, e2e.PoolOptions{Roost: b.roost, Dir: dir, Nodes: 1, Node: &config.Node{
		Name: "desktop", Dir: dir, Collector: &config.CollectorSettings{}, Negotiator: &config.NegotiatorSettings{},
		Schedd: &config.ScheddSettings{AllowRoot: true},
		Owner:  config.OwnerFile{File: owner}, Startds: []config.StartdSettings{d},
	}})
	if err != nil {
		return err
	}
	b.pool = pool
	defer pool.Stop()
	terminal, err := pool.OpenTerminal()
	if err != nil {
		return err
	}
	defer terminal.Close()
	for _, tasks := range []int{1, 16, 50} {
		if err := b.measureKeysWith(terminal, tasks); err != nil {
			return err
		}
	}
	return nil
}

// measureKeysWith measures with a number of tasks.
func (b *poolBencher) measureKeysWith(terminal *e2e.OwnerTerminal, tasks int) error {
	id, err := b.submitJob(newJobSpec(tasks, "/bin/sh", "-c", "while :; do :; done"))
	if err != nil {
		return err
	}
	// a task that is just being started leaves at a key, and starts again
	if err := b.awaitRunning(id, uint32(tasks)); err != nil {
		return err
	}
	var both, alone gauge.DurationSamples
	for round := range keyRounds {
		if err := b.awaitFrozenTasks(tasks, 0); err != nil {
			return err
		}
		hangs := tasks == 16 && round >= keyRounds*3/4
		took, err := b.pressKey(terminal, tasks, hangs)
		if err != nil {
			return err
		}
		if hangs {
			alone = append(alone, took)
		} else {
			both = append(both, took)
		}
	}
	print := func(what string, took gauge.DurationSamples) {
		b.addAimedRow(fmt.Sprintf("from a key until %d busy tasks stand still%s", tasks, what),
			took.Percentile(99) <= keyTarget, keyTarget.String()+" for 99 of 100",
			"p50 %v  p99 %v  max %v", took.Percentile(50), took.Percentile(99), took.Percentile(100))
	}
	if print("", both); len(alone) > 0 {
		print(", startd stopped", alone)
	}
	_, err = b.pool.Client.Act(b.ctx, &wire.ActRequest{
		Verb: wire.ActRequest_REMOVE, Force: true, Selection: &wire.Selection{Selectors: []string{id}},
	})
	if err != nil {
		return rpc.FromStatus(err)
	}
	return b.awaitFrozenTasks(0, 0)
}

// pressKey presses a key, and returns how long it takes until all tasks are frozen. The
// startd may hang meanwhile.
func (b *poolBencher) pressKey(terminal *e2e.OwnerTerminal, tasks int, hangs bool) (time.Duration, error) {
	if hangs {
		startd, err := b.startdPID()
		if err == nil {
			err = syscall.Kill(startd.PID, syscall.SIGSTOP)
		}
		if err != nil {
			return 0, err
		}
		defer syscall.Kill(startd.PID, syscall.SIGCONT)
	}
	began := time.Now()
	if err := terminal.PressKey(); err != nil {
		return 0, err
	}
	err := b.awaitFrozenTasks(tasks, tasks)
	return time.Since(began), err
}

// awaitFrozenTasks waits until there are that many tasks, and still of them are frozen.
func (b *poolBencher) awaitFrozenTasks(tasks, still int) error {
	groups := e2e.TaskCgroups(b.pool.Dir)
	for end := time.Now().Add(2 * time.Minute); len(groups) != tasks || cgroup.CountFrozen(groups) != still; {
		if time.Now().After(end) {
			return fmt.Errorf("%d of %d tasks stand still: %w: want %d of %d", cgroup.CountFrozen(groups), len(groups),
				roost.Unavailable, still, tasks)
		}
		if err := sleepFor(b.ctx, 1); err != nil {
			return err
		}
		if len(groups) != tasks {
			groups = e2e.TaskCgroups(b.pool.Dir)
		}
	}
	return nil
}
