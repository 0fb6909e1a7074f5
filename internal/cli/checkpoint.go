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
		name: "checkpoint", group: groupChange, brief: "save the work of running tasks now", args: "JOB…", least: 1, most: -1, wants: "a job", do: checkpoint,
		about: "Takes a checkpoint of running tasks, waits until it is kept, and says how large it is and for how long the task stood still. The task runs on. Should its machine be lost, it goes on from there. " + selectors,
		examples: []example{
			{"roost checkpoint 123", "save the work of a job"},
			{"roost checkpoint --no-wait all", "ask for it, for everything of yours that runs"},
		},
		flags: append(selectionFlags(), &ucli.BoolFlag{Name: "no-wait", Usage: "do not wait until it is taken"}, jsonFlag()),
	}
}

func suspendCommand() *command {
	return &command{
		name: "suspend", group: groupChange, brief: "freeze running tasks where they are", args: "JOB…", least: 1, most: -1, wants: "a job", do: verb(wire.ActRequest_SUSPEND, "suspended"),
		about: "Freezes running tasks at once. They keep their machine and their memory, and their walltime stands still, until they are resumed. " + selectors,
		examples: []example{
			{"roost suspend 123", "freeze a job"},
			{"roost suspend --reason 'disk is full' @sweep", "freeze all your jobs of that name, and say why"},
		},
		flags: append(selectionFlags(), yesFlag(), &ucli.StringFlag{Name: "reason", Usage: "a `TEXT` that is kept with the job"}, jsonFlag()),
	}
}

func resumeCommand() *command {
	return &command{
		name: "resume", group: groupChange, brief: "let suspended tasks run on, or lend your machine again", args: "[JOB…]", most: -1, wants: "a job", do: resume,
		about: "With jobs: thaws tasks that were suspended. " + selectors + " Without: ends the pause of this machine (roost pause), or accepts that it is lent at all, as whoever sits at it may.",
		examples: []example{
			{"roost resume 123", "let a job run on"},
			{"roost resume all", "everything of yours that is suspended"},
			{"roost resume", "lend this machine again"},
		},
		flags: append(selectionFlags(), yesFlag(), jsonFlag()),
	}
}

func resume(c *call) error {
	if len(c.args) > 0 {
		return verb(wire.ActRequest_RESUME, "resumed")(c)
	}
	if c.given("constraint") || c.given("state") || c.given("yes") {
		return advise(usage("a job is missing"), cureUsage(c.cmd, nil))
	}
	return resumeMachine(c)
}

// checkpoint asks for checkpoints and waits for the nodes' answers, which are events of the jobs.
func checkpoint(c *call) error {
	sel, err := c.selection()
	if err != nil {
		return err
	}
	since := c.now().UnixNano()
	results, err := c.change(&wire.ActRequest{Verb: wire.ActRequest_CHECKPOINT, Selection: sel})
	if err != nil {
		return err
	}
	if c.flag("no-wait") {
		return c.report(results, "to be checkpointed")
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

// answerPoll is how often the log of a job is looked at for the answers.
const answerPoll = 200 * time.Millisecond

// awaitCheckpoints waits until each of the tasks that were asked has answered, or has ended.
func (c *call) awaitCheckpoints(r *wire.ActReply_Result, since int64) ([]*wire.JobEvent, error) {
	for {
		events, _, err := c.events(r.GetId(), 0)
		if err != nil {
			return nil, err
		}
		var answers []*wire.JobEvent
		told := map[string]bool{}
		for _, e := range events {
			answer := e.GetWhat() == "checkpointed" || e.GetWhat() == "checkpoint-failed" || e.GetExit() != nil || e.GetWhat() == "lost"
			if answer && e.GetTime() >= since && !told[e.GetId()] {
				told[e.GetId()] = true
				answers = append(answers, e)
			}
		}
		if len(answers) >= int(r.GetTasks()) {
			return answers, nil
		}
		select {
		case <-c.ctx.Done():
			return nil, c.ctx.Err()
		case <-time.After(answerPoll):
		}
	}
}

// reportCheckpoints prints the answers. The exit status is that of a refusal, or 1 when a checkpoint could not be taken.
func (c *call) reportCheckpoints(answers []*wire.JobEvent, refused []*wire.ActReply_Result, asked int) error {
	code := 0
	if c.json() {
		records := make([]eventRecord, len(answers))
		for i, e := range answers {
			records[i] = eventOf(e)
		}
		if err := printJSON(c.stdout, document{"checkpoints": records}); err != nil {
			return err
		}
	}
	for _, e := range answers {
		text := printable(e.GetText())
		if e.GetWhat() != "checkpointed" {
			code = 1
			if e.GetWhat() != "checkpoint-failed" {
				text = "it ended before: " + text
			}
			text = "no checkpoint: " + text
		}
		if !c.json() {
			fmt.Fprintf(c.stdout, "%s: %s\n", e.GetId(), text)
		}
	}
	for _, r := range refused {
		fmt.Fprintf(c.stderr, "%s %s\n", c.err.paint(red, "roost:"), within(r.GetId(), r.GetError()))
		code = roost.Kind(r.GetKind()).ExitCode()
	}
	if asked == 0 {
		fmt.Fprintln(c.stderr, "no jobs match")
		code = roost.NotFound.ExitCode()
	}
	if code != 0 {
		return exit(code)
	}
	return nil
}
