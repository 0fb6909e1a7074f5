package submission

import (
	"cmp"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/cli/jobs"
	"github.com/roost-batch/roost/internal/cli/pbs/pbsframe"
	"github.com/roost-batch/roost/internal/cli/terminal"
	"github.com/roost-batch/roost/internal/slurm/getopt"
	"github.com/roost-batch/roost/internal/slurm/sbatch"
	"github.com/roost-batch/roost/internal/submit/jobspec"
	"github.com/roost-batch/roost/internal/wire/scheddapi"
)

// stepOnly are the options of srun that are about the step, and not about the allocation.
func stepOnly() []string {
	return []string{"output", "error", "input", "label", "unbuffered", "open-mode", "kill-on-bad-exit", "wait",
		"multi-prog", "mpi", "overcommit", "distribution", "quiet", "relative", "cpu-bind"}
}

// RunOutside is srun where it is in no job. It submits a job whose script is the step,
// shows its output, and ends with its exit status.
func RunOutside(c *frame.Invocation, given []getopt.Given, command []string) error {
	refuse := func(text string) error {
		fmt.Fprintf(c.Stderr, "srun: error: %s\n", text)
		return frame.ExitError(1)
	}
	if len(command) == 0 {
		fmt.Fprint(c.Stderr, "srun: fatal: No command given to execute.\n")
		return frame.ExitError(1)
	}
	job, _ := getopt.Last(given, "jobid")
	if job = cmp.Or(job, c.Getenv(allocationVariable)); job != "" {
		return runInJob(c, job, given, command)
	}
	if _, wanted := getopt.Last(given, "pty"); wanted {
		return refuse("--pty is possible in an allocation only: salloc makes one, and qsub -I begins a job on this " +
			"terminal")
	}
	caller, err := pbsframe.NewCaller(c)
	if err != nil {
		return failWith(c, err)
	}
	result, err := sbatch.Parse(allocationArguments(given, command), caller)
	var failure *sbatch.Failure
	if errors.As(err, &failure) {
		fmt.Fprint(c.Stderr, strings.NewReplacer("sbatch: ", "srun: ", "Batch job submission failed",
			"Unable to allocate resources").Replace(failure.Text))
		return frame.ExitError(failure.Status)
	}
	if err != nil {
		return failWith(c, err)
	}
	result.Job.Ad.Delete(roost.AttrOut) // its output comes here
	result.Job.Ad.Delete(roost.AttrErr)
	result.Job.Ad.SetBool(roost.AttrJoinOutput, false)
	signals, release := c.NotifyInterrupts()
	defer release()
	reply, err := jobs.SubmitJobs(c, []jobspec.Job{result.Job}, "", nil)
	if err != nil {
		return submitRefused(c, err)
	}
	return jobs.AttachJob(c, reply.GetIds()[0], signals, true)
}

// runInJob is srun in an allocation from outside: of salloc, or of a job that is named.
// It runs srun on the first machine of the job, with these streams.
func runInJob(c *frame.Invocation, job string, given []getopt.Given, command []string) error {
	number, host, hasHost := strings.Cut(job, ".")
	if job = number + "[0]"; hasHost {
		job += "." + host
	}
	words := []string{"srun"}
	for _, g := range given {
		if g.Name != "jobid" {
			words = append(words, optionWord(g))
		}
	}
	words = append(append(words, "--"), command...)
	_, wantsTerminal := getopt.Last(given, "pty")
	k := terminal.LocalTerminal{}
	if wantsTerminal {
		k = terminal.OpenTerminal(c)
	}
	first := &scheddapi.ShellInput{Task: job, Command: words, Terminal: k.In != nil, Term: c.Getenv("TERM")}
	first.Rows, first.Columns = k.WindowSize()
	return terminal.RunRemoteShell(c, first, k)
}

// optionWord writes an option as one word of a command line.
func optionWord(g getopt.Given) string {
	if g.HasValue {
		return "--" + g.Name + "=" + g.Value
	}
	return "--" + g.Name
}

// allocationArguments is the command line of sbatch for the job of a step.
func allocationArguments(given []getopt.Given, command []string) []string {
	allocation := sbatch.Options()
	step := []string{"exec", "srun"}
	var args []string
	for _, g := range given {
		word := optionWord(g)
		switch {
		case slices.Contains(stepOnly(), g.Name):
			step = append(step, quote(word))
		case slices.ContainsFunc(allocation, func(o getopt.Option) bool { return o.Name == g.Name }):
			args = append(args, word)
		}
	}
	if _, named := getopt.Last(given, "job-name"); !named {
		args = append(args, "--job-name="+path.Base(command[0]))
	}
	step = append(step, "--")
	for _, w := range command {
		step = append(step, quote(w))
	}
	return append(args, "--wrap="+strings.Join(step, " "))
}

// quote makes one word of a shell of a text.
func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
