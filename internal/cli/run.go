package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	ucli "github.com/urfave/cli/v2"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/submit"
	"github.com/roost-batch/roost/internal/wire"
)

func runCommand() *command {
	return &command{
		name: "run", group: groupRun, summary: "run a command in the pool and see its output",
		synopsis: "-- COMMAND [ARGUMENT…]", minOperands: 1, maxOperands: -1, operandName: "a command", flagsFirst: true,
		run: runJob,
		description: "Runs a command on some machine of the pool, in this directory and with this environment, shows " +
			"its output as it comes, and ends with its exit status (128 and the number for a signal). Its standard " +
			"input is empty unless --stdin names a file. Ctrl-C removes the job; a second Ctrl-C leaves at once.",
		examples: []commandExample{
			{"roost run -- make test", "run a command"},
			{"roost run --cpus 4 --memory 8GiB --walltime 2h -- ./simulate --steps 1000",
				"ask for resources and a limit"},
		},
		flags: append(requestFlags(),
			&ucli.BoolFlag{Name: "detach", Usage: "print the id and do not wait; the output is kept for roost logs"},
			&ucli.BoolFlag{Name: "quiet", Aliases: []string{"q"}, Usage: "print nothing but the job's own output"},
		),
	}
}

// requestFlags say what a job is to get.
func requestFlags() []ucli.Flag {
	return []ucli.Flag{
		&ucli.StringFlag{Name: "name", Aliases: []string{"N"}, Usage: "the job's `NAME`"},
		&ucli.StringFlag{Name: "cpus", Aliases: []string{"c"}, Usage: "so many cores `N`, as in 4 or 0.5"},
		&ucli.StringFlag{Name: "memory", Aliases: []string{"m"}, Usage: "so much memory `SIZE`, as in 4GiB"},
		&ucli.StringFlag{Name: "disk", Usage: "so much disk `SIZE`, as in 20GiB"},
		&ucli.IntFlag{Name: "gpus", Aliases: []string{"g"}, Usage: "so many GPUs `N`"},
		&ucli.StringFlag{Name: "gpu-memory",
			Usage: "so much memory `SIZE` of each GPU, as in 10GiB; others may share the rest"},
		&ucli.StringFlag{Name: "app-class", Usage: "the `CLASS` of work: batch, or stream for what must start at once"},
		&ucli.StringFlag{Name: "walltime", Aliases: []string{"t"},
			Usage: "end the job after this `TIME`, as in 90m or 01:30:00"},
		&ucli.StringFlag{Name: "band", Usage: "the priority `BAND`: free, batch, production or monitoring"},
		&ucli.IntFlag{Name: "priority", Aliases: []string{"p"},
			Usage: "order among your own jobs, `N` from -1024 to 1023"},
		&ucli.StringFlag{Name: "group", Usage: "charge this accounting `GROUP`"},
		&ucli.StringFlag{Name: "requirements", Usage: "run only on machines that satisfy the ClassAd `EXPR`"},
		&ucli.StringFlag{Name: "rank", Usage: "prefer machines for which the ClassAd `EXPR` is high"},
		&ucli.StringFlag{Name: "directory", Aliases: []string{"C"}, Usage: "run in this `DIR`"},
		&ucli.StringFlag{Name: "stdin", Usage: "read standard input from this `FILE`"},
		&ucli.StringSliceFlag{Name: "input", Usage: "a `FILE` that the job needs; may be repeated"},
		&ucli.StringSliceFlag{Name: "output", Usage: "a `FILE` that it makes; may be repeated"},
		&ucli.StringSliceFlag{Name: "env", Aliases: []string{"e"},
			Usage: "set a variable of its environment, as `NAME=VALUE`; may be repeated"},
		&ucli.BoolFlag{Name: "clean-env", Usage: "do not take this environment along"},
		&ucli.IntFlag{Name: "retries", Usage: "run it again, at most `N` times, if it fails"},
		&ucli.StringSliceFlag{Name: "after",
			Usage: "start after this `JOB` has succeeded, or as afterany:JOB; may be repeated"},
	}
}

func (c *invocation) requestFromFlags() submit.JobFlags {
	return submit.JobFlags{
		Name: c.stringFlag("name"), Directory: c.stringFlag("directory"), CPUs: c.stringFlag("cpus"),
		Memory: c.stringFlag("memory"), Disk: c.stringFlag("disk"), GPUs: c.countFlag("gpus"),
		GPUMemory: c.stringFlag("gpu-memory"), AppClass: c.stringFlag("app-class"),
		Walltime: c.stringFlag("walltime"), Band: c.stringFlag("band"), Priority: c.countFlag("priority"),
		Group: c.stringFlag("group"), Requirements: c.stringFlag("requirements"),
		Rank: c.stringFlag("rank"), Stdin: c.stringFlag("stdin"), Inputs: c.stringsFlag("input"),
		Outputs: c.stringsFlag("output"), Environment: c.stringsFlag("env"),
		GetEnv: !c.flag("clean-env"), Retries: c.countFlag("retries"), DependsOn: c.stringsFlag("after"),
	}
}

func runJob(c *invocation) error {
	opts, err := c.submitOptions()
	if err != nil {
		return err
	}
	job, err := submit.Command(c.args, c.requestFromFlags(), opts)
	if err != nil {
		return err
	}
	signals, release := c.notifyInterrupts()
	defer release()
	reply, err := c.submitJobs([]submit.Job{job}, "")
	if err != nil {
		return err
	}
	if len(reply.GetIds()) != 1 {
		return kindErrorf(roost.Internal, "the schedd took one job and gave %d ids", len(reply.GetIds()))
	}
	id := reply.GetIds()[0]
	if c.flag("detach") {
		fmt.Fprintln(c.stdout, id)
		return nil
	}
	return c.attachJob(id, signals)
}

// attachJob shows the output of a job until it has ended, and removes it when the user
// says so.
func (c *invocation) attachJob(id string, signals <-chan os.Signal) error {
	ctx, cancel := context.WithCancel(c.ctx)
	defer cancel()
	c.ctx = ctx
	var streams sync.WaitGroup
	var failed [2]error
	for i, to := range []io.Writer{c.stdout, c.stderr} {
		streams.Go(func() { failed[i] = c.followOutput(&wire.LogsRequest{Id: id, Stderr: i == 1, Follow: true}, to) })
	}
	type outcome struct {
		tally *jobProgress
		err   error
	}
	ended := make(chan outcome, 1)
	unable := make(chan string, 1)
	go func() {
		t, err := c.watchJobs(&wire.Selection{Selectors: []string{id}},
			&runProgress{invocation: c, began: c.now(), startFailed: unable})
		ended <- outcome{t, err}
	}()
	asked := false
	for {
		select {
		case o := <-ended:
			if o.err != nil {
				return o.err
			}
			streams.Wait()
			return c.reportEnd(o.tally, asked, errors.Join(failed[:]...))
		case why := <-unable: // it is held; whoever waits here cannot mend it and release it
			fmt.Fprintf(c.stderr, "roost: %s: %s\n", id, why)
			c.removeInterrupted(id)
			return exitError(127)
		case <-signals:
			if asked {
				fmt.Fprintf(c.stderr, "\nroost: left; see how it ends with: roost show %s\n", id)
				return exitError(128 + 2)
			}
			asked = true
			fmt.Fprintf(c.stderr, "\nroost: removing %s (Ctrl-C again leaves at once)\n", id)
			go c.removeInterrupted(id)
		}
	}
}

// removeInterrupted asks the schedd to remove the job of a run that was interrupted.
func (c *invocation) removeInterrupted(id string) {
	results, err := c.changeJobs(&wire.ActRequest{
		Verb: wire.ActRequest_REMOVE, Selection: &wire.Selection{Selectors: []string{id}}, Reason: "by roost run",
	})
	for _, r := range results {
		if r.GetError() != "" && roost.ErrorKind(r.GetKind()) != roost.Finished {
			fmt.Fprintf(c.stderr, "roost: %s\n", withSubject(r.GetId(), r.GetError()))
		}
	}
	if err != nil && c.ctx.Err() == nil {
		fmt.Fprintf(c.stderr, "roost: %s\n", errorText(err))
	}
}

// reportEnd says how the job ended, where its exit status does not, and ends with that
// status.
func (c *invocation) reportEnd(t *jobProgress, interrupted bool, logs error) error {
	if logs != nil {
		fmt.Fprintf(c.stderr, "roost: the output may not be whole: %s\n", errorText(logs))
	}
	s := t.onlyJob()
	if s == nil {
		return kindErrorf(roost.Internal, "the schedd lost sight of the job")
	}
	e := s.GetExit()
	switch {
	case interrupted && failedCount(s) > 0:
		return exitError(128 + 2)
	case e.GetReason() != "" || e.GetSignal() != 0:
		fmt.Fprintf(c.stderr, "roost: %s: %s\n", s.GetId(), endText(e))
	case e == nil:
		fmt.Fprintf(c.stderr, "roost: %s: %s\n", s.GetId(),
			strings.TrimSuffix("removed: "+printableText(s.GetReason()), ": "))
	}
	if code := taskCode(s); code != 0 {
		return exitError(code)
	}
	if !c.flag("quiet") {
		c.hint(s.GetId())
	}
	return nil
}

// runProgress says why nothing happens, when for a while nothing does, and that the job
// could not be started.
type runProgress struct {
	*invocation
	began       time.Time
	lastReason  string
	startFailed chan<- string // takes one reason
}

const silentWait = 2 * time.Second

func (p *runProgress) update(t *jobProgress, _ *wire.WatchEvent) {
	s := t.onlyJob()
	if stateOf(s) == "held" && s.GetExit().GetCause() == wire.Cause_CAUSE_LAUNCH {
		select {
		case p.startFailed <- endText(s.GetExit()):
		default:
		}
		return
	}
	if s == nil || p.flag("quiet") || !p.err.terminal || p.now().Sub(p.began) < silentWait {
		return
	}
	state := stateOf(s)
	if !slices.Contains([]string{"idle", "held", "blocked"}, state) || s.GetReason() == "" ||
		s.GetReason() == p.lastReason {
		return
	}
	p.lastReason = s.GetReason()
	fmt.Fprintln(p.stderr, p.err.colourText(dim,
		fmt.Sprintf("roost: %s is %s: %s", s.GetId(), state, printableText(p.lastReason))))
}

func (p *runProgress) end(*jobProgress) {}

// followOutput copies the output of a task, through restarts of the schedd.
func (c *invocation) followOutput(req *wire.LogsRequest, to io.Writer) error {
	s, err := c.connectSchedd()
	if err != nil {
		return err
	}
	return c.retry(watchTimeout, func(ctx context.Context, alive func()) error {
		stream, err := s.Logs(ctx, req)
		if err != nil {
			return err
		}
		attempt := uint32(0)
		for {
			chunk, err := stream.Recv()
			if err == io.EOF {
				return nil
			}
			if err != nil {
				return decodeError(err)
			}
			alive()
			if attempt != 0 && chunk.GetAttempt() != attempt {
				req.Offset = 0
			}
			attempt = chunk.GetAttempt()
			if _, err := to.Write(chunk.GetData()); err != nil {
				return kindErrorf(roost.NoOutput, "write: %v", err)
			}
			req.Offset, req.Tail = req.GetOffset()+int64(len(chunk.GetData())), 0
		}
	})
}
