package pbs

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"strconv"
	"strings"
	"syscall"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/cli/jobs"
	"github.com/roost-batch/roost/internal/cli/terminal"
	"github.com/roost-batch/roost/internal/config"
	"github.com/roost-batch/roost/internal/pbs/qsub"
	"github.com/roost-batch/roost/internal/submit"
)

func qsubCommand() *frame.Command {
	return &frame.Command{
		Name: "qsub", Group: frame.GroupPBS, Summary: "submit a PBS script",
		Synopsis: "[options] [SCRIPT | -- COMMAND [ARGUMENT…]]", RawArgs: true, MaxOperands: -1, Run: runQsub,
		Description: "Submits a script with its #PBS lines, or what stands on standard input, or a command behind " +
			"--, and prints the id of the job. What the options mean is as OpenPBS has it; roost-pbs(7) tells the " +
			"differences.",
		Examples: []frame.Example{
			{Line: "qsub -N sim -l select=1:ncpus=4:mem=8gb -l walltime=2:00:00 sim.sh",
				Description: "submit a script"},
			{Line: "qsub -J 0-99 -- ./work", Description: "a hundred tasks, told apart by $PBS_ARRAY_INDEX"},
		},
		Flags: qsubFlags(),
	}
}

func runQsub(c *frame.Invocation) error {
	if answersVersion(c) {
		return nil
	}
	result, err := parseQsub(c)
	var refused *qsub.RefusalError
	if errors.As(err, &refused) {
		fmt.Fprintln(c.Stderr, refused.Text)
		return frame.ExitError(refused.ExitStatus)
	}
	if err != nil {
		return pbsFail(c, err)
	}
	c.ScheddNode = cmp.Or(result.Server, c.ScheddNode)
	for _, w := range result.Warnings {
		fmt.Fprintln(c.Stderr, w)
	}
	var k terminal.LocalTerminal
	if result.Interactive {
		if k, err = askTerminal(c); err != nil {
			return err
		}
	}
	signals, release := c.NotifyInterrupts(syscall.SIGHUP, syscall.SIGQUIT)
	defer release()
	reply, err := jobs.SubmitJobs(c, []submit.Job{result.Job}, "")
	if err != nil {
		return qsubRefused(c, err)
	}
	id := pbsName(reply.GetIds()[0], result.Job.Array)
	if result.Interactive {
		return attachTerminal(c, k, id, reply.GetIds()[0], signals)
	}
	if !result.Quiet {
		fmt.Fprintln(c.Stdout, id)
	}
	if !result.Block {
		return nil
	}
	return awaitBlocked(c, id, reply.GetIds()[0], signals)
}

func parseQsub(c *frame.Invocation) (qsub.QsubResult, error) {
	caller, err := pbsCaller(c)
	if err != nil {
		return qsub.QsubResult{}, err
	}
	return qsub.ParseQsub(c.Args, caller)
}

// pbsCaller is who runs a command of PBS, and how it reaches the outside world.
func pbsCaller(c *frame.Invocation) (qsub.QsubCaller, error) {
	opts, err := c.SubmitOptions()
	if err != nil {
		return qsub.QsubCaller{}, err
	}
	return qsub.QsubCaller{
		Dir: opts.Dir, Home: opts.Home, User: opts.User, Group: primaryGroup(), Host: config.HostName(),
		Server: c.DefaultServer(), Environ: c.Env, Now: opts.Now, LookPath: exec.LookPath,
		Inventory: newPoolInventory(c),
		Dialect:   func() roost.PBSDialect { d, _ := dialect(c); return d },
		Read:      func(path string) ([]byte, error) { return frame.UserFiles{}.Read(path, qsub.MaxScript) },
		Stdin: func() ([]byte, error) {
			if f, ok := c.Stdin.(*os.File); ok && frame.ScreenOf(f).Terminal {
				fmt.Fprintln(c.Stderr, "Job script will be read from standard input. Submit with CTRL+D.")
			}
			return frame.ReadLimited(c.Stdin, "standard input", qsub.MaxScript)
		},
		IsDir: func(path string) bool {
			info, err := os.Stat(path)
			return err == nil && info.IsDir()
		},
	}, nil
}

// qsubRefused prints why the schedd did not take the job, as PBS would say it.
func qsubRefused(c *frame.Invocation, err error) error {
	var kind roost.ErrorKind
	if errors.As(frame.DecodeError(err), &kind) {
		if refused, ok := qsub.RefusalFor(kind, strings.Join(strings.Fields(frame.ErrorText(err)), " ")); ok {
			fmt.Fprintln(c.Stderr, refused.Text)
			return frame.ExitError(refused.ExitStatus)
		}
	}
	return pbsFail(c, err)
}

// pbsName is the id of a job as PBS writes it: "123[].host" for an array.
func pbsName(id string, array bool) string {
	if !array {
		return id
	}
	for i := range id {
		if id[i] == '[' {
			return id
		}
		if id[i] == '.' {
			return id[:i] + "[]" + id[i:]
		}
	}
	return id + "[]"
}

// primaryGroup is the name of the user's own group.
func primaryGroup() string {
	if g, err := user.LookupGroupId(strconv.Itoa(os.Getgid())); err == nil {
		return g.Name
	}
	return strconv.Itoa(os.Getgid())
}
