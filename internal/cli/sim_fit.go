package cli

import (
	"fmt"

	ucli "github.com/urfave/cli/v2"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/sim/live"
	"github.com/roost-batch/roost/negotiator/match"
)

func simFit() (branch, []ucli.Flag) {
	return branch{
			name: "fit", brief: "how many more of a job would fit", least: 0, most: 1, wants: "a checkpoint of a cell, or nothing for the pool as it is now", do: fit,
		}, []ucli.Flag{
			&ucli.StringFlag{Name: "request", Usage: "fit: the job, a job `FILE`, or what stands in one, as \"cpus = 4; memory = \\\"8GiB\\\"\""},
			varFlag(), jsonFlag(),
		}
}

// mostShown is how many machines are listed.
const mostShown = 10

func fit(c *call, args []string) error {
	if c.text("request") == "" {
		return advise(usage("fit needs --request"), `name a job file, or what stands in one: roost sim fit --request 'cpus = 4; memory = "8GiB"'`)
	}
	p, err := c.picture(append(args, "")[0])
	if err != nil {
		return err
	}
	asks, err := c.asked(p, c.text("request"))
	if err != nil {
		return err
	}
	if len(asks) > 1 {
		return advise(usage("the tasks of %s ask for %d different things", c.text("request"), len(asks)), "ask about one at a time")
	}
	rooms := make([]*live.Room, 3)
	for where := range rooms {
		ask := func() (*live.Room, error) { return live.Fit(p, asks[0], live.Where(where)) }
		if rooms[where], err = answeredTwice(ask, func(r *live.Room) uint64 { return r.Digest }); err != nil {
			return err
		}
	}
	now, behind, empty := rooms[live.Now], rooms[live.Behind], rooms[live.Empty]
	if empty.Tasks == 0 && empty.Explanation != nil && !rationed(empty.Explanation) {
		return refusedBySim(fmt.Errorf("%w: not even one fits, and none would on empty machines: %s", roost.Invalid, empty.Explanation.Summary))
	}
	if c.json() {
		room := func(r *live.Room) document {
			machines := []document{}
			for _, on := range r.Machines {
				machines = append(machines, document{"machine": on.Machine, "tasks": on.Tasks})
			}
			return document{"tasks": r.Tasks, "preempting": r.Preempting, "evicted": r.Evicted, "machines": machines, "limited_by": reasonsJSON(r.Explanation), "digest": fmt.Sprintf("%016x", r.Digest)}
		}
		return printJSON(c.stdout, document{"at": p.Now.Unix(), "now": room(now), "behind": room(behind), "empty": room(empty)})
	}
	fmt.Fprintf(c.stdout, "%s\n\n", c.asOf(p))
	fmt.Fprintf(c.stdout, "  now           %s would start at once", plural(now.Tasks, "task"))
	if now.Preempting > 0 {
		fmt.Fprintf(c.stdout, ", and %d more if %s made room", now.Preempting, plural(now.Evicted, "task"))
	}
	fmt.Fprintf(c.stdout, "\n  in its turn   %d, with what waits already\n  empty         %d, if nothing ran\n", behind.Tasks, empty.Tasks)
	for i, on := range now.Machines {
		if i == mostShown {
			fmt.Fprintf(c.stdout, "  %-12s  … and on %s more\n", "", plural(len(now.Machines)-i, "machine"))
			break
		}
		head := ""
		if i == 0 {
			head = "where"
		}
		fmt.Fprintf(c.stdout, "  %-12s  %d on %s\n", head, on.Tasks, on.Machine)
	}
	c.printReasons(now.Explanation)
	return nil
}

// rationed reports whether something else than machines keeps a job waiting.
func rationed(x *match.Explanation) bool {
	for _, r := range x.Reasons {
		if r.Kind == match.Rationed || r.Kind == match.Reserved || r.Kind == match.Drained || r.Kind == match.Whole {
			return true
		}
	}
	return false
}
