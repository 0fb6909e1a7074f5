package jobs

import (
	"fmt"
	"slices"
	"time"

	ucli "github.com/urfave/cli/v2"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/document"
	"github.com/roost-batch/roost/internal/wire/scheddapi"
)

// CheckpointCommand returns roost checkpoint: save the work of running tasks now.
func CheckpointCommand() *frame.Command {
	return &frame.Command{
		Name: "checkpoint", Group: frame.GroupChange, Summary: "save the work of running tasks now", Synopsis: "JOB…",
		MinOperands: 1, MaxOperands: -1, OperandName: "a job", Run: requestCheckpoints,
		Description: "Takes a checkpoint of running tasks, waits until it is kept, and says how large it is and for " +
			"how long the task stood still. The task runs on. Should its machine be lost, it goes on from there. " +
			selectors,
		Examples: []frame.Example{
			{Line: "roost checkpoint 123", Description: "save the work of a job"},
			{Line: "roost checkpoint --no-wait all", Description: "ask for it, for everything of yours that runs"},
		},
		Flags: append(selectionFlags(), &ucli.BoolFlag{Name: "no-wait", Usage: "do not wait until it is taken"},
			frame.JSONFlag()),
	}
}

// SuspendCommand returns roost suspend: freeze running tasks where they are.
func SuspendCommand() *frame.Command {
	return &frame.Command{
		Name: "suspend", Group: frame.GroupChange, Summary: "freeze running tasks where they are", Synopsis: "JOB…",
		MinOperands: 1, MaxOperands: -1, OperandName: "a job", Run: verbAction(scheddapi.ActRequest_SUSPEND,
			"suspended"),
		Description: "Freezes running tasks at once. They keep their machine and their memory, and their walltime " +
			"stands still, until they are resumed. " + selectors,
		Examples: []frame.Example{
			{Line: "roost suspend 123", Description: "freeze a job"},
			{Line: "roost suspend --reason 'disk is full' @sweep",
				Description: "freeze all your jobs of that name, and say why"},
		},
		Flags: append(selectionFlags(), yesFlag(),
			&ucli.StringFlag{Name: "reason", Usage: "a `TEXT` that is kept with the job"}, frame.JSONFlag()),
	}
}

// ResumeCommand returns roost resume: let suspended tasks run on, or lend your machine
// again, which resumeMachine does.
func ResumeCommand(resumeMachine func(*frame.Invocation) error) *frame.Command {
	return &frame.Command{
		Name: "resume", Group: frame.GroupChange, Summary: "let suspended tasks run on, or lend your machine again",
		Synopsis: "[JOB…]", MaxOperands: -1, OperandName: "a job",
		Run: func(c *frame.Invocation) error { return resumeTasks(c, resumeMachine) },
		Description: "With jobs: thaws tasks that were suspended. " + selectors +
			" Without: ends the pause of this machine (roost pause), or accepts that it is lent at all, as whoever " +
			"sits at it may.",
		Examples: []frame.Example{
			{Line: "roost resume 123", Description: "let a job run on"},
			{Line: "roost resume all", Description: "everything of yours that is suspended"},
			{Line: "roost resume", Description: "lend this machine again"},
		},
		Flags: append(selectionFlags(), yesFlag(), frame.JSONFlag()),
	}
}

func resumeTasks(c *frame.Invocation, resumeMachine func(*frame.Invocation) error) error {
	if len(c.Args) > 0 {
		return verbAction(scheddapi.ActRequest_RESUME, "resumed")(c)
	}
	if c.IsFlagSet("constraint") || c.IsFlagSet("state") || c.IsFlagSet("yes") {
		return frame.WithHint(frame.UsageErrorf("a job is missing"), frame.SuggestUsage(c.Command, nil))
	}
	return resumeMachine(c)
}

// requestCheckpoints asks for checkpoints and waits for the nodes' answers, which are
// events of the jobs.
func requestCheckpoints(c *frame.Invocation) error {
	sel, err := selection(c)
	if err != nil {
		return err
	}
	since := c.Now().UnixNano()
	results, err := changeJobs(c, &scheddapi.ActRequest{Verb: scheddapi.ActRequest_CHECKPOINT, Selection: sel})
	if err != nil {
		return err
	}
	if c.Flag("no-wait") {
		return reportChanges(c, results, "to be checkpointed")
	}
	var answers []*scheddapi.JobEvent
	var refused []*scheddapi.ActReply_Result
	for _, r := range results {
		if r.GetError() != "" {
			refused = append(refused, r)
			continue
		}
		found, err := awaitCheckpoints(c, r, since)
		if err != nil {
			return err
		}
		answers = append(answers, found...)
	}
	return reportCheckpoints(c, answers, refused, len(results))
}

// answerPollInterval is how often the log of a job is looked at for the answers.
const answerPollInterval = 200 * time.Millisecond

// awaitCheckpoints waits until each of the tasks that were asked has answered, or has
// ended.
func awaitCheckpoints(c *frame.Invocation, r *scheddapi.ActReply_Result, since int64) ([]*scheddapi.JobEvent, error) {
	for {
		events, _, err := Events(c, r.GetId(), 0)
		if err != nil {
			return nil, err
		}
		var answers []*scheddapi.JobEvent
		reported := map[string]bool{}
		for _, e := range events {
			answer := e.GetExit() != nil || slices.Contains([]string{"checkpointed", "staged", "checkpoint-failed",
				"lost"}, e.GetWhat())
			if answer && e.GetTime() >= since && !reported[e.GetId()] {
				reported[e.GetId()] = true
				answers = append(answers, e)
			}
		}
		if len(answers) >= int(r.GetTasks()) {
			return append(answers, savedGangs(events, since)...), nil
		}
		select {
		case <-c.Context.Done():
			return nil, c.Context.Err()
		case <-time.After(answerPollInterval):
		}
	}
}

// savedGangs lists the events of gangs whose tasks were all saved since then.
func savedGangs(events []*scheddapi.JobEvent, since int64) (saved []*scheddapi.JobEvent) {
	for _, e := range events {
		if e.GetWhat() == "gang-saved" && e.GetTime() >= since {
			saved = append(saved, e)
		}
	}
	return saved
}

// reportCheckpoints prints the answers. The exit status is that of a refusal, or 1 when a
// checkpoint could not be taken.
func reportCheckpoints(c *frame.Invocation, answers []*scheddapi.JobEvent, refused []*scheddapi.ActReply_Result,
	asked int) error {
	code := 0
	if c.WantsJSON() {
		records := make([]document.Event, len(answers))
		for i, e := range answers {
			records[i] = document.EventOf(e)
		}
		if err := frame.PrintJSON(c.Stdout, frame.JSONDocument{"checkpoints": records}); err != nil {
			return err
		}
	}
	for _, e := range answers {
		text := document.PrintableText(e.GetText())
		if what := e.GetWhat(); what != "checkpointed" && what != "staged" && what != "gang-saved" {
			code = 1
			if e.GetWhat() != "checkpoint-failed" {
				text = "it ended before: " + text
			}
			text = "no checkpoint: " + text
		}
		if !c.WantsJSON() {
			fmt.Fprintf(c.Stdout, "%s: %s\n", e.GetId(), text)
		}
	}
	for _, r := range refused {
		fmt.Fprintf(c.Stderr, "%s %s\n", c.ErrScreen.ColourText(frame.Red, "roost:"),
			WithSubject(r.GetId(), r.GetError()))
		code = roost.ErrorKind(r.GetKind()).ExitCode()
	}
	if asked == 0 {
		fmt.Fprintln(c.Stderr, "no jobs match")
		code = roost.NotFound.ExitCode()
	}
	if code != 0 {
		return frame.ExitError(code)
	}
	return nil
}
