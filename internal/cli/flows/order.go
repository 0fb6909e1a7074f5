package flows

import (
	"fmt"
	"strconv"
	"strings"

	ucli "github.com/urfave/cli/v2"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/cli/jobs"
	"github.com/roost-batch/roost/internal/wire/scheddapi"
)

// orderFlow returns what a subcommand does that gives a flow an order.
func orderFlow(word, done string) func(*frame.Invocation, []string) error {
	return func(c *frame.Invocation, args []string) error {
		return jobs.OrderFlow(c, args, &scheddapi.FlowOrder{Command: word}, done)
	}
}

// throttleFlags are the flags of roost flow throttle.
func throttleFlags() []ucli.Flag {
	return []ucli.Flag{&ucli.StringSliceFlag{Name: "max-category",
		Usage: "change the limit of a category, as `CATEGORY=N`; -1: no limit; may be repeated"}}
}

// throttleFlow changes the limits of flows that run.
func throttleFlow(c *frame.Invocation, args []string) error {
	l := &scheddapi.FlowLimits{Categories: map[string]int32{}}
	changed := false
	for _, f := range []struct {
		name string
		to   **uint32
	}{{"max-jobs", &l.Jobs}, {"max-idle", &l.Idle}, {"max-pre", &l.Pre}, {"max-post", &l.Post}} {
		if c.IsFlagSet(f.name) {
			n := uint32(min(c.Flags.Uint(f.name), roost.MaxTasks))
			*f.to, changed = &n, true
		}
	}
	for _, text := range c.StringsFlag("max-category") {
		name, number, ok := strings.Cut(text, "=")
		n, err := strconv.ParseInt(number, 10, 32)
		if !ok || name == "" || err != nil || n < -1 {
			return frame.WithHint(frame.UsageErrorf("--max-category %s: a limit is set as CATEGORY=N", text),
				"as in: roost flow throttle --max-category big=3 12")
		}
		l.Categories[name], changed = int32(n), true
	}
	if !changed {
		return frame.WithHint(frame.UsageErrorf("no limit is named"),
			"as in: roost flow throttle --max-jobs 100 12; roost flow status shows the limits")
	}
	return jobs.OrderFlow(c, args, &scheddapi.FlowOrder{Command: "throttle", Limits: l},
		fmt.Sprintf("has the new %s", map[bool]string{true: "limits", false: "limit"}[len(l.Categories) > 1]))
}
