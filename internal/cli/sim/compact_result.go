package sim

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/document"
	"github.com/roost-batch/roost/internal/plot"
	"github.com/roost-batch/roost/internal/sim/packing"
)

// seedSpread is how numbers are spread over the orders.
type seedSpread struct{ min, median, p90, max float64 }

// spreadOf sorts values; high is their 90th percentile.
func spreadOf(values []float64) seedSpread {
	slices.Sort(values)
	n := len(values)
	return seedSpread{values[0], median(values), values[(9*n+9)/10-1], values[n-1]}
}

func (k *compactionRun) machines() seedSpread {
	var values []float64
	for _, n := range k.line.Machines {
		values = append(values, float64(n))
	}
	return spreadOf(values)
}

// percentMoreThan is how many per cent more machines it takes than another does in the
// same order.
func (k *compactionRun) percentMoreThan(usual packing.StudyResult) seedSpread {
	var values []float64
	for i, n := range k.line.Machines {
		values = append(values, 100*(float64(n)/float64(max(usual.Machines[i], 1))-1))
	}
	return spreadOf(values)
}

// baseline is what it is compared with.
func (k *compactionRun) baseline(found []compactionRun) packing.StudyResult {
	if k.isCost {
		return k.baselineLine
	}
	return found[0].line
}

func printCompacted(c *frame.Invocation, found []compactionRun, machines int) {
	priced := slices.IndexFunc(found, func(k compactionRun) bool { return k.isCost })
	scores := found
	if priced >= 0 {
		scores = found[:priced]
	}
	t := &frame.TextTable{Columns: []frame.TableColumn{
		{Head: "SCORE"}, {Head: "MACHINES", RightAligned: true}, {Head: "LEAST", RightAligned: true},
		{Head: "MOST", RightAligned: true}, {Head: "OF THE CELL", RightAligned: true},
		{Head: "MORE", RightAligned: true}, {Head: "FROM", RightAligned: true}, {Head: "TO", RightAligned: true},
		{Head: "PACKINGS", RightAligned: true, DropPriority: 1}, {Head: "SECONDS", RightAligned: true, DropPriority: 1},
	}}
	for i := range scores {
		k := &scores[i]
		n, more := k.machines(), k.percentMoreThan(k.baseline(found))
		row := []frame.TableCell{{Text: k.name()}, {Text: fmt.Sprintf("%.0f", n.p90)},
			{Text: fmt.Sprintf("%.0f", n.min)},
			{Text: fmt.Sprintf("%.0f", n.max)}, {Text: fmt.Sprintf("%.1f %%", 100*n.p90/float64(machines))}}
		if i == 0 {
			row = append(row, frame.TableCell{Text: "-"}, frame.TableCell{Text: "-"}, frame.TableCell{Text: "-"})
		} else {
			row = append(row, percents(more)...)
		}
		t.AddRow(append(row, frame.TableCell{Text: strconv.Itoa(k.line.Packings)},
			frame.TableCell{Text: fmt.Sprintf("%.1f", k.duration.Seconds())})...)
	}
	t.Print(c.Stdout, c.OutScreen)
	fmt.Fprintf(c.Stdout, "\nMachines that hold the work when the others are taken away at random: the 90th "+
		"percentile of %s; more is beside %s, the median.\n",
		document.Plural(len(found[0].line.Machines), "order"), scores[0].name())
	if priced >= 0 {
		t := &frame.TextTable{Columns: []frame.TableColumn{{Head: "COST"}, {Head: "MACHINES", RightAligned: true},
			{Head: "WITHOUT", RightAligned: true}, {Head: "MORE", RightAligned: true},
			{Head: "FROM", RightAligned: true}, {Head: "TO", RightAligned: true}}}
		for i := range found[priced:] {
			k := &found[priced+i]
			without := compactionRun{line: k.baselineLine}
			t.AddRow(append([]frame.TableCell{{Text: k.name()}, {Text: fmt.Sprintf("%.0f", k.machines().p90)},
				{Text: fmt.Sprintf("%.0f", without.machines().p90)}},
				percents(k.percentMoreThan(k.baselineLine))...)...)
		}
		fmt.Fprintln(c.Stdout)
		t.Print(c.Stdout, c.OutScreen)
		fmt.Fprintf(c.Stdout, "\nBy %s; more is the median of the same orders.\n", found[0].name())
	}
	waiting := slices.MaxFunc(found, func(a, b compactionRun) int {
		return cmp.Compare(a.line.Waiting, b.line.Waiting)
	})
	if n := waiting.line.Waiting; n > 0 {
		fmt.Fprintf(c.Stdout, "At most %s that few machines could hold found no place (%s).\n",
			document.Plural(n, "task"),
			waiting.name())
	}
	digest := uint64(0)
	for i := range found {
		digest = digest*31 + found[i].digest()
	}
	fmt.Fprintf(c.Stdout, "All was done twice, digest %016x both times.\n", digest)
}

func percents(s seedSpread) []frame.TableCell {
	return []frame.TableCell{{Text: fmt.Sprintf("%+.1f %%", s.median)}, {Text: fmt.Sprintf("%+.1f %%", s.min)},
		{Text: fmt.Sprintf("%+.1f %%", s.max)}}
}

// compactTable is a row for each thing and order.
func compactTable(found []compactionRun) (head []string, rows [][]string) {
	for i := range found {
		k := &found[i]
		usual := k.baseline(found)
		for seed, n := range k.line.Machines {
			rows = append(rows, []string{k.name(), k.score.String(), strconv.Itoa(seed + 1), strconv.Itoa(n),
				strconv.Itoa(usual.Machines[seed]),
				decimalText(100 * (float64(n)/float64(max(usual.Machines[seed], 1)) - 1))})
		}
	}
	return []string{"what", "score", "seed", "machines", "beside_machines", "more_percent"}, rows
}

// compactCharts are how many machines the work takes in each order, and what other ways
// to run the cell cost.
func compactCharts(found []compactionRun, machines int) []plot.Chart {
	sizes := plot.Chart{Title: "Machines that hold the work", X: plot.ChartAxis{Label: "of the cell (%)"},
		Y: plot.ChartAxis{Label: "of the random orders (%)"}}
	var costs plot.Chart
	bars := plot.ChartSeries{Name: "median", Kind: plot.Bars}
	for i := range found {
		k := &found[i]
		if k.isCost {
			costs.X.Names = append(costs.X.Names, k.name())
			bars.Points = append(bars.Points,
				plot.DataPoint{X: float64(len(bars.Points)), Y: k.percentMoreThan(k.baselineLine).median})
			continue
		}
		var values []float64
		for _, n := range k.line.Machines {
			values = append(values, 100*float64(n)/float64(machines))
		}
		sizes.Series = append(sizes.Series, plot.ChartSeries{Name: k.name(), Kind: plot.Step, Points: plot.CDF(values)})
	}
	if bars.Points == nil {
		return []plot.Chart{sizes}
	}
	costs.Title, costs.Y, costs.Series = "More machines", plot.ChartAxis{Label: "more (%)"}, []plot.ChartSeries{bars}
	return []plot.Chart{sizes, costs}
}

func compactJSON(c *frame.Invocation, args []string, cell *packing.CellWorkload, found []compactionRun) error {
	list := func(priced bool) (docs []frame.JSONDocument) {
		for i := range found {
			k := &found[i]
			if k.isCost != priced {
				continue
			}
			n, more := k.machines(), k.percentMoreThan(k.baseline(found))
			docs = append(docs, frame.JSONDocument{
				"name": k.name(), "machines": n.p90, "machines_least": n.min, "machines_most": n.max,
				"more_percent": more.median, "more_percent_least": more.min, "more_percent_most": more.max,
				"waiting": k.line.Waiting, "copies": k.line.Copies, "packings": k.line.Packings,
				"took_seconds": k.duration.Seconds(), "digest": fmt.Sprintf("%016x", k.digest()),
			})
		}
		return docs
	}
	return frame.PrintJSON(c.Stdout, frame.JSONDocument{
		"cell": args, "machines": len(cell.Machines), "tasks": len(cell.Tasks), "orders": len(found[0].line.Machines),
		"scores": list(false), "costs": list(true),
	})
}
