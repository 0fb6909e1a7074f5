package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"

	ucli "github.com/urfave/cli/v2"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/config"
	"github.com/roost-batch/roost/internal/pbs"
	"github.com/roost-batch/roost/internal/submit"
	"github.com/roost-batch/roost/internal/wire"
)

func short(letter, value, words string) ucli.Flag {
	if value == "" {
		return &ucli.BoolFlag{Name: letter, Usage: words}
	}
	return &ucli.StringFlag{Name: letter, Usage: "`" + value + "`: " + words}
}

func qsubCommand() *command {
	return &command{
		name: "qsub", group: groupPBS, brief: "submit a PBS script", args: "[options] [SCRIPT | -- COMMAND [ARGUMENT…]]", raw: true, most: -1, do: qsub,
		about: "Submits a script with its #PBS lines, or what stands on standard input, or a command behind --, and prints the id of the job. What the options mean is as OpenPBS has it; roost-pbs(7) tells the differences.",
		examples: []example{
			{"qsub -N sim -l select=1:ncpus=4:mem=8gb -l walltime=2:00:00 sim.sh", "submit a script"},
			{"qsub -J 0-99 -- ./work", "a hundred tasks, told apart by $PBS_ARRAY_INDEX"},
		},
		flags: []ucli.Flag{
			short("A", "ACCOUNT", "charge this accounting group"),
			short("a", "TIME", "start not before [[[[CC]YY]MM]DD]hhmm[.SS]"),
			short("C", "PREFIX", "what begins a line of directives, instead of #PBS"),
			short("c", "WHEN", "when to checkpoint: n (never), s (when it has to leave its machine), c or w (from time to time), c=MINUTES or w=MINUTES, u (as usual)"),
			short("e", "PATH", "where standard error goes"),
			short("h", "", "hold the job until qrls"),
			short("J", "X-Y[:Z][%N]", "make an array with these indexes, of which at most N tasks run at once"),
			short("j", "oe|eo|n", "join standard output and standard error"),
			short("k", "o|e|oe|d|n", "keep output where the job runs, or (d) write it in place"),
			short("l", "RESOURCE=VALUE", "ask for resources: select=, ncpus=, mem=, ngpus=, gpu_mem=, walltime=, nodes=, app_class="),
			short("M", "USERS", "taken and not used: no mail is sent"),
			short("m", "POINTS", "taken and not used: no mail is sent"),
			short("N", "NAME", "the name of the job"),
			short("o", "PATH", "where standard output goes"),
			short("P", "PROJECT", "the project"),
			short("p", "PRIORITY", "order among your own jobs, from -1024 to 1023"),
			short("q", "QUEUE@NODE", "the queue, or @NODE, or both: the node in whose queue the job goes, where you are logged in"),
			short("R", "o|e|oe", "remove output files when the job succeeded"),
			short("r", "y|n", "whether the job may be run again"),
			short("S", "SHELL", "the shell that runs the script"),
			short("u", "USER", "taken if it is you"),
			short("V", "", "take the whole environment along"),
			short("v", "NAME[=VALUE],…", "set variables of the job's environment"),
			short("W", "KEY=VALUE", "more attributes: depend=, block=true, umask=, …"),
			short("z", "", "do not print the id"),
		},
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
	if result.Queue != "" {
		result.Job.Ad.SetString(roost.AttrQueue, result.Queue)
	}
	signals, release := c.interrupted()
	defer release()
	reply, err := c.submit([]submit.Job{result.Job}, "")
	if err != nil {
		return c.pbsFail(err)
	}
	id := pbsName(reply.GetIds()[0], result.Job.Array)
	if !result.Quiet {
		fmt.Fprintln(c.stdout, id)
	}
	if !result.Block {
		return nil
	}
	return c.block(id, reply.GetIds()[0], signals)
}

func (c *call) parseQsub() (pbs.Result, error) {
	opts, err := c.submitOptions()
	if err != nil {
		return pbs.Result{}, err
	}
	return pbs.ParseQsub(c.args, pbs.Caller{
		Dir: opts.Dir, Home: opts.Home, User: opts.User, Host: config.HostName(), Environ: c.env, Now: opts.Now, Look: exec.LookPath,
		Read: func(path string) ([]byte, error) { return userFiles{}.Read(path, roost.MaxAdBytes) },
		Stdin: func() ([]byte, error) {
			if f, ok := c.stdin.(*os.File); ok && screenOf(f).terminal {
				fmt.Fprintln(c.stderr, "Job script will be read from standard input. Submit with CTRL+D.")
			}
			return readBounded(c.stdin, "standard input", roost.MaxAdBytes)
		},
		IsDir: func(path string) bool {
			info, err := os.Stat(path)
			return err == nil && info.IsDir()
		},
	})
}

// block waits as -W block=true asks: the status is the job's, and 3 if it never ran.
func (c *call) block(id, plain string, signals <-chan os.Signal) error {
	ctx, cancel := context.WithCancel(c.ctx)
	defer cancel()
	c.ctx = ctx
	type outcome struct {
		tally *tally
		err   error
	}
	ended := make(chan outcome, 1)
	go func() {
		t, err := c.watch(&wire.Selection{Selectors: []string{plain}}, noProgress{})
		ended <- outcome{t, err}
	}()
	select {
	case s := <-signals:
		fmt.Fprintf(c.stderr, "qsub: wait for job %s interrupted by signal %d\n", id, signalNumber(s))
		return exit(2)
	case o := <-ended:
		if o.err != nil {
			return c.pbsFail(o.err)
		}
		if s := o.tally.only(); s != nil && s.GetExit() == nil {
			fmt.Fprintf(c.stderr, "qsub: Job %s deleted before running\n", id)
			return exit(3)
		}
		if code := o.tally.code(); code != 0 {
			return exit(code)
		}
		return nil
	}
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
