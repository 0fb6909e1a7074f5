package main

import (
	"fmt"
	"math/rand/v2"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/bench/gauge"
	"github.com/roost-batch/roost/internal/master"
	"github.com/roost-batch/roost/internal/pbs/qsub"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/wire"
)

// Targets of a schedd with a full queue.
const (
	queuedJobBytes = 1000 // of memory for each job
	restartRounds  = 5
)

// restartTarget is how soon a new schedd answers with that number of queued jobs.
func restartTarget(jobs int) time.Duration {
	if jobs <= 10_000 {
		return 400 * time.Millisecond
	}
	return time.Second
}

// sweepJob is what qsub makes of one of many scripts of a parameter sweep. Its name, its
// script and its arguments are its own; the rest it shares with other jobs of its user.
func sweepJob(i int) (*wire.JobSpec, error) {
	const user, home = "bench", "/home/bench"
	script := fmt.Sprintf("#!/bin/sh\n#PBS -j oe\ncd $PBS_O_WORKDIR\n./simulate --seed %d --out result.%d\n", i, i)
	r, err := qsub.ParseQsub([]string{"-N", fmt.Sprintf("sweep%d", i), "-l", "select=1:ncpus=1:mem=1gb", "-h"},
		qsub.QsubCaller{
			Dir: home + "/sweep", Home: home, User: user, Group: "users", Host: "submit.example.org", Now: time.Now(),
			Environ: []string{"PATH=/usr/local/bin:/usr/bin:/bin:" + home + "/bin", "LANG=C.UTF-8", "HOME=" + home,
				"USER=" + user, "LOGNAME=" + user, "SHELL=/bin/bash", "MAIL=/var/mail/" + user},
			Stdin:    func() ([]byte, error) { return []byte(script), nil },
			LookPath: exec.LookPath, IsDir: func(string) bool { return false },
		})
	if err != nil {
		return nil, err
	}
	return &wire.JobSpec{Ad: r.Job.Ad.String(), Count: uint32(r.Job.Count)}, nil
}

// submitSweep adds jobs to the queue, those from to to-1 of a sweep.
func (b restartBencher) submitSweep(from, to int) error {
	for from < to {
		request := &wire.SubmitRequest{Key: strconv.FormatUint(rand.Uint64(), 36)}
		for range min(jobsPerCall, to-from) {
			spec, err := sweepJob(from)
			if err != nil {
				return err
			}
			request.Jobs, from = append(request.Jobs, spec), from+1
		}
		if _, err := wire.SendSubmission(b.ctx, b.pool.Client, request); err != nil {
			return rpc.FromStatus(err)
		}
	}
	return nil
}

// restartBencher measures a schedd with many queued jobs.
type restartBencher struct{ *poolBencher }

// measureRestart measures what a queued single job costs in memory. Then it kills the
// schedd, and measures how soon a new one answers.
func (b *poolBencher) measureRestart() error { return restartBencher{b}.measure() }

func (b restartBencher) measure() error {
	if err := sleepFor(b.ctx, 10_000); err != nil { // the daemon gives back what its start needed
		return err
	}
	empty, queued := b.daemonsRSS("schedd"), 0
	for _, n := range []int{10_000, 100_000} {
		if err := b.submitSweep(queued, n); err != nil {
			return err
		}
		queued = n
		if err := sleepFor(b.ctx, 20_000); err != nil {
			return err
		}
		b.addJobMemory(n, empty, "")
		if err := b.restartRounds(n); err != nil {
			return err
		}
		if err := sleepFor(b.ctx, 20_000); err != nil {
			return err
		}
		b.addJobMemory(n, empty, ", after a restart and qselect")
	}
	return nil
}

// addJobMemory adds what a queued job costs in memory. With few jobs most of it is what
// the daemon needs for work of any kind, so only many jobs have a target.
func (b restartBencher) addJobMemory(jobs int, empty int64, state string) {
	size := (b.daemonsRSS("schedd") - empty) / int64(jobs)
	what := fmt.Sprintf("schedd's memory for each of %d jobs%s", jobs, state)
	if jobs < 100_000 || state != "" {
		b.addRow(what, "%d bytes", size)
		return
	}
	b.addAimedRow(what, size <= queuedJobBytes, strconv.Itoa(queuedJobBytes)+" bytes", "%d bytes", size)
}

// restartRounds kills the schedd several times. It measures from the start of the new one
// until qstat has shown a job, and until qselect has listed all of them.
func (b restartBencher) restartRounds(jobs int) error {
	var first, all gauge.DurationSamples
	var spent gauge.FigureSamples
	for range restartRounds {
		before, err := b.scheddState()
		if err != nil {
			return err
		}
		if err := syscall.Kill(before.PID, syscall.SIGKILL); err != nil {
			return err
		}
		answered, err := b.awaitAnswer("qstat", "1")
		if err != nil {
			return err
		}
		listed, err := b.awaitAnswer("qselect")
		if err != nil {
			return err
		}
		now, err := b.scheddState()
		if err != nil {
			return err
		}
		if now.PID == before.PID {
			return fmt.Errorf("schedd: the master has not written down the new one")
		}
		first, all = append(first, answered.Sub(now.Started)), append(all, listed.Sub(now.Started))
		spent = append(spent, b.poolCPUTime()["schedd"])
	}
	b.addAimedRow(fmt.Sprintf("a killed schedd with %d jobs: qstat of a job", jobs),
		first.Percentile(50) <= restartTarget(jobs), restartTarget(jobs).String(),
		"p50 %v  max %v after its start, CPU %.2f s", first.Percentile(50), first.Percentile(100), spent.Median())
	b.addRow(fmt.Sprintf("a killed schedd with %d jobs: qselect of all", jobs), "p50 %v  max %v after its start",
		all.Percentile(50), all.Percentile(100))
	return nil
}

// awaitAnswer runs a command until it succeeds, and returns when that was.
func (b restartBencher) awaitAnswer(args ...string) (time.Time, error) {
	deadline := time.Now().Add(time.Minute)
	for {
		cmd := b.command(args...)
		out, err := cmd.Output()
		if err == nil && strings.TrimSpace(string(out)) != "" {
			return time.Now(), nil
		}
		if time.Now().After(deadline) {
			return time.Time{}, fmt.Errorf("%s: %w: no answer for a minute: %v", args[0], roost.Unavailable, err)
		}
		if err := sleepFor(b.ctx, 2); err != nil {
			return time.Time{}, err
		}
	}
}

// scheddState returns the state of the pool's schedd.
func (b restartBencher) scheddState() (master.DaemonState, error) {
	state, err := b.pool.State()
	if err != nil {
		return master.DaemonState{}, err
	}
	for _, p := range state.Daemons {
		if p.Role == "schedd" && p.PID != 0 {
			return p, nil
		}
	}
	return master.DaemonState{}, fmt.Errorf("schedd: %w: not running", roost.NotFound)
}
