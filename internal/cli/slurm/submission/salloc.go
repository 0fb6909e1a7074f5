package submission

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/cli/jobs"
	"github.com/roost-batch/roost/internal/cli/pbs/pbsframe"
	"github.com/roost-batch/roost/internal/cli/slurm/cluster"
	"github.com/roost-batch/roost/internal/document"
	"github.com/roost-batch/roost/internal/slurm/hostlist"
	"github.com/roost-batch/roost/internal/slurm/records"
	"github.com/roost-batch/roost/internal/slurm/sbatch"
	"github.com/roost-batch/roost/internal/submit/jobspec"
	"github.com/roost-batch/roost/internal/wire/scheddapi"
)

// allocationVariable has the id of the job of salloc, for srun in its command.
const allocationVariable = "ROOST_ALLOCATION"

// holder is the script of a job of salloc: it waits until the job is cancelled.
const holder = "exec sleep infinity"

func sallocCommand() *frame.Command {
	return &frame.Command{
		Name: "salloc", Group: frame.GroupSlurm, Summary: "run a command here while machines are allocated",
		Synopsis: "[OPTION…] [COMMAND [ARGUMENT…]]", RawArgs: true, MaxOperands: -1, Run: runSalloc,
		Description: "Waits for an allocation with the options of sbatch, runs a command on this machine, or a " +
			"shell, and gives the allocation back when that has ended. srun in it runs tasks in the allocation.",
		Examples: []frame.Example{
			{Line: "salloc -N 2 -t 30", Description: "a shell with two machines for half an hour"},
			{Line: "salloc -n 4 srun ./program", Description: "a command, and its tasks"},
		},
		Flags: sallocFlags(),
	}
}

func runSalloc(c *frame.Invocation) error {
	caller, err := pbsframe.NewCaller(c)
	if err != nil {
		return failWith(c, err)
	}
	line, keepsJob := takeNoShell(c.Args)
	given, command, err := sbatch.ParseOptions(line)
	if err == nil && sbatch.Asks(given, "version") {
		fmt.Fprintln(c.Stdout, slurmVersion)
		return nil
	}
	if err == nil && sbatch.Asks(given, "help") {
		c.PrintHelp(c.Stdout, c.Command)
		return nil
	}
	var result sbatch.Result
	if err == nil {
		result, err = sbatch.Parse(append(line[:len(line)-len(command):len(line)-len(command)], "--job-name="+
			cmp.Or(sbatch.Value(given, "job-name"), "interactive"), "--wrap="+holder), caller)
	}
	var failure *sbatch.Failure
	if errors.As(err, &failure) {
		fmt.Fprint(c.Stderr, strings.NewReplacer("sbatch: ", "salloc: ", "\"sbatch ", "\"salloc ",
			"Batch job submission failed", "Job submit/allocate failed").Replace(failure.Text))
		return exitWith(c, failure.Status)
	}
	if err != nil {
		return failWith(c, err)
	}
	markStepsOnly(&result)
	result.Job.Ad.SetString(roost.AttrOut, os.DevNull)
	if err := cluster.Choose(c, c.Command.Name, result.Cluster); err != nil {
		return exitWith(c, 1)
	}
	signals, release := c.NotifyInterrupts()
	defer release()
	reply, err := jobs.SubmitJobs(c, []jobspec.Job{result.Job}, "", nil)
	if err != nil {
		return submitRefused(c, &result, err)
	}
	a := &allocation{c: c, id: reply.GetIds()[0], quiet: result.Quiet}
	a.number, _, _ = strings.Cut(a.id, ".")
	if err := a.await(signals); err != nil {
		a.relinquish()
		return err
	}
	release()
	if keepsJob {
		return nil
	}
	defer a.relinquish()
	if len(command) == 0 {
		command = []string{cmp.Or(c.Getenv("SHELL"), "/bin/sh")}
	}
	return a.run(command, result)
}

// allocation is the job of salloc.
type allocation struct {
	c          *frame.Invocation
	id, number string
	hosts      []string
	quiet      bool
}

func (a *allocation) say(format string, args ...any) {
	if !a.quiet {
		fmt.Fprintf(a.c.Stderr, a.c.Command.Name+": "+format+"\n", args...)
	}
}

// pollInterval is how often the job is looked at until it runs.
const pollInterval = 50 * time.Millisecond

// quietWait is how long salloc waits without a word: an allocation that is there at once
// was never pending.
const quietWait = 2 * time.Second

// takeNoShell takes --no-shell off the options of salloc: the allocation is left to
// others, who name it with srun --jobid.
func takeNoShell(args []string) (rest []string, found bool) {
	for i, word := range args {
		if word == "--" || !strings.HasPrefix(word, "-") && (i == 0 || !strings.HasPrefix(args[i-1], "-")) {
			break
		}
		if word == "--no-shell" {
			return append(args[:i:i], args[i+1:]...), true
		}
	}
	return args, false
}

// await waits until the job runs.
func (a *allocation) await(signals <-chan os.Signal) error {
	reported, began := false, a.c.Now()
	for {
		list, err := a.c.QueryJobs(&scheddapi.QueryRequest{Selection: &scheddapi.Selection{Selectors: []string{a.id}},
			History: true, Ads: true, Attributes: records.Attributes()})
		if err != nil {
			return failWith(a.c, err)
		}
		if len(list) > 0 {
			switch document.StateOf(list[0]) {
			case roost.Running.String():
				a.hosts = records.NewJob(list[0]).Hosts()
				if reported {
					a.say("job %s has been allocated resources", a.number)
				}
				if a.c.Command.Name == "salloc" {
					a.say("Granted job allocation %s", a.number)
					a.say("Nodes %s are ready for job", hostlist.Compress(a.hosts))
				}
				return nil
			case roost.Completed.String(), roost.Removed.String():
				a.say("error: Job allocation %s has been revoked", a.number)
				return frame.ExitError(1)
			}
		}
		if !reported && a.c.Now().Sub(began) > quietWait {
			reported = true
			if a.c.Command.Name == "salloc" {
				a.say("Pending job allocation %s", a.number)
			}
			a.say("job %s queued and waiting for resources", a.number)
		}
		select {
		case <-signals:
			a.say("Job allocation %s has been revoked.", a.number)
			return frame.ExitError(1)
		case <-time.After(pollInterval):
		}
	}
}

// run runs the command with the variables of the job, and returns its exit status.
func (a *allocation) run(command []string, result sbatch.Result) error {
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = a.c.Stdin, a.c.Stdout, a.c.Stderr
	list := hostlist.Compress(a.hosts)
	cmd.Env = append(append([]string(nil), a.c.Env...), allocationVariable+"="+a.id, "SLURM_JOB_ID="+a.number,
		"SLURM_JOBID="+a.number, "SLURM_JOB_NODELIST="+list, "SLURM_NODELIST="+list)
	entries, _ := result.Job.Ad.Strings(roost.AttrEnvironment)
	for _, v := range entries {
		name, value, _ := strings.Cut(v, "=")
		if sbatch.IsAllocationVariable(name) && !strings.Contains(value, "$(") {
			cmd.Env = append(cmd.Env, name+"="+strings.ReplaceAll(value, "$$", "$"))
		}
	}
	signal.Ignore(syscall.SIGINT, syscall.SIGQUIT) // they are for the command
	defer signal.Reset(syscall.SIGINT, syscall.SIGQUIT)
	err := cmd.Run()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &exit):
		status := exit.Sys().(syscall.WaitStatus)
		if status.Signaled() {
			return frame.ExitError(128 + int(status.Signal()))
		}
		return frame.ExitError(status.ExitStatus())
	}
	if errors.Is(err, exec.ErrNotFound) {
		fmt.Fprintf(a.c.Stderr, "salloc: error: _fork_command: Unable to find command %q\n", command[0])
		return frame.ExitError(1)
	}
	fmt.Fprintf(a.c.Stderr, "salloc: error: Unable to exec command %q: %v\n", command[0], err)
	return frame.ExitError(1)
}

// relinquish gives the allocation back.
func (a *allocation) relinquish() {
	a.say("Relinquishing job allocation %s", a.number)
	a.cancel("salloc has ended")
}

// cancel removes the job.
func (a *allocation) cancel(reason string) {
	r := &cancellation{c: a.c}
	r.act(&scheddapi.ActRequest{Verb: scheddapi.ActRequest_REMOVE, Reason: reason}, []string{a.id})
}
