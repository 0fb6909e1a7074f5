package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/roost-batch/roost/bench/gauge"
)

// Targets of the Slurm commands.
const (
	sbatchRate   = 200 // a second, in a loop of a shell; that of Slurm is 353
	srunRate     = 300 // steps a second, one after the other on each processor of a job
	squeueTarget = 20 * time.Millisecond
	srunLoops    = 4 // at once
)

// slurmBencher measures the commands of Slurm.
type slurmBencher struct{ *poolBencher }

// link makes a command of Slurm a link to the program that has it, and returns its
// file.
func (b slurmBencher) link(name string) (string, error) {
	link := filepath.Join(b.dir, name)
	if _, err := os.Lstat(link); err == nil {
		return link, nil
	}
	return link, os.Symlink(b.roost+"-q", link)
}

// command returns a command of Slurm for this pool.
func (b slurmBencher) command(name string, args ...string) (*exec.Cmd, error) {
	link, err := b.link(name)
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(b.ctx, link, args...)
	cmd.Env, cmd.Dir = append(os.Environ(), "ROOST_DIR="+b.pool.Dir), b.dir
	return cmd, nil
}

// measure measures sbatch in a shell loop, and steps within a job.
func (b slurmBencher) measure() error {
	file := filepath.Join(b.dir, "slurm.sh")
	if err := os.WriteFile(file, []byte("#!/bin/sh\n#SBATCH -J loop -H -o /dev/null\ntrue\n"), 0o600); err != nil {
		return err
	}
	sbatch, err := b.link("sbatch")
	if err != nil {
		return err
	}
	var rates gauge.FigureSamples
	for range 3 {
		cmd := exec.CommandContext(b.ctx, "/bin/sh", "-c",
			fmt.Sprintf("i=0; while [ $i -lt %d ]; do %s -Q %s || exit 1; i=$((i+1)); done", qsubRuns, sbatch, file))
		cmd.Env, cmd.Dir = append(os.Environ(), "ROOST_DIR="+b.pool.Dir), b.dir
		began := time.Now()
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("sbatch: %w\n%s", err, out)
		}
		rates = append(rates, qsubRuns/time.Since(began).Seconds())
	}
	b.addAimedRow("sbatch, one after the other in a shell", rates.Median() >= sbatchRate,
		fmt.Sprintf("%s%d/s", leastPrefix, sbatchRate), "%.0f/s", rates.Median())
	return b.measureSteps()
}

// stepLoops runs steps of one task on each processor of a job. It prints the
// milliseconds that they took in all.
const stepLoops = `#!/bin/sh
began=$(date +%%s%%N)
for loop in $(seq %d); do
  (i=0; while [ $i -lt %d ]; do %s -n 1 --exact true || exit 1; i=$((i+1)); done) &
done
wait
echo $((($(date +%%s%%N) - began) / 1000000))
`

// measureSteps measures srun in a job.
func (b slurmBencher) measureSteps() error {
	srun, err := b.link("srun")
	if err != nil {
		return err
	}
	var rates gauge.FigureSamples
	for run := range 3 {
		out := filepath.Join(b.dir, "steps"+strconv.Itoa(run))
		cmd, err := b.command("sbatch", "-W", "-Q", "-n", strconv.Itoa(srunLoops), "-o", out)
		if err != nil {
			return err
		}
		cmd.Stdin = strings.NewReader(fmt.Sprintf(stepLoops, srunLoops, qsubRuns, srun))
		if text, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("srun: %w\n%s", err, text)
		}
		text, err := os.ReadFile(out)
		if err != nil {
			return err
		}
		took, err := strconv.Atoi(strings.TrimSpace(string(text)))
		if err != nil {
			return fmt.Errorf("srun: the job printed %q", text)
		}
		rates = append(rates, srunLoops*qsubRuns*1000/float64(took))
	}
	b.addAimedRow(fmt.Sprintf("srun, %d loops in a job", srunLoops), rates.Median() >= srunRate,
		fmt.Sprintf("%s%d/s", leastPrefix, srunRate), "%.0f/s", rates.Median())
	return nil
}

// measureSqueue measures squeue of a user with few of very many jobs.
func (b slurmBencher) measureSqueue(about string) error {
	var wall, cpu gauge.DurationSamples
	for range 15 {
		cmd, err := b.command("squeue", "-h", "-o", "%i %t", "-u", otherUser)
		if err != nil {
			return err
		}
		began := time.Now()
		out, err := cmd.CombinedOutput()
		if err != nil {
			return fmt.Errorf("squeue: %w\n%s", err, out)
		}
		if n := strings.Count(string(out), "\n"); n != ownJobs {
			return fmt.Errorf("squeue: %d lines for %d jobs", n, ownJobs)
		}
		wall = append(wall, time.Since(began))
		cpu = append(cpu, cmd.ProcessState.UserTime()+cmd.ProcessState.SystemTime())
	}
	b.addAimedRow(fmt.Sprintf("squeue -u, %d jobs%s", ownJobs, about), wall.Percentile(50) <= squeueTarget,
		squeueTarget.String(), "p50 %v  max %v, CPU %v", wall.Percentile(50), wall.Percentile(100), cpu.Percentile(50))
	return nil
}
