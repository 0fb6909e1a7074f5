package sim

import (
	"fmt"
	"slices"
	"strconv"

	ucli "github.com/urfave/cli/v2"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/cli/cell"
	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/document"
	"github.com/roost-batch/roost/internal/plot"
	"github.com/roost-batch/roost/internal/sim/whatif"
	"github.com/roost-batch/roost/negotiator/cellstate"
	"github.com/roost-batch/roost/negotiator/match"
)

func fitSubcommand() (frame.Subcommand, []ucli.Flag) {
	return frame.Subcommand{
			Name: "fit", Summary: "how many more of a job would fit", MinOperands: 0, MaxOperands: 1,
			OperandNames: "a checkpoint of a cell, or nothing for the pool as it is now", Run: fitJobs,
		}, append([]ucli.Flag{
			&ucli.StringFlag{Name: "request",
				Usage: "fit: the job, a job `FILE`, or what stands in one, as \"cpus = 4; memory = \\\"8GiB\\\"\""},
			varFlag(),
		}, resultFlags()...)
}

// maxShown is how many machines are listed.
const maxShown = 10

func fitJobs(c *frame.Invocation, args []string) error {
	if c.StringFlag("request") == "" {
		return frame.WithHint(frame.UsageErrorf("fit needs --request"),
			`name a job file, or what stands in one: roost sim fit --request 'cpus = 4; memory = "8GiB"'`)
	}
	p, err := cell.ReadCellCheckpoint(c, append(args, "")[0])
	if err != nil {
		return err
	}
	asks, err := requestedTasks(c, p, c.StringFlag("request"))
	if err != nil {
		return err
	}
	if len(asks) > 1 {
		return frame.WithHint(frame.UsageErrorf("the tasks of %s ask for %d different things", c.StringFlag("request"),
			len(asks)),
			"ask about one at a time")
	}
	rooms := make([]*whatif.RoomAnswer, 3)
	for where := range rooms {
		ask := func() (*whatif.RoomAnswer, error) { return whatif.RoomNow(p, asks[0], whatif.Scope(where)) }
		if rooms[where], err = answerTwice(ask, func(r *whatif.RoomAnswer) uint64 { return r.Digest }); err != nil {
			return err
		}
	}
	if empty := rooms[whatif.EmptyCell]; empty.Tasks == 0 && empty.Explanation != nil && !isLimited(empty.Explanation) {
		one := "one"
		if n := asks[0].Gang; n > 1 {
			one = fmt.Sprintf("one gang of %d", n)
		}
		return simRefusal(fmt.Errorf("%w: not even %s fits, and none would on empty machines: %s", roost.Invalid, one,
			empty.Explanation.Summary))
	}
	head, rows := fitTable(rooms)
	if err := writeTable(c, head, rows); err != nil {
		return err
	}
	if err := writeCharts(c, fitChart(rooms)); err != nil {
		return err
	}
	if c.WantsJSON() {
		d := frame.JSONDocument{"at": p.Now.Unix()}
		for where, r := range rooms {
			d[roomNames[where]] = roomJSON(r)
		}
		return frame.PrintJSON(c.Stdout, d)
	}
	printFit(c, p, rooms)
	return nil
}

// roomNames are what the cells are called in which room is looked for, by
// [runLive.Scope].
var roomNames = [...]string{"now", "behind", "empty"}

func roomJSON(r *whatif.RoomAnswer) frame.JSONDocument {
	machines := []frame.JSONDocument{}
	for _, on := range r.Machines {
		machines = append(machines, frame.JSONDocument{"machine": on.Machine, "tasks": on.Tasks,
			"preempting": on.WithPreemption})
	}
	return frame.JSONDocument{"tasks": r.Tasks, "preempting": r.WithPreemption, "evicted": r.Evicted,
		"machines":   machines,
		"limited_by": reasonsJSON(r.Explanation), "digest": fmt.Sprintf("%016x", r.Digest)}
}

func printFit(c *frame.Invocation, p *cellstate.CellCheckpoint, rooms []*whatif.RoomAnswer) {
	now := rooms[whatif.FreeNow]
	fmt.Fprintf(c.Stdout, "%s\n\n", printAsOf(c, p))
	fmt.Fprintf(c.Stdout, "  now           %s would start at once", document.Plural(now.Tasks, "task"))
	if now.WithPreemption > 0 {
		fmt.Fprintf(c.Stdout, ", and %d more if %s made room", now.WithPreemption, document.Plural(now.Evicted, "task"))
	}
	fmt.Fprintf(c.Stdout, "\n  in its turn   %d, with what waits already\n  empty         %d, if nothing ran\n",
		rooms[whatif.AfterWaiting].Tasks, rooms[whatif.EmptyCell].Tasks)
	free := slices.DeleteFunc(slices.Clone(now.Machines), func(on whatif.MachineTasks) bool { return on.Tasks == 0 })
	for i, on := range free {
		if i == maxShown {
			fmt.Fprintf(c.Stdout, "  %-12s  … and on %s more\n", "", document.Plural(len(free)-i, "machine"))
			break
		}
		head := ""
		if i == 0 {
			head = "where"
		}
		fmt.Fprintf(c.Stdout, "  %-12s  %d on %s\n", head, on.Tasks, on.Machine)
	}
	printReasons(c, now.Explanation)
}

// fitTable is a row for each cell and machine to which tasks go.
func fitTable(rooms []*whatif.RoomAnswer) (head []string, rows [][]string) {
	for where, r := range rooms {
		for _, on := range r.Machines {
			rows = append(rows, []string{roomNames[where], on.Machine, strconv.Itoa(on.Tasks),
				strconv.Itoa(on.WithPreemption)})
		}
	}
	return []string{"cell", "machine", "tasks", "preempting_tasks"}, rows
}

// fitChart is how many tasks find room in each cell.
func fitChart(rooms []*whatif.RoomAnswer) plot.Chart {
	bars := plot.ChartSeries{Name: "tasks", Kind: plot.Bars}
	chart := plot.Chart{Title: "How many more would fit", Y: plot.ChartAxis{Label: "tasks"}}
	for _, one := range []struct {
		name  string
		tasks int
	}{
		{"now", rooms[whatif.FreeNow].Tasks},
		{"now, if others made room", rooms[whatif.FreeNow].Tasks + rooms[whatif.FreeNow].WithPreemption},
		{"in its turn", rooms[whatif.AfterWaiting].Tasks},
		{"empty", rooms[whatif.EmptyCell].Tasks},
	} {
		bars.Points = append(bars.Points, plot.DataPoint{X: float64(len(bars.Points)), Y: float64(one.tasks)})
		chart.X.Names = append(chart.X.Names, one.name)
	}
	chart.Series = []plot.ChartSeries{bars}
	return chart
}

// isLimited reports whether something else than machines keeps a job waiting.
func isLimited(x *match.WaitExplanation) bool {
	for _, r := range x.Reasons {
		if r.Kind == match.OverLimit || r.Kind == match.Reserved || r.Kind == match.Drained {
			return true
		}
	}
	return false
}
