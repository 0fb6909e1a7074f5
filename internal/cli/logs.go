package cli

import (
	ucli "github.com/urfave/cli/v2"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/wire"
)

func logsCommand() *command {
	return &command{
		name: "logs", group: groupSee, summary: "show what a task has written", synopsis: "JOB", minOperands: 1,
		maxOperands: 1, operandName: "a job or task", run: showLogs,
		description: "Shows the standard output of a task, whether it still runs or has ended, and wherever the job " +
			"sends it. A job of several tasks needs the task, as in 123[7] or last[7].",
		examples: []commandExample{
			{"roost logs -f last", "follow the output of your newest job until it ends"},
			{"roost logs --stderr --tail 4K 123[7]", "the end of what a task wrote to standard error"},
		},
		flags: []ucli.Flag{
			&ucli.BoolFlag{Name: "follow", Aliases: []string{"f"}, Usage: "go on until the task has ended"},
			&ucli.BoolFlag{Name: "stderr", Aliases: []string{"e"}, Usage: "standard error instead of standard output"},
			&ucli.StringFlag{Name: "tail", Usage: "only the last `SIZE`, as in 4K"},
		},
	}
}

func showLogs(c *invocation) error {
	id, err := c.resolveSelector(c.args[0])
	if err != nil {
		return err
	}
	req := &wire.LogsRequest{Id: id, Stderr: c.flag("stderr"), Follow: c.flag("follow")}
	if text := c.stringFlag("tail"); text != "" {
		tail, err := roost.ParseBytes(text)
		if err != nil {
			return usageErrorf("--tail: %v", err)
		}
		req.Tail = int64(tail)
	}
	return c.followOutput(req, c.stdout)
}
