package jobs

import (
	"errors"
	"io"
	"math"
	"strings"
	"time"

	ucli "github.com/urfave/cli/v2"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/outputfile"
	"github.com/roost-batch/roost/internal/wire/scheddapi"
)

// LogsCommand returns roost logs: show what a task has written.
func LogsCommand() *frame.Command {
	return &frame.Command{
		Name: "logs", Group: frame.GroupSee, Summary: "show what a task has written", Synopsis: "JOB", MinOperands: 1,
		MaxOperands: 1, OperandName: "a job or task", Run: showLogs,
		Description: "Shows the standard output of a task, whether it still runs or has ended, and wherever the " +
			"job sends it. A job of several tasks needs the task, as in 123[7] or last[7].\n\n" +
			"Times are those of the machine on which the task ran. They are exact to a second, or to a hundredth of " +
			"their age, and not known of output that the job sends to a file.",
		Examples: []frame.Example{
			{Line: "roost logs -f last", Description: "follow the output of your newest job until it ends"},
			{Line: "roost logs --previous 123[3]",
				Description: "what a task of a service wrote before it was started again"},
			{Line: "roost logs --stderr --tail 4K 123[7]",
				Description: "the end of what a task wrote to standard error"},
			{Line: "roost logs --since 10m --timestamps @web", Description: "the last ten minutes, with times"},
		},
		Flags: []ucli.Flag{
			&ucli.BoolFlag{Name: "follow", Aliases: []string{"f"}, Usage: "go on until the task has ended"},
			&ucli.BoolFlag{Name: "stderr", Aliases: []string{"e"}, Usage: "standard error instead of standard output"},
			&ucli.StringFlag{Name: "tail", Usage: "only the last `SIZE`, as in 4K"},
			&ucli.IntFlag{Name: "attempt", Usage: "what attempt `N` wrote, instead of the last one"},
			&ucli.BoolFlag{Name: "previous", Aliases: []string{"p"},
				Usage: "what the attempt before the last one wrote"},
			&ucli.StringFlag{Name: "since",
				Usage: "only what was written since: a `TIME` ago as in 10m, or a date as in 2026-03-01T14:30"},
			&ucli.StringFlag{Name: "until", Usage: "only what was written until a `TIME`, as for --since"},
			&ucli.BoolFlag{Name: "timestamps", Usage: "print when each line was written before it"},
			&ucli.BoolFlag{Name: "json", Usage: "print a line of JSON for each line; roost-json(7) describes it"},
		},
	}
}

func showLogs(c *frame.Invocation) error {
	id, err := logsTarget(c, c.Args[0])
	if err != nil {
		return err
	}
	req := &scheddapi.LogsRequest{Id: id, Stderr: c.Flag("stderr"), Follow: c.Flag("follow")}
	if text := c.StringFlag("tail"); text != "" {
		tail, err := roost.ParseBytes(text)
		if err != nil {
			return frame.UsageErrorf("--tail: %v", err)
		}
		req.Tail = int64(tail)
	}
	if c.IsFlagSet("attempt") {
		n := c.CountFlag("attempt")
		if n < 1 || n > math.MaxInt32 {
			return frame.UsageErrorf("--attempt: %d is no attempt; they are numbered from 1", n)
		}
		req.Attempt = uint32(n)
	}
	if req.Previous = c.Flag("previous"); req.GetPrevious() && req.GetAttempt() != 0 {
		return frame.UsageErrorf("--attempt and --previous contradict each other")
	}
	if err := addLogTimes(c, req); err != nil {
		return err
	}
	switch {
	case c.WantsJSON():
		lines := jsonLines{to: c.Stdout, stderr: req.GetStderr()}
		return errors.Join(followChunks(c, req, lines.print), lines.flush())
	case c.Flag("timestamps"):
		return followChunks(c, req, (&stampedLines{to: c.Stdout}).print)
	}
	return followChunks(c, req, func(chunk *scheddapi.LogChunk) error {
		if chunk.GetWrittenMs() == 0 && outputfile.SelectsByTime(req) && len(chunk.GetData()) > 0 {
			return frame.KindErrorf(roost.Conflict, "this schedd has an older version, which has no times of output; "+
				"leave out --since and --until")
		}
		_, err := c.Stdout.Write(chunk.GetData())
		return err
	})
}

// WriteLog writes what a task has written to its standard output.
func WriteLog(c *frame.Invocation, id string, to io.Writer) error {
	return followChunks(c, &scheddapi.LogsRequest{Id: id}, func(chunk *scheddapi.LogChunk) error {
		_, err := to.Write(chunk.GetData())
		return err
	})
}

// addLogTimes reads the flags about times.
func addLogTimes(c *frame.Invocation, req *scheddapi.LogsRequest) error {
	since, err := c.PastTimeFlag("since")
	if err != nil {
		return err
	}
	until, err := c.PastTimeFlag("until")
	if err != nil {
		return err
	}
	req.Times = c.Flag("timestamps") || c.WantsJSON()
	if !since.IsZero() {
		req.SinceMs = since.UnixMilli()
	}
	if until.IsZero() {
		return nil
	}
	if req.UntilMs = until.UnixMilli(); req.GetFollow() {
		return frame.UsageErrorf("--until and --follow contradict each other: what is written from now on is later")
	}
	if req.GetUntilMs() < req.GetSinceMs() {
		return frame.UsageErrorf("--until: %s is before --since, %s; exchange them", until.Format(time.RFC3339),
			since.Format(time.RFC3339))
	}
	return nil
}

// logsTarget returns the id of the job or task whose output is wanted. Of several jobs of
// a name that is the one that has not ended, or else the newest.
func logsTarget(c *frame.Invocation, selector string) (string, error) {
	id, err := ResolveSelector(c, selector)
	if err == nil || !strings.HasPrefix(selector, "@") {
		return id, err
	}
	newest, nerr := newestEnded(c, selector)
	if nerr != nil || newest == nil {
		return "", err
	}
	return newest.GetId(), nil
}
