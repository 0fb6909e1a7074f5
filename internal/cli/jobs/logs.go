package jobs

import (
	"math"
	"strings"

	ucli "github.com/urfave/cli/v2"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/wire/scheddapi"
)

// LogsCommand returns roost logs: show what a task has written.
func LogsCommand() *frame.Command {
	return &frame.Command{
		Name: "logs", Group: frame.GroupSee, Summary: "show what a task has written", Synopsis: "JOB", MinOperands: 1,
		MaxOperands: 1, OperandName: "a job or task", Run: showLogs,
		Description: "Shows the standard output of a task, whether it still runs or has ended, and wherever the job " +
			"sends it. A job of several tasks needs the task, as in 123[7] or last[7].",
		Examples: []frame.Example{
			{Line: "roost logs -f last", Description: "follow the output of your newest job until it ends"},
			{Line: "roost logs --previous 123[3]",
				Description: "what a task of a service wrote before it was started again"},
			{Line: "roost logs --stderr --tail 4K 123[7]",
				Description: "the end of what a task wrote to standard error"},
		},
		Flags: []ucli.Flag{
			&ucli.BoolFlag{Name: "follow", Aliases: []string{"f"}, Usage: "go on until the task has ended"},
			&ucli.BoolFlag{Name: "stderr", Aliases: []string{"e"}, Usage: "standard error instead of standard output"},
			&ucli.StringFlag{Name: "tail", Usage: "only the last `SIZE`, as in 4K"},
			&ucli.IntFlag{Name: "attempt", Usage: "what attempt `N` wrote, instead of the last one"},
			&ucli.BoolFlag{Name: "previous", Aliases: []string{"p"},
				Usage: "what the attempt before the last one wrote"},
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
	return followOutput(c, req, c.Stdout)
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
