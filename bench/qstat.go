package main

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/roost-batch/roost/bench/gauge"
	"github.com/roost-batch/roost/internal/pbs/qsub"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/wire"
)

// Targets of qstat's lists, for a user with few of very many jobs.
const (
	listTarget  = 100 * time.Millisecond
	ownJobs     = 200 // jobs of that user
	jobsPerCall = 1000
)

// otherUser has jobs beside those of the user of this program. Only root can submit as
// somebody else, and nobody may as the user called nobody.
const (
	otherUser = "daemon"
	otherUID  = 1
)

// queueWaits is a script whose job outlives every measurement.
const queueWaits = "#!/bin/sh\n#PBS -N list\n#PBS -l select=1:ncpus=1:mem=16mb,walltime=100:00:00\n#PBS " +
	"-j oe\nsleep 360000\n"

// qsubJob returns the job that qsub makes of a script, in an environment of a number of
// bytes.
func qsubJob(script string, environment int, options ...string) (*wire.JobSpec, error) {
	r, err := qsub.ParseQsub(append(options, "-V"), qsub.QsubCaller{
		Dir: "/tmp", Home: "/tmp", User: "bench", Group: "bench", Host: "here", Now: time.Now(),
		Environ: []string{"PATH=/usr/local/bin:/usr/bin:/bin", "LANG=C.UTF-8",
			"MODULES=" + strings.Repeat("/opt/modules/lib:", environment/17)},
		Stdin: func() ([]byte, error) {
			return []byte(script), nil
		}, LookPath: exec.LookPath, IsDir: func(string) bool { return false },
	})
	if err != nil {
		return nil, err
	}
	return &wire.JobSpec{Ad: r.Job.Ad.String(), Count: uint32(r.Job.Count)}, nil
}

// fillQueue adds jobs to the queue until it has to jobs. Each job has a user's whole
// environment.
func (b *poolBencher) fillQueue(from, to int, options ...string) error {
	spec, err := qsubJob(queueWaits, 4000, options...)
	if err != nil {
		return err
	}
	for from < to {
		n := min(jobsPerCall, to-from)
		req := &wire.SubmitRequest{Key: strconv.FormatUint(rand.Uint64(), 36)}
		for range n {
			req.Jobs = append(req.Jobs, spec)
		}
		if _, err := wire.SendSubmission(b.ctx, b.pool.Client, req); err != nil {
			return rpc.FromStatus(err)
		}
		from += n
	}
	return nil
}

// fillQueueAs submits jobs of another user, through a command of that user.
func (b *poolBencher) fillQueueAs(uid uint32, jobs int) error {
	if err := openPoolToUsers(b); err != nil {
		return err
	}
	var text bytes.Buffer
	for i := range jobs {
		fmt.Fprintf(&text, "job \"own%d\" {\n  executable = \"/bin/sleep\"\n  arguments = [\"360000\"]\n  directory "+
			"= \"/tmp\"\n}\n", i)
	}
	cmd := b.command("submit", "-q", "-")
	cmd.Stdin, cmd.Dir = &text, "/tmp"
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
	cmd.Env = append(cmd.Env, "HOME=/tmp")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("submit as %d: %w\n%s", uid, err, out)
	}
	return nil
}

// command returns a command of Roost's for this pool.
func (b *poolBencher) command(args ...string) *exec.Cmd {
	cmd := exec.CommandContext(b.ctx, b.roost, args...)
	cmd.Env = append(os.Environ(), "ROOST_DIR="+b.pool.Dir)
	return cmd
}

// byteCounter counts what is written to it.
type byteCounter struct{ bytes, lines int }

func (c *byteCounter) Write(p []byte) (int, error) {
	c.bytes += len(p)
	c.lines += bytes.Count(p, []byte("\n"))
	return len(p), nil
}

// qstatRun is the cost of one command.
type qstatRun struct {
	byteCounter
	wall gauge.DurationSamples
	cpu  gauge.DurationSamples // of the command itself
	peak int64                 // bytes of its memory
}

// timeCommand runs a command several times.
func (b *poolBencher) timeCommand(runs int, args ...string) (l qstatRun, err error) {
	for range runs {
		cmd := b.command(args...)
		l.byteCounter = byteCounter{}
		var errs bytes.Buffer
		cmd.Stdout, cmd.Stderr = io.Writer(&l.byteCounter), &errs
		began := time.Now()
		if err := cmd.Run(); err != nil {
			return l, fmt.Errorf("%s: %w\n%s", strings.Join(args, " "), err, errs.String())
		}
		l.wall = append(l.wall, time.Since(began))
		l.cpu = append(l.cpu, cmd.ProcessState.UserTime()+cmd.ProcessState.SystemTime())
		l.peak = max(l.peak, cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss*1024)
	}
	return l, nil
}

// measureQstat measures the lists of 10,000 and of 100,000 jobs.
func (b *poolBencher) measureQstat() error {
	var before [2]time.Duration
	for i, n := range []int{10_000, 100_000} {
		from := []int{0, 10_000}[i]
		if err := b.fillQueue(from, n); err != nil {
			return err
		}
		if i == 0 && os.Geteuid() == 0 {
			if err := b.fillQueueAs(otherUID, ownJobs); err != nil {
				return err
			}
		}
		if err := sleepFor(b.ctx, 2000); err != nil {
			return err
		}
		if err := b.measureLists(n, &before[0], &before[1]); err != nil {
			return err
		}
	}
	return nil
}

// measureLists measures the commands with n jobs in the queue, beside their times with
// fewer.
func (b *poolBencher) measureLists(n int, table, document *time.Duration) error {
	about := fmt.Sprintf(" of %d jobs", n)
	if os.Geteuid() == 0 {
		l, err := b.timeCommand(9, "qstat", "-u", otherUser)
		if err != nil {
			return err
		}
		b.addAimedRow(fmt.Sprintf("qstat -u, %d jobs%s", ownJobs, about), l.wall.Percentile(50) <= listTarget,
			listTarget.String(), "p50 %v  max %v, CPU %v", l.wall.Percentile(50), l.wall.Percentile(100),
			l.cpu.Percentile(50))
		if err := (slurmBencher{b}).measureSqueue(about); err != nil {
			return err
		}
	} else {
		b.addRow("qstat -u"+about, "not measured: only root can submit as somebody else")
	}
	ids := []string{"qstat", "-f", "-F", "json", "-x"}
	for i := range 100 {
		ids = append(ids, strconv.Itoa(1+i*(n/100)))
	}
	l, err := b.timeCommand(9, ids...)
	if err != nil {
		return err
	}
	b.addRow("qstat -f -F json of 100 ids"+about, "p50 %v  max %v, CPU %v", l.wall.Percentile(50),
		l.wall.Percentile(100), l.cpu.Percentile(50))
	for _, form := range []struct {
		args    []string
		earlier *time.Duration
	}{{[]string{"qstat"}, table}, {[]string{"qstat", "-f", "-F", "json"}, document}} {
		grown := b.daemonsRSS("schedd")
		spent := b.poolCPUTime()
		if l, err = b.timeCommand(3, form.args...); err != nil {
			return err
		}
		ratio := ""
		if *form.earlier > 0 {
			ratio = fmt.Sprintf(", %.1f times as long as a tenth",
				float64(l.wall.Percentile(50))/float64(*form.earlier))
		}
		*form.earlier = l.wall.Percentile(50)
		b.addRow(strings.Join(form.args, " ")+about,
			"p50 %v%s, %.1f MB, CPU %v and schedd %.2f s, peak memory %.0f MiB, schedd grew %.0f MiB",
			l.wall.Percentile(50), ratio,
			float64(l.bytes)/1e6, l.cpu.Percentile(50), (b.poolCPUTime()["schedd"]-spent["schedd"])/3,
			float64(l.peak)/(1<<20), float64(b.daemonsRSS("schedd")-grown)/(1<<20))
	}
	return nil
}

// measureArray measures an array of a million tasks: submitted, listed by task, and
// deleted.
func (b *poolBencher) measureArray() error {
	const tasks = 1_000_000
	file := filepath.Join(b.dir, "array.sh")
	if err := os.WriteFile(file, []byte(queueWaits), 0o600); err != nil {
		return err
	}
	before := b.daemonsRSS("schedd")
	submit, err := b.timeCommand(1, "qsub", "-h", "-J", fmt.Sprintf("0-%d", tasks-1), file)
	if err != nil {
		return err
	}
	b.addRow("qsub -J of 1,000,000 subjobs", "%v, schedd grew %.0f MiB", submit.wall.Percentile(50),
		float64(b.daemonsRSS("schedd")-before)/(1<<20))
	whole, err := b.timeCommand(5, "qstat", "-f", "1[]")
	if err != nil {
		return err
	}
	b.addRow("qstat -f of the array", "p50 %v", whole.wall.Percentile(50))
	one, err := b.timeCommand(5, "qstat", "1[777777]")
	if err != nil {
		return err
	}
	b.addRow("qstat of one subjob", "p50 %v", one.wall.Percentile(50))
	spent := b.poolCPUTime()
	all, err := b.timeCommand(1, "qstat", "-t", "1[]")
	if err != nil {
		return err
	}
	if all.lines != tasks+3 {
		return fmt.Errorf("qstat -t: %d lines of %d subjobs", all.lines, tasks)
	}
	b.addRow("qstat -t of all subjobs", "%v, %.1f MB, CPU %v and schedd %.2f s, peak memory %.0f MiB",
		all.wall.Percentile(50), float64(all.bytes)/1e6, all.cpu.Percentile(50),
		b.poolCPUTime()["schedd"]-spent["schedd"], float64(all.peak)/(1<<20))
	gone, err := b.timeCommand(1, "qdel", "1[]")
	if err != nil {
		return err
	}
	b.addRow("qdel of the array", "%v", gone.wall.Percentile(50))
	return nil
}
