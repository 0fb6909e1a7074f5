package cli

import (
	"context"
	"fmt"
	"strings"

	ucli "github.com/urfave/cli/v2"

	"github.com/roost-batch/roost/internal/wire"
)

func whyCommand() *command {
	return &command{
		name: "why", group: groupSee, brief: "say why a job does not run", args: "JOB", least: 1, most: 1, wants: "a job", do: explain,
		about: "Says in a sentence what a job or task waits for or how it ended; if no machine takes it, for how many machines each reason holds, and the smallest change of the job that would help. " + selectors,
		examples: []example{
			{"roost why last", "why your newest job waits"},
			{"roost why 123[7]", "why a task waits, or how it ended"},
		},
		flags: []ucli.Flag{jsonFlag()},
	}
}

func explain(c *call) error {
	id, err := c.literalID(c.args[0])
	if err != nil {
		return err
	}
	var reply *wire.WhyReply
	err = c.ask(askPatience, func(ctx context.Context, s wire.ScheddClient) (err error) {
		reply, err = s.Why(ctx, &wire.WhyRequest{Id: id})
		return err
	})
	if err != nil {
		return err
	}
	if c.json() {
		return c.explainJSON(reply)
	}
	s, x := reply.GetStatus(), reply.GetExplanation()
	state, summary := stateOf(s), reply.GetSummary()
	if how := ending(s.GetExit()); final(s) && how != "" && !strings.Contains(summary, how) {
		summary += ": " + how
	}
	fmt.Fprintf(c.stdout, "%s  %s  %s\n\n%s\n", c.out.paint(bold, s.GetId()), printable(s.GetName()), c.out.paint(stateColour(state), state), c.paragraph("  ", "  ", summary))
	if x.GetAhead() > 0 {
		fmt.Fprintf(c.stdout, "  %s before it\n", verbForm(int(x.GetAhead()), "task goes", "tasks go"))
	}
	if len(x.GetReasons()) > 0 {
		fmt.Fprintf(c.stdout, "\n  Of %s:\n", plural(int(x.GetMachines()), "machine"))
		for _, r := range x.GetReasons() {
			fmt.Fprintln(c.stdout, c.paragraph(fmt.Sprintf("  %6d  ", r.GetMachines()), "          ", r.GetText()))
		}
	}
	if advice := c.advice(reply); len(advice) > 0 {
		fmt.Fprintf(c.stdout, "\n  What would help:\n")
		for _, a := range advice {
			fmt.Fprintln(c.stdout, c.paragraph("    - ", "      ", a))
		}
	}
	return nil
}

// paragraph fits a text into the terminal's window behind first, and its further lines behind next; elsewhere it is one line.
func (c *call) paragraph(first, next, text string) string {
	text = printable(text)
	if c.out.terminal && c.out.width > 0 {
		text = wrap(text, max(c.out.width-length(next)-1, 20))
	}
	return first + strings.ReplaceAll(text, "\n", "\n"+next)
}

func verbForm(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// advice is what schedd and negotiator recommend, each thing once.
func (c *call) advice(reply *wire.WhyReply) []string {
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

func (c *call) explainJSON(reply *wire.WhyReply) error {
	type reason struct {
		Text     string `json:"text"`
		Machines uint32 `json:"machines"`
	}
	x := reply.GetExplanation()
	reasons := make([]reason, len(x.GetReasons()))
	for i, r := range x.GetReasons() {
		reasons[i] = reason{r.GetText(), r.GetMachines()}
	}
	advice := c.advice(reply)
	if advice == nil {
		advice = []string{}
	}
	s := reply.GetStatus()
	return printJSON(c.stdout, document{
		"job": recordOf(s, s.GetState() != ""), "summary": reply.GetSummary(), "machines": x.GetMachines(), "reasons": reasons, "ahead": x.GetAhead(), "advice": advice,
	})
}
