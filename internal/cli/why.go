package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	ucli "github.com/urfave/cli/v2"

	"github.com/roost-batch/roost/internal/wire"
)

func whyCommand() *command {
	return &command{
		name: "why", group: groupSee, summary: "say why a job does not run", synopsis: "JOB", minOperands: 1,
		maxOperands: 1, operandName: "a job", run: explainJob,
		description: "Says in a sentence what a job or task waits for or how it ended; how many tasks come before " +
			"it, when it starts and how sure that is; for how many machines each reason holds; for each condition of " +
			"its requirements, and of the machines' own, by itself how many machines meet it, do not, or lack what " +
			"it asks for, and how many would take the job but for this one; which conditions no machine meets " +
			"together; the machines that miss least; and the smallest change of the job that would help. " + selectors,
		examples: []commandExample{
			{"roost why last", "why your newest job waits"},
			{"roost why 123[7]", "why a task waits, or how it ended"},
		},
		flags: []ucli.Flag{jsonFlag()},
	}
}

func explainJob(c *invocation) error {
	id, err := c.resolveSelector(c.args[0])
	if err != nil {
		return err
	}
	var reply *wire.WhyReply
	err = c.callSchedd(askTimeout, func(ctx context.Context, s wire.ScheddClient) (err error) {
		reply, err = s.Why(ctx, &wire.WhyRequest{Id: id})
		return err
	})
	if err != nil {
		return err
	}
	if c.wantsJSON() {
		return c.explainJSON(reply)
	}
	s, x := reply.GetStatus(), reply.GetExplanation()
	state, summary := stateOf(s), reply.GetSummary()
	if how := endText(s.GetExit()); isFinal(s) && how != "" && !strings.Contains(summary, how) {
		summary += ": " + how
	}
	fmt.Fprintf(c.stdout, "%s  %s  %s\n\n%s\n", c.out.colourText(bold, s.GetId()), printableText(s.GetName()),
		c.out.colourText(stateColour(state), state), c.printParagraph("  ", "  ", summary))
	for _, text := range []string{queuePosition(x), c.printStartEstimate(x)} {
		if text != "" {
			fmt.Fprintln(c.stdout, c.printParagraph("  ", "  ", text))
		}
	}
	if len(x.GetReasons()) > 0 {
		fmt.Fprintf(c.stdout, "\n  Of %s:\n", plural(int(x.GetMachines()), "machine"))
		for _, r := range x.GetReasons() {
			fmt.Fprintln(c.stdout, c.printParagraph(fmt.Sprintf("  %6d  ", r.GetMachines()), "          ", r.GetText()))
		}
	}
	c.printConditions(x)
	c.printList("Together:", x.GetConflicts())
	c.printList("Nearest:", x.GetNearest())
	c.printList("What would help:", c.printAdvice(reply))
	return nil
}

// printConditions prints for each conjunct of the job's requirements, and of the
// machines' own, for how many machines it holds.
func (c *invocation) printConditions(x *wire.Explanation) {
	if len(x.GetConditions()) == 0 {
		return
	}
	fmt.Fprintf(c.stdout, "\n  Each condition by itself:\n      true   false   undefined   else all fit\n")
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
		fmt.Fprintln(c.stdout, c.printParagraph(first, strings.Repeat(" ", len(first)), text))
	}
}

// printAdvice is what schedd and negotiator recommend, each thing once.
func (c *invocation) printAdvice(reply *wire.WhyReply) []string {
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

func (c *invocation) explainJSON(reply *wire.WhyReply) error {
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
	return printJSON(c.stdout, jsonDocument{
		"job": jobRecordOf(s, s.GetState() != ""), "summary": reply.GetSummary(), "machines": x.GetMachines(),
		"reasons": reasons, "ahead": x.GetAhead(), "waiting": x.GetWaiting(),
		"advice":                messageTexts(c.printAdvice(reply)),
		"ahead_of_higher_bands": x.GetHigher(), "ahead_of_its_user": x.GetOwn(), "brief": x.GetBrief(),
		"start": timestamp(x.GetStart() * int64(time.Second)), "certainty": x.GetCertainty(), "basis": x.GetBasis(),
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
