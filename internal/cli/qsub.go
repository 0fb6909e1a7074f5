package cli

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/config"
	"github.com/roost-batch/roost/internal/pbs"
	"github.com/roost-batch/roost/internal/submit"
)

func qsubCommand() *command {
	return &command{
		name: "qsub", group: groupPBS, brief: "submit a PBS script", args: "[options] [SCRIPT | -- COMMAND [ARGUMENT…]]", raw: true, most: -1, do: qsub,
		about: "Submits a script with its #PBS lines, or what stands on standard input, or a command behind --, and prints the id of the job. What the options mean is as OpenPBS has it; roost-pbs(7) tells the differences.",
		examples: []example{
			{"qsub -N sim -l select=1:ncpus=4:mem=8gb -l walltime=2:00:00 sim.sh", "submit a script"},
			{"qsub -J 0-99 -- ./work", "a hundred tasks, told apart by $PBS_ARRAY_INDEX"},
		},
		flags: qsubFlags(),
	}
}

func qsub(c *call) error {
	if c.asksVersion() {
		return nil
	}
	result, err := c.parseQsub()
	var refused *pbs.Error
	if errors.As(err, &refused) {
		fmt.Fprintln(c.stderr, refused.Text)
		return exit(refused.Code)
	}
	if err != nil {
		return c.pbsFail(err)
	}
	c.at = cmp.Or(result.Server, c.at)
	for _, w := range result.Warnings {
		fmt.Fprintln(c.stderr, w)
	}
	var k keyboard
	if result.Interactive {
		if k, err = c.askTerminal(); err != nil {
			return err
		}
	}
	signals, release := c.interrupted(syscall.SIGHUP, syscall.SIGQUIT)
	defer release()
	reply, err := c.submit([]submit.Job{result.Job}, "")
	if err != nil {
		return c.qsubRefused(err)
	}
	id := pbsName(reply.GetIds()[0], result.Job.Array)
	if result.Interactive {
		return c.sitAt(k, id, reply.GetIds()[0], signals)
	}
	if !result.Quiet {
		fmt.Fprintln(c.stdout, id)
	}
	if !result.Block {
		return nil
	}
	return c.block(id, reply.GetIds()[0], signals)
}

func (c *call) parseQsub() (pbs.Result, error) {
	caller, err := c.pbsCaller()
	if err != nil {
		return pbs.Result{}, err
	}
	return pbs.ParseQsub(c.args, caller)
}

// pbsCaller is who runs a command of PBS, and how it reaches the outside world.
func (c *call) pbsCaller() (pbs.Caller, error) {
	opts, err := c.submitOptions()
	if err != nil {
		return pbs.Caller{}, err
	}
	return pbs.Caller{
		Dir: opts.Dir, Home: opts.Home, User: opts.User, Group: ownGroup(), Host: config.HostName(), Server: c.chosen(), Environ: c.env, Now: opts.Now, Look: exec.LookPath, Pool: c.inventory(),
		Dialect: func() roost.Dialect { d, _ := c.dialect(); return d },
		Read:    func(path string) ([]byte, error) { return userFiles{}.Read(path, pbs.MaxScript) },
		Stdin: func() ([]byte, error) {
			if f, ok := c.stdin.(*os.File); ok && screenOf(f).terminal {
				fmt.Fprintln(c.stderr, "Job script will be read from standard input. Submit with CTRL+D.")
			}
			return readBounded(c.stdin, "standard input", pbs.MaxScript)
		},
		IsDir: func(path string) bool {
			info, err := os.Stat(path)
			return err == nil && info.IsDir()
		},
	}, nil
}

// qsubRefused prints why the schedd did not take the job, as PBS would say it.
func (c *call) qsubRefused(err error) error {
	var kind roost.Kind
	if errors.As(fromWire(err), &kind) {
		if refused, ok := pbs.Answer(kind, strings.Join(strings.Fields(message(err)), " ")); ok {
			fmt.Fprintln(c.stderr, refused.Text)
			return exit(refused.Code)
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
