package cli

import (
	"fmt"
	"time"

	ucli "github.com/urfave/cli/v2"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/wire"
)

func checkpointCommand() *command {
	return &command{
		name: "checkpoint", group: groupChange, summary: "save the work of running tasks now", synopsis: "JOB…",
		minOperands: 1, maxOperands: -1, operandName: "a job", run: requestCheckpoints,
		description: "Takes a checkpoint of running tasks, waits until it is kept, and says how large it is and for " +
			"how long the task stood still. The task runs on. Should its machine be lost, it goes on from there. " +
			selectors,
		examples: []commandExample{
			{"roost checkpoint 123", "save the work of a job"},
			{"roost checkpoint --no-wait all", "ask for it, for everything of yours that runs"},
		},
		flags: append(selectionFlags(), &ucli.BoolFlag{Name: "no-wait", Usage: "do not wait until it is taken"},
			jsonFlag()),
	}
}

func suspendCommand() *command {
	return &command{
		name: "suspend", group: groupChange, summary: "freeze running tasks where they are", synopsis: "JOB…",
		minOperands: 1, maxOperands: -1, operandName: "a job", run: verbAction(wire.ActRequest_SUSPEND, "suspended"),
		description: "Freezes running tasks at once. They keep their machine and their memory, and their walltime " +
			"stands still, until they are resumed. " + selectors,
		examples: []commandExample{
			{"roost suspend 123", "freeze a job"},
			{"roost suspend --reason 'disk is full' @sweep", "freeze all your jobs of that name, and say why"},
		},
		flags: append(selectionFlags(), yesFlag(),
			&ucli.StringFlag{Name: "reason", Usage: "a `TEXT` that is kept with the job"}, jsonFlag()),
	}
}

func resumeCommand() *command {
	return &command{
		name: "resume", group: groupChange, summary: "let suspended tasks run on, or lend your machine again",
		synopsis: "[JOB…]", maxOperands: -1, operandName: "a job", run: resumeTasks,
		description: "With jobs: thaws tasks that were suspended. " + selectors +
			" Without: ends the pause of this machine (roost pause), or accepts that it is lent at all, as whoever " +
			"sits at it may.",
		examples: []commandExample{
			{"roost resume 123", "let a job run on"},
			{"roost resume all", "everything of yours that is suspended"},
			{"roost resume", "lend this machine again"},
		},
		flags: append(selectionFlags(), yesFlag(), jsonFlag()),
	}
}

func resumeTasks(c *invocation) error {
	if len(c.args) > 0 {
		return verbAction(wire.ActRequest_RESUME, "resumed")(c)
	}
	if c.isFlagSet("constraint") || c.isFlagSet("state") || c.isFlagSet("yes") {
		return withHint(usageErrorf("a job is missing"), suggestUsage(c.cmd, nil))
	}
	return resumeMachine(c)
}

// requestCheckpoints asks for checkpoints and waits for the nodes' answers, which are
// events of the jobs.
func requestCheckpoints(c *invocation) error {
	sel, err := c.selection()
	if err != nil {
		return err
	}
	since := c.now().UnixNano()
	results, err := c.changeJobs(&wire.ActRequest{Verb: wire.ActRequest_CHECKPOINT, Selection: sel})
	if err != nil {
		return err
	}
	if c.flag("no-wait") {
		return c.reportChanges(results, "to be checkpointed")
	}
	var answers []*wire.JobEvent
	var refused []*wire.ActReply_Result
	for _, r := range results {
		if r.GetError() != "" {
			refused = append(refused, r)
			continue
		}
		found, err := c.awaitCheckpoints(r, since)
		if err != nil {
			return err
		}
		answers = append(answers, found...)
	}
	return c.reportCheckpoints(answers, refused, len(results))
}

// answerPollInterval is how often the log of a job is looked at for the answers.
const answerPollInterval = 200 * time.Millisecond

// awaitCheckpoints waits until each of the tasks that were asked has answered, or has
// ended.
func (c *invocation) awaitCheckpoints(r *wire.ActReply_Result, since int64) ([]*wire.JobEvent, error) {
	for {
		events, _, err := c.events(r.GetId(), 0)
		if err != nil {
			return nil, err
		}
		var answers []*wire.JobEvent
		reported := map[string]bool{}
		for _, e := range events {
			answer := e.GetWhat() == "checkpointed" || e.GetWhat() == "checkpoint-failed" || e.GetExit() != nil ||
				e.GetWhat() == "lost"
			if answer && e.GetTime() >= since && !reported[e.GetId()] {
				reported[e.GetId()] = true
				answers = append(answers, e)
			}
		}
		if len(answers) >= int(r.GetTasks()) {
			return answers, nil
		}
		select {
		case <-c.ctx.Done():
			return nil, c.ctx.Err()
		case <-time.After(answerPollInterval):
		}
	}
}

// reportCheckpoints prints the answers. The exit status is that of a refusal, or 1 when a
// checkpoint could not be taken.
func (c *invocation) reportCheckpoints(answers []*wire.JobEvent, refused []*wire.ActReply_Result, asked int) error {
	code := 0
	if c.wantsJSON() {
		records := make([]eventRecord, len(answers))
		for i, e := range answers {
			records[i] = eventRecordOf(e)
		}
		if err := printJSON(c.stdout, jsonDocument{"checkpoints": records}); err != nil {
			return err
		}
	}
	for _, e := range answers {
		text := printableText(e.GetText())
		if e.GetWhat() != "checkpointed" {
			code = 1
			if e.GetWhat() != "checkpoint-failed" {
				text = "it ended before: " + text
			}
			text = "no checkpoint: " + text
		}
		if !c.wantsJSON() {
			fmt.Fprintf(c.stdout, "%s: %s\n", e.GetId(), text)
		}
	}
	for _, r := range refused {
		fmt.Fprintf(c.stderr, "%s %s\n", c.err.colourText(red, "roost:"), withSubject(r.GetId(), r.GetError()))
		code = roost.ErrorKind(r.GetKind()).ExitCode()
	}
	if asked == 0 {
		fmt.Fprintln(c.stderr, "no jobs match")
		code = roost.NotFound.ExitCode()
	}
	if code != 0 {
		return exitError(code)
	}
	return nil
}
