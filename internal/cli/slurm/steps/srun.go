package steps

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/slurm/getopt"
	"github.com/roost-batch/roost/internal/slurm/step"
	"github.com/roost-batch/roost/internal/slurm/stepgroup"
	"github.com/roost-batch/roost/internal/slurm/steptable"
)

// usageStatus is the exit status for a command line that cannot be read.
const usageStatus = 255

// runSrun is srun.
func runSrun(c *frame.Invocation, outside Outside) error {
	table := getopt.Table{Options: srunOptions(), StopAtOperand: true}
	given, command, err := table.Parse(c.Args)
	if err != nil {
		fmt.Fprint(c.Stderr, getopt.Message("srun", err))
		return frame.ExitError(usageStatus)
	}
	has := func(name string) bool { _, ok := getopt.Last(given, name); return ok }
	mpi, _ := getopt.Last(given, "mpi")
	switch {
	case has("version"):
		fmt.Fprintln(c.Stdout, slurmVersion)
		return nil
	case has("help"), has("usage"):
		return printSrunHelp(c)
	case mpi == "list":
		fmt.Fprint(c.Stdout, "MPI plugin types are...\n\tnone\n\tpmi1\n\tpmi2\n")
		return nil
	case slices.Contains(command, ":"):
		return refuse(c, "heterogeneous steps (\":\") are not there: run one step after the other, or beside it with &")
	}
	if why := findRefused(given); why != "" {
		return refuse(c, why)
	}
	if has("test-only") || !isInAllocation(c) {
		return outside(c, given, command)
	}
	return runInside(c, given, command)
}

// slurmVersion is the version of Slurm whose commands these are like.
const slurmVersion = "slurm 24.11.5"

func refuse(c *frame.Invocation, why string) error {
	fmt.Fprintf(c.Stderr, "srun: error: %s\n", why)
	return frame.ExitError(1)
}

func printSrunHelp(c *frame.Invocation) error {
	var words []string
	for _, o := range srunOptions() {
		word := "--" + o.Name
		if o.Letter != 0 {
			word = "-" + string(o.Letter) + ", " + word
		}
		words = append(words, word)
	}
	slices.SortFunc(words, func(a, b string) int {
		return strings.Compare(strings.TrimLeft(a, "-"), strings.TrimLeft(b, "-"))
	})
	fmt.Fprintf(c.Stdout, "Usage: srun [OPTIONS...] executable [args...]\n\n%s\n\nsrun(1) says what they mean here.\n",
		strings.Join(words, "\n"))
	return nil
}

// runInside runs a step of the job that this runs in.
func runInside(c *frame.Invocation, given []getopt.Given, command []string) error {
	options, err := readStepOptions(c, given, command)
	if err != nil {
		return refuse(c, err.Error())
	}
	if len(command) == 0 {
		fmt.Fprint(c.Stderr, "srun: fatal: No command given to execute.\n")
		return frame.ExitError(1)
	}
	job, err := readAllocation(c)
	if err != nil {
		return refuse(c, err.Error())
	}
	if id, ok := getopt.Last(given, "jobid"); ok && id != job.id {
		return refuse(c, fmt.Sprintf("this runs in job %s, and a step of job %s can be started on the submit node only",
			job.id, id))
	}
	p := &stepPlan{c: c, options: options, job: job}
	release, err := p.prepare()
	if err != nil {
		return p.refuseStep(err)
	}
	defer release()
	if options.isMulti {
		if p.programs, err = readPrograms(c.AbsolutePath(command[0]), p.placement.Size); err != nil {
			return refuse(c, err.Error())
		}
	}
	if options.pty && p.placement.Size == 1 {
		return p.become()
	}
	return p.run()
}

// prepare chooses the machines of the step and takes its processors. The caller releases
// them.
func (p *stepPlan) prepare() (release func(), err error) {
	claim, err := p.acquire()
	if err != nil {
		return nil, err
	}
	release = func() {}
	if claim != nil {
		release = func() { _ = claim.Release() } // it ends with this process in any case
		p.number, p.claim = claim.Number, claim
	}
	if w := p.placement.Warning; w != "" && !p.options.quiet {
		p.say("warning: %s\n", w)
	}
	return release, nil
}

// acquire chooses the machines of the step, and waits until its processors are free.
func (p *stepPlan) acquire() (*steptable.Claim, error) {
	place := func(used []int) ([]int, error) {
		placement, err := step.Place(p.job.machines, used, p.options.request)
		if errors.Is(err, step.ErrBusy) {
			if p.options.immediate {
				return nil, err
			}
			return nil, steptable.ErrBusy
		}
		if err != nil {
			return nil, err
		}
		p.placement = placement
		if p.options.request.Overlap {
			return nil, nil
		}
		taken := make([]int, len(p.job.machines))
		for i, m := range placement.Machines {
			taken[m] = len(placement.Tasks[i]) * placement.CPUsPerTask
		}
		return taken, nil
	}
	if _, err := os.Stat(p.job.table); err != nil { // of a node of the release before
		_, err := place(make([]int, len(p.job.machines)))
		return nil, err
	}
	signals, release := catchSignals()
	defer release()
	done, over := make(chan struct{}), make(chan struct{})
	defer close(over)
	go func() {
		select {
		case <-signals:
			close(done)
		case <-over:
		}
	}()
	waited := false
	claim, err := steptable.Acquire(p.job.table, len(p.job.machines), place, func() {
		waited = true
		if !p.options.quiet {
			p.say("Job %s step creation temporarily disabled, retrying "+
				"(Requested nodes are busy)\n", p.job.id)
		}
	}, done)
	if waited && err == nil && !p.options.quiet {
		p.say("Step created for StepId=%s.%d\n", p.job.id, claim.Number)
	}
	return claim, err
}

// refuseStep says why there is no step.
func (p *stepPlan) refuseStep(err error) error {
	if errors.Is(err, steptable.ErrInterrupted) {
		p.say("error: Unable to create step for job %s: Job/step already completing "+
			"or completed\n", p.job.id)
		return frame.ExitError(1)
	}
	p.say("error: Unable to create step for job %s: %v\n", p.job.id, err)
	return frame.ExitError(1)
}

// become makes this process the task of the step: it has the terminal then.
func (p *stepPlan) become() error {
	g := p.groups()[0]
	t := g.Tasks[0]
	if m := p.job.machines[p.placement.Machines[0]]; len(p.job.machines) > 1 && m.Name != p.c.Getenv("ROOST_NODE") {
		return refuse(p.c, "--pty is possible on the machine of the call only: "+p.c.Getenv("ROOST_NODE"))
	}
	if err := os.Chdir(g.Directory); err != nil {
		return refuse(p.c, err.Error())
	}
	r := &stepRun{stepPlan: p}
	r.begin() // it ends with the job, or is replaced by the next line of a log
	environment := append(slices.Clone(g.Environment), t.Environment...)
	path, err := stepgroup.FindProgram(t.Command[0], environment, g.Directory)
	if err == nil {
		err = syscall.Exec(path, t.Command, environment)
	}
	p.say("error: %s: task 0: %v\n", p.job.machines[0].Name, err)
	return frame.ExitError(2)
}

// catchSignals has the signals that a step passes on come to a channel.
func catchSignals() (<-chan os.Signal, func()) {
	c := make(chan os.Signal, 16)
	signal.Notify(c, syscall.SIGINT, syscall.SIGTERM, syscall.SIGQUIT, syscall.SIGHUP, syscall.SIGUSR1, syscall.SIGUSR2)
	return c, func() { signal.Stop(c) }
}

// machineVariables are those of an environment that are about the machine of a task.
func machineVariables(environment []string) (list []string) {
	for _, v := range environment {
		name, _, _ := strings.Cut(v, "=")
		if strings.HasPrefix(name, "ROOST_") || strings.HasPrefix(name, "PBS_") || name == "TMPDIR" ||
			name == "CUDA_VISIBLE_DEVICES" || name == "NVIDIA_VISIBLE_DEVICES" || name == "SLURM_JOB_GPUS" ||
			name == "SLURM_GPUS_ON_NODE" {
			list = append(list, v)
		}
	}
	return list
}
