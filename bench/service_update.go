package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/bench/gauge"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/wire"
)

// The update that is measured: tasks that are ready as soon as they run are replaced in
// ten waves. Each of them settles, and has a second beside.
const (
	updatedTasks = 1000
	updateWaves  = 10
	updateProof  = 2 * time.Second
	updateAim    = updateWaves*(updateProof+time.Second) + 5*time.Second
	readyAim     = 100 * time.Millisecond // p50
	readyRuns    = 60
)

// serviceBencher measures services that are submitted and updated.
type serviceBencher struct{ *namedService }

// measureServices measures a submit until the name of the service is ready. Then it
// measures an update of a service of many tasks.
func measureServices(b *poolBencher) error {
	ctx, cancel := context.WithCancel(b.ctx)
	defer cancel()
	s := serviceBencher{newNamedService(b)}
	if err := s.watch(ctx, ""); err != nil {
		return err
	}
	if err := s.measureReady(ctx); err != nil {
		return err
	}
	return s.measureUpdate(ctx)
}

// write writes the file of a service whose tasks are ready when they run.
func (s serviceBencher) write(name string, count int, argument string) (file string, err error) {
	file = filepath.Join(s.pool.Dir, name+".hcl")
	text := fmt.Sprintf("job %q {\n  command = [\"/bin/sleep\", %q]\n  count = %d\n  cpus = 0.01\n"+
		"  memory = \"1MiB\"\n"+
		"  service {\n    drain = \"0s\"\n  }\n  port \"http\" {}\n  update {\n    at_once = \"%d%%\"\n"+
		"    max_down = %d\n    settle = \"%v\"\n  }\n}\n",
		name, argument, count, 100/updateWaves, max(count/updateWaves, 1), updateProof)
	return file, os.WriteFile(file, []byte(text), 0o600)
}

// command runs a command of the pool, and returns what it prints.
func (s serviceBencher) command(ctx context.Context, args ...string) (string, error) {
	out, errs, code := s.pool.Command(ctx, args...)
	if code != 0 {
		return "", fmt.Errorf("roost %s: %s", args[0], errs)
	}
	return strings.TrimSpace(out), nil
}

// ready counts the endpoints that are ready.
func (s serviceBencher) ready() (n int) {
	for _, e := range s.shown {
		if e.GetState() == "ready" {
			n++
		}
	}
	return n
}

// measureReady submits services of one task, one after the other.
func (s serviceBencher) measureReady(ctx context.Context) error {
	file, err := s.write("ready", 1, "100000")
	if err != nil {
		return err
	}
	var took gauge.DurationSamples
	for range readyRuns {
		began := time.Now()
		id, err := s.command(ctx, "submit", "-q", file)
		if err != nil {
			return err
		}
		if err := s.await("the service is ready", func() bool { return s.ready() == 1 }); err != nil {
			return err
		}
		took = append(took, time.Since(began))
		if _, err := s.command(ctx, "rm", "--force", id); err != nil {
			return err
		}
		if err := s.await("the name of the service is gone", func() bool { return len(s.shown) == 0 }); err != nil {
			return err
		}
		if err := sleepFor(ctx, 200); err != nil { // the claim is released
			return err
		}
	}
	s.addAimedRow("roost submit of a service until its name is ready", took.Percentile(50) <= readyAim,
		readyAim.String(), "p50 %v  p99 %v", took.Percentile(50), took.Percentile(99))
	return nil
}

// measureUpdate updates a service of many tasks to another argument.
func (s serviceBencher) measureUpdate(ctx context.Context) error {
	file, err := s.write("updated", updatedTasks, "100000")
	if err != nil {
		return err
	}
	id, err := s.command(ctx, "submit", "-q", file)
	if err != nil {
		return err
	}
	if _, err := s.awaitStatus(ctx, id, "all tasks are ready", func(st *wire.JobStatus) bool {
		return st.GetService().GetStates()["ready"] == updatedTasks
	}); err != nil {
		return err
	}
	if _, err := s.write("updated", updatedTasks, "100001"); err != nil {
		return err
	}
	before, began := s.poolCPUTime(), time.Now()
	if _, err := s.command(ctx, "update", file); err != nil {
		return err
	}
	status, err := s.awaitStatus(ctx, id, "the update has ended", func(st *wire.JobStatus) bool {
		return st.GetUpdate() != nil && st.GetUpdate().GetState() != "rolling"
	})
	if err != nil {
		return err
	}
	took, state := time.Since(began), status.GetUpdate().GetState()
	what := fmt.Sprintf("update of %d instant tasks, %d at once", updatedTasks, updatedTasks/updateWaves)
	s.addAimedRow(what, took <= updateAim && state == "done", updateAim.String(), "%v, %s", took, state)
	total, parts := s.poolCPUTime().millisSince(before, updatedTasks)
	s.addRow("CPU time for each updated task", "%.2f ms (%s)", total, parts)
	_, err = s.command(ctx, "rm", "--force", id)
	return err
}

// awaitStatus waits until a job is as it should be, and returns how it is then.
func (s serviceBencher) awaitStatus(ctx context.Context, id, what string, is func(*wire.JobStatus) bool) (
	status *wire.JobStatus, err error) {
	for late := time.Now().Add(10 * updateAim); ; {
		rows, err := s.pool.Client.Query(ctx, &wire.QueryRequest{Selection: &wire.Selection{Selectors: []string{id}}})
		if err != nil {
			return nil, rpc.FromStatus(err)
		}
		status, err := rows.Recv()
		switch {
		case err != nil:
			return nil, rpc.FromStatus(err)
		case is(status):
			return status, nil
		case time.Now().After(late):
			return nil, fmt.Errorf("%s: %w: not within %v: %s", what, roost.Unavailable, 10*updateAim,
				status.GetReason())
		}
		if err := sleepFor(ctx, 100); err != nil {
			return nil, err
		}
	}
}
