package jobs

import (
	"slices"
	"strings"

	ucli "github.com/urfave/cli/v2"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/suggest"
	"github.com/roost-batch/roost/internal/wire/scheddapi"
)

const selectors = "Jobs are named as 123, 123.host, 123[7] (a task), 123[1-9:2], 5-9 (a range), last (your newest), " +
	"@name, or all."

// selectionFlags choose jobs by what they are.
func selectionFlags() []ucli.Flag {
	return []ucli.Flag{
		&ucli.StringFlag{Name: "constraint", Aliases: []string{"c"},
			Usage: "only jobs whose ad satisfies the ClassAd `EXPR`"},
		&ucli.StringSliceFlag{Name: "state", Aliases: []string{"s"},
			Usage: "only tasks in this `STATE` (blocked, held, idle, starting, running, suspended, exiting, " +
				"completed, removed, failed); may be repeated"},
	}
}

// selection is what the operands and the flags of a command choose.
func selection(c *frame.Invocation) (*scheddapi.Selection, error) {
	s := &scheddapi.Selection{Selectors: c.Args, Constraint: c.StringFlag("constraint")}
	known := append(roost.TaskStateNames(), "failed")
	for _, text := range c.StringsFlag("state") {
		for _, state := range strings.Split(text, ",") {
			if !slices.Contains(known, state) {
				cure := "the states are " + strings.Join(known, ", ")
				if n := suggest.Nearest(state, known); n != "" {
					cure = "did you mean " + n + "?"
				}
				return nil, frame.WithHint(frame.UsageErrorf("--state: %q is not a state", state), cure)
			}
			s.States = append(s.States, state)
		}
	}
	return s, nil
}
