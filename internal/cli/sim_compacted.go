package cli

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"github.com/roost-batch/roost/internal/plot"
	"github.com/roost-batch/roost/internal/sim/pack"
)

// spread is how numbers are spread over the orders.
type spread struct{ least, middle, high, most float64 }

// spreadOf sorts values; high is their 90th percentile.
func spreadOf(values []float64) spread {
	slices.Sort(values)
	n := len(values)
	return spread{values[0], middle(values), values[(9*n+9)/10-1], values[n-1]}
}

func (k *compacting) machines() spread {
	var values []float64
	for _, n := range k.line.Machines {
		values = append(values, float64(n))
	}
	return spreadOf(values)
}

// beside is how many per cent more machines it takes than another does in the same order.
func (k *compacting) beside(usual pack.Line) spread {
	var values []float64
	for i, n := range k.line.Machines {
		values = append(values, 100*(float64(n)/float64(max(usual.Machines[i], 1))-1))
	}
	return spreadOf(values)
}

// against is what it is compared with.
func (k *compacting) against(found []compacting) pack.Line {
	if k.priced {
		return k.usual
	}
	return found[0].line
}

func (c *call) printCompacted(found []compacting, machines int) {
	priced := slices.IndexFunc(found, func(k compacting) bool { return k.priced })
	scores := found
	if priced >= 0 {
		scores = found[:priced]
	}
	t := &table{columns: []column{
		{head: "SCORE"}, {head: "MACHINES", right: true}, {head: "LEAST", right: true}, {head: "MOST", right: true}, {head: "OF THE CELL", right: true},
		{head: "MORE", right: true}, {head: "FROM", right: true}, {head: "TO", right: true}, {head: "PACKINGS", right: true, spare: 1}, {head: "SECONDS", right: true, spare: 1},
	}}
	for i := range scores {
		k := &scores[i]
		n, more := k.machines(), k.beside(k.against(found))
		row := []cell{{text: k.name()}, {text: fmt.Sprintf("%.0f", n.high)}, {text: fmt.Sprintf("%.0f", n.least)}, {text: fmt.Sprintf("%.0f", n.most)}, {text: fmt.Sprintf("%.1f %%", 100*n.high/float64(machines))}}
		if i == 0 {
			row = append(row, cell{text: "-"}, cell{text: "-"}, cell{text: "-"})
		} else {
			row = append(row, percents(more)...)
		}
		t.add(append(row, cell{text: strconv.Itoa(k.line.Packings)}, cell{text: fmt.Sprintf("%.1f", k.took.Seconds())})...)
	}
	t.print(c.stdout, c.out)
	fmt.Fprintf(c.stdout, "\nMachines that hold the work when the others are taken away at random: the 90th percentile of %s; more is beside %s, the median.\n",
		plural(len(found[0].line.Machines), "order"), scores[0].name())
	if priced >= 0 {
		t := &table{columns: []column{{head: "COST"}, {head: "MACHINES", right: true}, {head: "WITHOUT", right: true}, {head: "MORE", right: true}, {head: "FROM", right: true}, {head: "TO", right: true}}}
		for i := range found[priced:] {
			k := &found[priced+i]
			without := compacting{line: k.usual}
			t.add(append([]cell{{text: k.name()}, {text: fmt.Sprintf("%.0f", k.machines().high)}, {text: fmt.Sprintf("%.0f", without.machines().high)}}, percents(k.beside(k.usual))...)...)
		}
		fmt.Fprintln(c.stdout)
		t.print(c.stdout, c.out)
		fmt.Fprintf(c.stdout, "\nBy %s; more is the median of the same orders.\n", found[0].name())
	}
	waiting := slices.MaxFunc(found, func(a, b compacting) int { return cmp.Compare(a.line.Waiting, b.line.Waiting) })
	if n := waiting.line.Waiting; n > 0 {
		fmt.Fprintf(c.stdout, "At most %s that few machines could hold found no place (%s).\n", plural(n, "task"), waiting.name())
	}
	digest := uint64(0)
	for i := range found {
		digest = digest*31 + found[i].digest()
	}
	fmt.Fprintf(c.stdout, "All was done twice, digest %016x both times.\n", digest)
}

func percents(s spread) []cell {
	return []cell{{text: fmt.Sprintf("%+.1f %%", s.middle)}, {text: fmt.Sprintf("%+.1f %%", s.least)}, {text: fmt.Sprintf("%+.1f %%", s.most)}}
}

// compactTable is a row for each thing and order.
func compactTable(found []compacting) (head []string, rows [][]string) {
	for i := range found {
		k := &found[i]
		usual := k.against(found)
		for seed, n := range k.line.Machines {
			rows = append(rows, []string{k.name(), k.score.String(), strconv.Itoa(seed + 1), strconv.Itoa(n), strconv.Itoa(usual.Machines[seed]), thousandths(100 * (float64(n)/float64(max(usual.Machines[seed], 1)) - 1))})
		}
	}
	return []string{"what", "score", "seed", "machines", "beside_machines", "more_percent"}, rows
}

// compactCharts are how many machines the work takes of the cell, over the orders, and what ways of running the cell cost.
func compactCharts(found []compacting, machines int) []plot.Chart {
	sizes := plot.Chart{Title: "Machines that hold the work", X: plot.Axis{Label: "of the cell (%)"}, Y: plot.Axis{Label: "of the random orders (%)"}}
	var costs plot.Chart
	bars := plot.Series{Name: "median", Kind: plot.Bars}
	for i := range found {
		k := &found[i]
		if k.priced {
			costs.X.Names = append(costs.X.Names, k.name())
			bars.Points = append(bars.Points, plot.Point{X: float64(len(bars.Points)), Y: k.beside(k.usual).middle})
			continue
		}
		var values []float64
		for _, n := range k.line.Machines {
			values = append(values, 100*float64(n)/float64(machines))
		}
		sizes.Series = append(sizes.Series, plot.Series{Name: k.name(), Kind: plot.Step, Points: plot.CDF(values)})
	}
	if bars.Points == nil {
		return []plot.Chart{sizes}
	}
	costs.Title, costs.Y, costs.Series = "More machines", plot.Axis{Label: "more (%)"}, []plot.Series{bars}
	return []plot.Chart{sizes, costs}
}

func (c *call) compactJSON(args []string, cell *pack.Cell, found []compacting) error {
	list := func(priced bool) (docs []document) {
		for i := range found {
			k := &found[i]
			if k.priced != priced {
				continue
			}
			n, more := k.machines(), k.beside(k.against(found))
			docs = append(docs, document{
				"name": k.name(), "machines": n.high, "machines_least": n.least, "machines_most": n.most, "more_percent": more.middle, "more_percent_least": more.least, "more_percent_most": more.most,
				"waiting": k.line.Waiting, "copies": k.line.Copies, "packings": k.line.Packings, "took_seconds": k.took.Seconds(), "digest": fmt.Sprintf("%016x", k.digest()),
			})
		}
		return docs
	}
	return printJSON(c.stdout, document{
		"cell": args, "machines": len(cell.Machines), "tasks": len(cell.Tasks), "orders": len(found[0].line.Machines), "scores": list(false), "costs": list(true),
	})
}
