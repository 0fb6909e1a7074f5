package jobs

import (
	"context"
	"fmt"
	"strings"

	ucli "github.com/urfave/cli/v2"

	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/document"
	"github.com/roost-batch/roost/internal/wire/scheddapi"
)

// WhyCommand returns roost why: say why a job does not run.
func WhyCommand() *frame.Command {
	return &frame.Command{
		Name: "why", Group: frame.GroupSee, Summary: "say why a job does not run", Synopsis: "JOB", MinOperands: 1,
		MaxOperands: 1, OperandName: "a job", Run: explainJob,
		Description: "Says in a sentence what a job or task waits for or how it ended; how many tasks come before " +
			"it, when it starts and how sure that is; for how many machines each reason holds; for each condition of " +
			"its requirements, and of the machines' own, by itself how many machines meet it, do not, or lack what " +
			"it asks for, and how many would take the job but for this one; which conditions no machine meets " +
			"together; the machines that miss least; and the smallest change of the job that would help. " + selectors,
		Examples: []frame.Example{
			{Line: "roost why last", Description: "why your newest job waits"},
			{Line: "roost why 123[7]", Description: "why a task waits, or how it ended"},
		},
		Flags: []ucli.Flag{frame.JSONFlag()},
	}
}

func explainJob(c *frame.Invocation) error {
	id, err := ResolveSelector(c, c.Args[0])
	if err != nil {
		return err
	}
	return Explain(c, id)
}

// Explain says why a job or task does not run, or how it ended.
func Explain(c *frame.Invocation, id string) error {
	var reply *scheddapi.WhyReply
	err := c.CallSchedd(frame.AskTimeout, func(ctx context.Context, s *scheddapi.ScheddClient) (err error) {
		reply, err = s.Why(ctx, &scheddapi.WhyRequest{Id: id})
		return err
	})
	if err != nil {
		return err
	}
	if c.WantsJSON() {
		return explainJSON(c, reply)
	}
	s, x := reply.GetStatus(), reply.GetExplanation()
	state, summary := document.StateOf(s), reply.GetSummary()
	if how := document.EndText(s.GetExit()); document.IsFinal(s) && how != "" && !strings.Contains(summary, how) {
		summary += ": " + how
	}
	fmt.Fprintf(c.Stdout, "%s  %s  %s\n\n%s\n", c.OutScreen.ColourText(frame.Bold, s.GetId()),
		document.PrintableText(s.GetName()),
		c.OutScreen.ColourText(frame.StateColour(state), state), c.PrintParagraph("  ", "  ", summary))
	for _, text := range []string{queuePosition(x), printStartEstimate(c, x)} {
		if text != "" {
			fmt.Fprintln(c.Stdout, c.PrintParagraph("  ", "  ", text))
		}
	}
	if len(x.GetReasons()) > 0 {
		fmt.Fprintf(c.Stdout, "\n  Of %s:\n", document.Plural(int(x.GetMachines()), "machine"))
		for _, r := range x.GetReasons() {
			fmt.Fprintln(c.Stdout, c.PrintParagraph(fmt.Sprintf("  %6d  ", r.GetMachines()), "          ", r.GetText()))
		}
	}
	printConditions(c, x)
	c.PrintList("Together:", x.GetConflicts())
	c.PrintList("Nearest:", x.GetNearest())
	c.PrintList("What would help:", document.Advice(reply))
	if !document.IsFinal(s) {
		job, _, _ := strings.Cut(s.GetId(), "[") // of a task: all tasks of a job wait for the same pilots
		if _, host, isTask := strings.Cut(s.GetId(), "]"); isTask {
			job += host
		}
		c.PrintList("Pilots:", pilotLines(c, job))
	}
	return nil
}

// printConditions prints for each conjunct of the job's requirements, and of the
// machines' own, for how many machines it holds.
func printConditions(c *frame.Invocation, x *scheddapi.Explanation) {
	if len(x.GetConditions()) == 0 {
		return
	}
	fmt.Fprintf(c.Stdout, "\n  Each condition by itself:\n      true   false   undefined   else all fit\n")
	for _, n := range x.GetConditions() {
		text := n.GetText()
		if n.GetMeans() != "" {
			text += ", here " + n.GetMeans()
		}
		if n.GetOwn() {
			text += " (the machine's own)"
		}
		if n.GetError() > 0 {
			text += fmt.Sprintf(" (makes no sense for %d)", n.GetError())
		}
		first := fmt.Sprintf("    %6d  %6d  %10d  %13d   ", n.GetPass(), n.GetFail()+n.GetError(), n.GetUndefined(),
			n.GetAlone())
		fmt.Fprintln(c.Stdout, c.PrintParagraph(first, strings.Repeat(" ", len(first)), text))
	}
}

func explainJSON(c *frame.Invocation, reply *scheddapi.WhyReply) error {
	return frame.PrintDocument(c.Stdout, document.ExplanationOf(reply))
}
