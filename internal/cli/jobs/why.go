package jobs

import (
	"context"
	"fmt"
	"strings"
	"time"

	ucli "github.com/urfave/cli/v2"

	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/wire"
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
	var reply *wire.WhyReply
	err = c.CallSchedd(frame.AskTimeout, func(ctx context.Context, s wire.ScheddClient) (err error) {
		reply, err = s.Why(ctx, &wire.WhyRequest{Id: id})
		return err
	})
	if err != nil {
		return err
	}
	if c.WantsJSON() {
		return explainJSON(c, reply)
	}
	s, x := reply.GetStatus(), reply.GetExplanation()
	state, summary := frame.StateOf(s), reply.GetSummary()
	if how := frame.EndText(s.GetExit()); frame.IsFinal(s) && how != "" && !strings.Contains(summary, how) {
		summary += ": " + how
	}
	fmt.Fprintf(c.Stdout, "%s  %s  %s\n\n%s\n", c.OutScreen.ColourText(frame.Bold, s.GetId()),
		frame.PrintableText(s.GetName()),
		c.OutScreen.ColourText(frame.StateColour(state), state), c.PrintParagraph("  ", "  ", summary))
	for _, text := range []string{queuePosition(x), printStartEstimate(c, x)} {
		if text != "" {
			fmt.Fprintln(c.Stdout, c.PrintParagraph("  ", "  ", text))
		}
	}
	if len(x.GetReasons()) > 0 {
		fmt.Fprintf(c.Stdout, "\n  Of %s:\n", frame.Plural(int(x.GetMachines()), "machine"))
		for _, r := range x.GetReasons() {
			fmt.Fprintln(c.Stdout, c.PrintParagraph(fmt.Sprintf("  %6d  ", r.GetMachines()), "          ", r.GetText()))
		}
	}
	printConditions(c, x)
	c.PrintList("Together:", x.GetConflicts())
	c.PrintList("Nearest:", x.GetNearest())
	c.PrintList("What would help:", printAdvice(c, reply))
	return nil
}

// printConditions prints for each conjunct of the job's requirements, and of the
// machines' own, for how many machines it holds.
func printConditions(c *frame.Invocation, x *wire.Explanation) {
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

// printAdvice is what schedd and negotiator recommend, each thing once.
func printAdvice(c *frame.Invocation, reply *wire.WhyReply) []string {
	var list []string
	seen := map[string]bool{}
	for _, a := range append(reply.GetAdvice(), reply.GetExplanation().GetAdvice()...) {
		if !seen[a] {
			seen[a] = true
			list = append(list, a)
		}
	}
	return list
}

func explainJSON(c *frame.Invocation, reply *wire.WhyReply) error {
	type reason struct {
		Kind     string `json:"kind"`
		Text     string `json:"text"`
		Machines uint32 `json:"machines"`
	}
	x := reply.GetExplanation()
	reasons := make([]reason, len(x.GetReasons()))
	for i, r := range x.GetReasons() {
		reasons[i] = reason{r.GetKind(), r.GetText(), r.GetMachines()}
	}
	type condition struct {
		Text      string `json:"text"`
		Means     string `json:"means,omitempty"`
		Own       bool   `json:"own"`
		True      uint32 `json:"true"`
		False     uint32 `json:"false"`
		Undefined uint32 `json:"undefined"`
		Error     uint32 `json:"error"`
		Alone     uint32 `json:"alone"`
	}
	conditions := make([]condition, len(x.GetConditions()))
	for i, n := range x.GetConditions() {
		conditions[i] = condition{
			n.GetText(), n.GetMeans(), n.GetOwn(), n.GetPass(), n.GetFail(), n.GetUndefined(), n.GetError(),
			n.GetAlone(),
		}
	}
	s := reply.GetStatus()
	return frame.PrintJSON(c.Stdout, frame.JSONDocument{
		"job": jobRecordOf(s, s.GetState() != ""), "summary": reply.GetSummary(), "machines": x.GetMachines(),
		"reasons": reasons, "ahead": x.GetAhead(), "waiting": x.GetWaiting(),
		"advice":                messageTexts(printAdvice(c, reply)),
		"ahead_of_higher_bands": x.GetHigher(), "ahead_of_its_user": x.GetOwn(), "brief": x.GetBrief(),
		"start": frame.Timestamp(x.GetStart() * int64(time.Second)), "certainty": x.GetCertainty(),
		"basis":      x.GetBasis(),
		"conditions": conditions, "conflicts": messageTexts(x.GetConflicts()), "nearest": messageTexts(x.GetNearest()),
	})
}

// messageTexts is a list that JSON shows as one even if it is empty.
func messageTexts(list []string) []string {
	if list == nil {
		return []string{}
	}
	return list
}
