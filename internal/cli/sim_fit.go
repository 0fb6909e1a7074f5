package cli

import (
	"fmt"
	"slices"
	"strconv"

	ucli "github.com/urfave/cli/v2"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/plot"
	"github.com/roost-batch/roost/internal/sim/live"
	"github.com/roost-batch/roost/negotiator/match"
	"github.com/roost-batch/roost/negotiator/picture"
)

func simFit() (branch, []ucli.Flag) {
	return branch{
			name: "fit", brief: "how many more of a job would fit", least: 0, most: 1, wants: "a checkpoint of a cell, or nothing for the pool as it is now", do: fit,
		}, append([]ucli.Flag{
			&ucli.StringFlag{Name: "request", Usage: "fit: the job, a job `FILE`, or what stands in one, as \"cpus = 4; memory = \\\"8GiB\\\"\""},
			varFlag(),
		}, resultFlags()...)
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
	if empty := rooms[live.Empty]; empty.Tasks == 0 && empty.Explanation != nil && !rationed(empty.Explanation) {
		one := "one"
		if n := asks[0].Gang; n > 1 {
			one = fmt.Sprintf("one gang of %d", n)
		}
		return refusedBySim(fmt.Errorf("%w: not even %s fits, and none would on empty machines: %s", roost.Invalid, one, empty.Explanation.Summary))
	}
	if err := c.writeTable(fitTable(rooms)); err != nil {
		return err
	}
	if err := c.writePicture(fitChart(rooms)); err != nil {
		return err
	}
	if c.json() {
		d := document{"at": p.Now.Unix()}
		for where, r := range rooms {
			d[roomNames[where]] = roomJSON(r)
		}
		return printJSON(c.stdout, d)
	}
	c.printFit(p, rooms)
	return nil
}

// roomNames are what the cells are called in which room is looked for, by [live.Where].
var roomNames = [...]string{"now", "behind", "empty"}

func roomJSON(r *live.Room) document {
	machines := []document{}
	for _, on := range r.Machines {
		machines = append(machines, document{"machine": on.Machine, "tasks": on.Tasks, "preempting": on.Preempting})
	}
	return document{"tasks": r.Tasks, "preempting": r.Preempting, "evicted": r.Evicted, "machines": machines, "limited_by": reasonsJSON(r.Explanation), "digest": fmt.Sprintf("%016x", r.Digest)}
}

func (c *call) printFit(p *picture.Checkpoint, rooms []*live.Room) {
	now := rooms[live.Now]
	fmt.Fprintf(c.stdout, "%s\n\n", c.asOf(p))
	fmt.Fprintf(c.stdout, "  now           %s would start at once", plural(now.Tasks, "task"))
	if now.Preempting > 0 {
		fmt.Fprintf(c.stdout, ", and %d more if %s made room", now.Preempting, plural(now.Evicted, "task"))
	}
	fmt.Fprintf(c.stdout, "\n  in its turn   %d, with what waits already\n  empty         %d, if nothing ran\n", rooms[live.Behind].Tasks, rooms[live.Empty].Tasks)
	free := slices.DeleteFunc(slices.Clone(now.Machines), func(on live.OnMachine) bool { return on.Tasks == 0 })
	for i, on := range free {
		if i == mostShown {
			fmt.Fprintf(c.stdout, "  %-12s  … and on %s more\n", "", plural(len(free)-i, "machine"))
			break
		}
		head := ""
		if i == 0 {
			head = "where"
		}
		fmt.Fprintf(c.stdout, "  %-12s  %d on %s\n", head, on.Tasks, on.Machine)
	}
	c.printReasons(now.Explanation)
}

// fitTable is a row for each cell and machine to which tasks go.
func fitTable(rooms []*live.Room) (head []string, rows [][]string) {
	for where, r := range rooms {
		for _, on := range r.Machines {
			rows = append(rows, []string{roomNames[where], on.Machine, strconv.Itoa(on.Tasks), strconv.Itoa(on.Preempting)})
		}
	}
	return []string{"cell", "machine", "tasks", "preempting_tasks"}, rows
}

// fitChart is how many tasks find room in each cell.
func fitChart(rooms []*live.Room) plot.Chart {
	bars := plot.Series{Name: "tasks", Kind: plot.Bars}
	chart := plot.Chart{Title: "How many more would fit", Y: plot.Axis{Label: "tasks"}}
	for _, one := range []struct {
		name  string
		tasks int
	}{
		{"now", rooms[live.Now].Tasks},
		{"now, if others made room", rooms[live.Now].Tasks + rooms[live.Now].Preempting},
		{"in its turn", rooms[live.Behind].Tasks},
		{"empty", rooms[live.Empty].Tasks},
	} {
		bars.Points = append(bars.Points, plot.Point{X: float64(len(bars.Points)), Y: float64(one.tasks)})
		chart.X.Names = append(chart.X.Names, one.name)
	}
	chart.Series = []plot.Series{bars}
	return chart
}

// rationed reports whether something else than machines keeps a job waiting.
func rationed(x *match.Explanation) bool {
	for _, r := range x.Reasons {
		if r.Kind == match.Rationed || r.Kind == match.Reserved || r.Kind == match.Drained {
			return true
		}
	}
	return false
}
