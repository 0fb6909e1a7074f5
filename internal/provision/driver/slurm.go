package driver

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/provision/plan"
	"github.com/roost-batch/roost/internal/slurm/hostlist"
)

// slurm is a cluster of Slurm (sbatch(1), squeue(1), scancel(1) of Slurm 20.11 and
// later).
type slurm struct {
	Shell
	options []string
}

// exportedVariables are what a job gets of the submitter's environment. With
// --export=NONE Slurm asks for a login environment on the node, where that may fail and
// hold the job.
const exportedVariables = "HOME,USER,LOGNAME,SHELL,PATH,LANG"

func (s slurm) Submit(ctx context.Context, job Job) (string, error) {
	args := []string{"sbatch", "--parsable", "--job-name=" + job.Key, "--nodes=" + strconv.Itoa(job.Nodes),
		"--ntasks=" + strconv.Itoa(job.Nodes), "--ntasks-per-node=1",
		"--time=" + strconv.Itoa(int((job.Walltime+time.Minute-1)/time.Minute)),
		fmt.Sprintf("--signal=B:TERM@%d", int(job.Margin.Seconds())), "--no-requeue", "--export=" + exportedVariables,
		"--output=" + job.Output}
	args = append(args, slurmSize(job.Node)...)
	if len(job.Exclude) > 0 {
		args = append(args, "--exclude="+strings.Join(job.Exclude, ","))
	}
	if job.IsHeld {
		args = append(args, "--hold")
	}
	args = append(args, s.options...)
	out, err := s.Run(ctx, "sbatch", withInput(quoteAll(args), job.Script))
	if err != nil {
		return "", submitError(err)
	}
	id, _, _ := strings.Cut(lastLine(out), ";") // the cluster's name follows
	return checkID(id)
}

// slurmSize asks for nodes of a size, or for whole nodes where that is not known.
func slurmSize(r roost.Resources) (args []string) {
	if r.CPU == 0 {
		args = append(args, "--exclusive")
	} else {
		args = append(args, "--cpus-per-task="+strconv.FormatInt(int64(r.CPU+999)/1000, 10))
	}
	if r.Memory > 0 {
		args = append(args, fmt.Sprintf("--mem=%dM", (r.Memory+roost.MiB-1)/roost.MiB))
	}
	if r.GPUs > 0 {
		args = append(args, "--gres=gpu:"+strconv.Itoa(r.GPUs))
	}
	return args
}

// slurmFormat is what squeue prints of a job: id, state, time used, nodes, reason.
const slurmFormat = "%i|%T|%M|%N|%r"

func (s slurm) Status(ctx context.Context, ids []string) (map[string]plan.OuterStatus, error) {
	out, err := s.Run(ctx, "squeue", "squeue -h -t all -o "+Quote(slurmFormat)+" -j "+Quote(strings.Join(ids, ","))+
		" </dev/null")
	var failed *ExitError
	if errors.As(err, &failed) && strings.Contains(failed.Text, "Invalid job id") {
		return map[string]plan.OuterStatus{}, nil // a single id that it has forgotten; several are no error
	}
	if err != nil {
		return nil, err
	}
	answers := map[string]plan.OuterStatus{}
	for _, line := range strings.Split(out, "\n") {
		f := strings.SplitN(strings.TrimSpace(line), "|", 5)
		if len(f) < 5 {
			continue
		}
		status := plan.OuterStatus{ID: f[0], State: slurmState(f[1]), Text: f[1]}
		if f[4] != "" && f[4] != "None" {
			status.Text += " (" + f[4] + ")"
		}
		if status.State != plan.OuterQueued {
			status.Started = sinceElapsed(slurmElapsed(f[2]))
			if hosts, err := hostlist.Expand(f[3]); err == nil {
				status.Hosts = hosts
			}
		}
		answers[f[0]] = status
	}
	return answers, nil
}

func slurmState(word string) plan.OuterState {
	switch word {
	case "PENDING", "CONFIGURING", "REQUEUED", "REQUEUE_FED", "REQUEUE_HOLD", "SPECIAL_EXIT", "RESV_DEL_HOLD":
		return plan.OuterQueued
	case "RUNNING", "COMPLETING", "SUSPENDED", "STOPPED", "RESIZING", "SIGNALING", "STAGE_OUT":
		return plan.OuterRunning
	}
	return plan.OuterEnded
}

// slurmElapsed reads a time such as "1-02:03:04" or "2:03".
func slurmElapsed(text string) time.Duration {
	days, clock, found := strings.Cut(text, "-")
	if !found {
		days, clock = "0", text
	}
	n, err := strconv.Atoi(days)
	if err != nil {
		return 0
	}
	d := time.Duration(0)
	for _, part := range strings.Split(clock, ":") {
		v, err := strconv.Atoi(part)
		if err != nil {
			return 0
		}
		d = d*60 + time.Duration(v)
	}
	return time.Duration(n)*24*time.Hour + d*time.Second
}

func (s slurm) Cancel(ctx context.Context, ids []string) error {
	_, err := s.Run(ctx, "scancel", "scancel "+quoteAll(ids)+" </dev/null")
	var failed *ExitError
	if errors.As(err, &failed) && strings.Contains(failed.Text, "Invalid job id") {
		return nil
	}
	return err
}

func (s slurm) Find(ctx context.Context, key string) (string, error) {
	out, err := s.Run(ctx, "squeue", `squeue -h -t all -o '%i|%j' -u "$(id -un)" -n `+Quote(key)+" </dev/null")
	if err != nil {
		return "", err
	}
	for _, line := range strings.Split(out, "\n") {
		if id, name, _ := strings.Cut(strings.TrimSpace(line), "|"); name == key {
			return checkID(id)
		}
	}
	return "", nil
}

func (s slurm) CanHold() bool { return true }
