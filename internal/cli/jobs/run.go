package jobs

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
	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/document"
	"github.com/roost-batch/roost/internal/submit"
	"github.com/roost-batch/roost/internal/wire"
)

// RunCommand returns roost run: run a command in the pool and see its output.
func RunCommand() *frame.Command {
	return &frame.Command{
		Name: "run", Group: frame.GroupRun, Summary: "run a command in the pool and see its output",
		Synopsis: "-- COMMAND [ARGUMENT…]", MinOperands: 1, MaxOperands: -1, OperandName: "a command", FlagsFirst: true,
		Run: runJob,
		Description: "Runs a command on some machine of the pool, in this directory and with this environment, shows " +
			"its output as it comes, and ends with its exit status (128 and the number for a signal). Its standard " +
			"input is empty unless --stdin names a file. Ctrl-C removes the job; a second Ctrl-C leaves at once.",
		Examples: []frame.Example{
			{Line: "roost run -- make test", Description: "run a command"},
			{Line: "roost run --cpus 4 --memory 8GiB --walltime 2h -- ./simulate --steps 1000",
				Description: "ask for resources and a limit"},
		},
		Flags: append(requestFlags(),
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

func requestFromFlags(c *frame.Invocation) submit.JobFlags {
	return submit.JobFlags{
		Name: c.StringFlag("name"), Directory: c.StringFlag("directory"), CPUs: c.StringFlag("cpus"),
		Memory: c.StringFlag("memory"), Disk: c.StringFlag("disk"), GPUs: c.CountFlag("gpus"),
		GPUMemory: c.StringFlag("gpu-memory"), AppClass: c.StringFlag("app-class"),
		Walltime: c.StringFlag("walltime"), Band: c.StringFlag("band"), Priority: c.CountFlag("priority"),
		Group: c.StringFlag("group"), Requirements: c.StringFlag("requirements"),
		Rank: c.StringFlag("rank"), Stdin: c.StringFlag("stdin"), Inputs: c.StringsFlag("input"),
		Outputs: c.StringsFlag("output"), Environment: c.StringsFlag("env"),
		GetEnv: !c.Flag("clean-env"), Retries: c.CountFlag("retries"), DependsOn: c.StringsFlag("after"),
	}
}

func runJob(c *frame.Invocation) error {
	opts, err := c.SubmitOptions()
	if err != nil {
		return err
	}
	job, err := submit.Command(c.Args, requestFromFlags(c), opts)
	if err != nil {
		return err
	}
	signals, release := c.NotifyInterrupts()
	defer release()
	reply, err := SubmitJobs(c, []submit.Job{job}, "")
	if err != nil {
		return err
	}
	if len(reply.GetIds()) != 1 {
		return frame.KindErrorf(roost.Internal, "the schedd took one job and gave %d ids", len(reply.GetIds()))
	}
	id := reply.GetIds()[0]
	if c.Flag("detach") {
		fmt.Fprintln(c.Stdout, id)
		return nil
	}
	return attachJob(c, id, signals)
}

// attachJob shows the output of a job until it has ended, and removes it when the user
// says so.
func attachJob(c *frame.Invocation, id string, signals <-chan os.Signal) error {
	ctx, cancel := context.WithCancel(c.Context)
	defer cancel()
	c.Context = ctx
	var streams sync.WaitGroup
	var failed [2]error
	for i, to := range []io.Writer{c.Stdout, c.Stderr} {
		streams.Go(func() { failed[i] = followOutput(c, &wire.LogsRequest{Id: id, Stderr: i == 1, Follow: true}, to) })
	}
	type outcome struct {
		tally *Progress
		err   error
	}
	ended := make(chan outcome, 1)
	unable := make(chan string, 1)
	go func() {
		t, err := WatchJobs(c, &wire.Selection{Selectors: []string{id}},
			&runProgress{Invocation: c, began: c.Now(), startFailed: unable})
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
			return reportEnd(c, o.tally, asked, errors.Join(failed[:]...))
		case why := <-unable: // it is held; whoever waits here cannot mend it and release it
			fmt.Fprintf(c.Stderr, "roost: %s: %s\n", id, why)
			RemoveInterrupted(c, id)
			return frame.ExitError(127)
		case <-signals:
			if asked {
				fmt.Fprintf(c.Stderr, "\nroost: left; see how it ends with: roost show %s\n", id)
				return frame.ExitError(128 + 2)
			}
			asked = true
			fmt.Fprintf(c.Stderr, "\nroost: removing %s (Ctrl-C again leaves at once)\n", id)
			go RemoveInterrupted(c, id)
		}
	}
}

// RemoveInterrupted asks the schedd to remove the job of a run that was interrupted.
func RemoveInterrupted(c *frame.Invocation, id string) {
	results, err := changeJobs(c, &wire.ActRequest{
		Verb: wire.ActRequest_REMOVE, Selection: &wire.Selection{Selectors: []string{id}}, Reason: "by roost run",
	})
	for _, r := range results {
		if r.GetError() != "" && roost.ErrorKind(r.GetKind()) != roost.Finished {
			fmt.Fprintf(c.Stderr, "roost: %s\n", WithSubject(r.GetId(), r.GetError()))
		}
	}
	if err != nil && c.Context.Err() == nil {
		fmt.Fprintf(c.Stderr, "roost: %s\n", frame.ErrorText(err))
	}
}

// reportEnd says how the job ended, where its exit status does not, and ends with that
// status.
func reportEnd(c *frame.Invocation, t *Progress, interrupted bool, logs error) error {
	if logs != nil {
		fmt.Fprintf(c.Stderr, "roost: the output may not be whole: %s\n", frame.ErrorText(logs))
	}
	s := t.onlyJob()
	if s == nil {
		return frame.KindErrorf(roost.Internal, "the schedd lost sight of the job")
	}
	e := s.GetExit()
	switch {
	case interrupted && document.FailedCount(s) > 0:
		return frame.ExitError(128 + 2)
	case e.GetReason() != "" || e.GetSignal() != 0:
		fmt.Fprintf(c.Stderr, "roost: %s: %s\n", s.GetId(), document.EndText(e))
	case e == nil:
		fmt.Fprintf(c.Stderr, "roost: %s: %s\n", s.GetId(),
			strings.TrimSuffix("removed: "+document.PrintableText(s.GetReason()), ": "))
	}
	if code := document.TaskCode(s); code != 0 {
		return frame.ExitError(code)
	}
	if !c.Flag("quiet") {
		hint(c, s.GetId())
	}
	return nil
}

// runProgress says why nothing happens, when for a while nothing does, and that the job
// could not be started.
type runProgress struct {
	*frame.Invocation
	began       time.Time
	lastReason  string
	startFailed chan<- string // takes one reason
}

const silentWait = 2 * time.Second

func (p *runProgress) update(t *Progress, _ *wire.WatchEvent) {
	s := t.onlyJob()
	if document.StateOf(s) == "held" && s.GetExit().GetCause() == wire.Cause_CAUSE_LAUNCH {
		select {
		case p.startFailed <- document.EndText(s.GetExit()):
		default:
		}
		return
	}
	if s == nil || p.Flag("quiet") || !p.ErrScreen.Terminal || p.Now().Sub(p.began) < silentWait {
		return
	}
	state := document.StateOf(s)
	if !slices.Contains([]string{"idle", "held", "blocked"}, state) || s.GetReason() == "" ||
		s.GetReason() == p.lastReason {
		return
	}
	p.lastReason = s.GetReason()
	fmt.Fprintln(p.Stderr, p.ErrScreen.ColourText(frame.Dim,
		fmt.Sprintf("roost: %s is %s: %s", s.GetId(), state, document.PrintableText(p.lastReason))))
}

func (p *runProgress) end(*Progress) {}

// followOutput copies the output of a task, through restarts of the schedd.
func followOutput(c *frame.Invocation, req *wire.LogsRequest, to io.Writer) error {
	s, err := c.ConnectSchedd()
	if err != nil {
		return err
	}
	return c.Retry(frame.WatchTimeout, func(ctx context.Context, alive func()) error {
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
				return frame.DecodeError(err)
			}
			alive()
			if attempt != 0 && chunk.GetAttempt() != attempt {
				req.Offset = 0
			}
			attempt = chunk.GetAttempt()
			if _, err := to.Write(chunk.GetData()); err != nil {
				return frame.KindErrorf(roost.NoOutput, "write: %v", err)
			}
			req.Offset, req.Tail = req.GetOffset()+int64(len(chunk.GetData())), 0
		}
	})
}
