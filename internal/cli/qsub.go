package cli

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
	"github.com/roost-batch/roost/internal/config"
	"github.com/roost-batch/roost/internal/pbs/qsub"
	"github.com/roost-batch/roost/internal/submit"
)

func qsubCommand() *command {
	return &command{
		name: "qsub", group: groupPBS, summary: "submit a PBS script",
		synopsis: "[options] [SCRIPT | -- COMMAND [ARGUMENT…]]", rawArgs: true, maxOperands: -1, run: runQsub,
		description: "Submits a script with its #PBS lines, or what stands on standard input, or a command behind " +
			"--, and prints the id of the job. What the options mean is as OpenPBS has it; roost-pbs(7) tells the " +
			"differences.",
		examples: []commandExample{
			{"qsub -N sim -l select=1:ncpus=4:mem=8gb -l walltime=2:00:00 sim.sh", "submit a script"},
			{"qsub -J 0-99 -- ./work", "a hundred tasks, told apart by $PBS_ARRAY_INDEX"},
		},
		flags: qsubFlags(),
	}
}

func runQsub(c *invocation) error {
	if c.answersVersion() {
		return nil
	}
	result, err := c.parseQsub()
	var refused *qsub.RefusalError
	if errors.As(err, &refused) {
		fmt.Fprintln(c.stderr, refused.Text)
		return exitError(refused.ExitStatus)
	}
	if err != nil {
		return c.pbsFail(err)
	}
	c.scheddNode = cmp.Or(result.Server, c.scheddNode)
	for _, w := range result.Warnings {
		fmt.Fprintln(c.stderr, w)
	}
	var k localTerminal
	if result.Interactive {
		if k, err = c.askTerminal(); err != nil {
			return err
		}
	}
	signals, release := c.notifyInterrupts(syscall.SIGHUP, syscall.SIGQUIT)
	defer release()
	reply, err := c.submitJobs([]submit.Job{result.Job}, "")
	if err != nil {
		return c.qsubRefused(err)
	}
	id := pbsName(reply.GetIds()[0], result.Job.Array)
	if result.Interactive {
		return c.attachTerminal(k, id, reply.GetIds()[0], signals)
	}
	if !result.Quiet {
		fmt.Fprintln(c.stdout, id)
	}
	if !result.Block {
		return nil
	}
	return c.awaitBlocked(id, reply.GetIds()[0], signals)
}

func (c *invocation) parseQsub() (qsub.QsubResult, error) {
	caller, err := c.pbsCaller()
	if err != nil {
		return qsub.QsubResult{}, err
	}
	return qsub.ParseQsub(c.args, caller)
}

// pbsCaller is who runs a command of PBS, and how it reaches the outside world.
func (c *invocation) pbsCaller() (qsub.QsubCaller, error) {
	opts, err := c.submitOptions()
	if err != nil {
		return qsub.QsubCaller{}, err
	}
	return qsub.QsubCaller{
		Dir: opts.Dir, Home: opts.Home, User: opts.User, Group: primaryGroup(), Host: config.HostName(),
		Server: c.defaultServer(), Environ: c.env, Now: opts.Now, LookPath: exec.LookPath,
		Inventory: c.newPoolInventory(),
		Dialect:   func() roost.PBSDialect { d, _ := c.dialect(); return d },
		Read:      func(path string) ([]byte, error) { return userFiles{}.Read(path, qsub.MaxScript) },
		Stdin: func() ([]byte, error) {
			if f, ok := c.stdin.(*os.File); ok && screenOf(f).terminal {
				fmt.Fprintln(c.stderr, "Job script will be read from standard input. Submit with CTRL+D.")
			}
			return readLimited(c.stdin, "standard input", qsub.MaxScript)
		},
		IsDir: func(path string) bool {
			info, err := os.Stat(path)
			return err == nil && info.IsDir()
		},
	}, nil
}

// qsubRefused prints why the schedd did not take the job, as PBS would say it.
func (c *invocation) qsubRefused(err error) error {
	var kind roost.ErrorKind
	if errors.As(decodeError(err), &kind) {
		if refused, ok := qsub.RefusalFor(kind, strings.Join(strings.Fields(errorText(err)), " ")); ok {
			fmt.Fprintln(c.stderr, refused.Text)
			return exitError(refused.ExitStatus)
		}
	}
	return c.pbsFail(err)
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
