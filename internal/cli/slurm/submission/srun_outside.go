package submission

import (
	"cmp"
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
	"github.com/roost-batch/roost/internal/slurm/records"
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
	if _, isTest := getopt.Last(given, "test-only"); isTest {
		return c.ExecSibling(frame.SimulatorProgram)
	}
	if len(command) == 0 {
		fmt.Fprint(c.Stderr, "srun: fatal: No command given to execute.\n")
		return frame.ExitError(1)
	}
	job, _ := getopt.Last(given, "jobid")
	if job = cmp.Or(job, c.Getenv(allocationVariable)); job != "" {
		return runInJob(c, job, given, command)
	}
	if _, wantsTerminal := getopt.Last(given, "pty"); wantsTerminal || streamsInput(c, given) {
		return runWithStreams(c, given, command)
	}
	caller, err := pbsframe.NewCaller(c)
	if err != nil {
		return failWith(c, err)
	}
	result, err := sbatch.Parse(allocationArguments(given, command), caller)
	if err != nil {
		return parseRefused(c, err)
	}
	markStepsOnly(&result)
	result.Job.Ad.Delete(roost.AttrOut) // its output comes here
	result.Job.Ad.Delete(roost.AttrErr)
	result.Job.Ad.SetBool(roost.AttrJoinOutput, false)
	signals, release := c.NotifyInterrupts()
	defer release()
	reply, err := jobs.SubmitJobs(c, []jobspec.Job{result.Job}, "", nil)
	if err != nil {
		return submitRefused(c, &result, err)
	}
	return jobs.AttachJob(c, reply.GetIds()[0], signals, true)
}

// markStepsOnly notes that a job has no script of its user's.
func markStepsOnly(result *sbatch.Result) {
	if record, ok := result.Job.Ad.Sub(roost.AttrSlurm); ok {
		record.SetBool(records.RecordStepsOnly, true)
	}
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
	step := []string{"exec", "srun"}
	for _, g := range given {
		if slices.Contains(stepOnly(), g.Name) {
			step = append(step, quote(optionWord(g)))
		}
	}
	step = append(step, "--")
	for _, w := range command {
		step = append(step, quote(w))
	}
	return append(jobArguments(given, command), "--wrap="+strings.Join(step, " "))
}

// jobArguments are the options about the allocation.
func jobArguments(given []getopt.Given, command []string) (args []string) {
	allocation := sbatch.Options()
	for _, g := range given {
		if !slices.Contains(stepOnly(), g.Name) && slices.ContainsFunc(allocation, func(o getopt.Option) bool {
			return o.Name == g.Name
		}) {
			args = append(args, optionWord(g))
		}
	}
	if _, named := getopt.Last(given, "job-name"); !named {
		args = append(args, "--job-name="+path.Base(command[0]))
	}
	return args
}

// quote makes one word of a shell of a text.
func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
