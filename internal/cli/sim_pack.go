package cli

import (
	"fmt"
	"io"
	"math/rand"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	ucli "github.com/urfave/cli/v2"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/plot"
	"github.com/roost-batch/roost/internal/sim/pack"
	"github.com/roost-batch/roost/negotiator/match"
)

func simPack() (branch, []ucli.Flag) {
	return branch{
		name: "pack", brief: "fill the machines of a GPU trace with its tasks", least: 2, most: 2, wants: "a list of nodes and a list of pods of the openb trace", do: fillTrace,
	}, append(packFlags(), resultFlags()...)
}

// packFlags are what all that packs machines takes.
func packFlags() []ucli.Flag {
	return []ucli.Flag{
		&ucli.StringSliceFlag{Name: "score", Usage: "pack, compact: by which score machines are chosen: `hybrid|best-fit|worst-fit|fragmentation`, which is the pool's own and what it is compared with; again for several"},
		seedsFlag(),
	}
}

// firstSeed is the seed of the first order of arrival, as in the published experiment.
const firstSeed = 42

// maxSeeds bounds how often something is done over.
const maxSeeds = 1000

// scores are those that --score names, and what they are otherwise.
func (c *call) scores(otherwise ...match.Score) (list []match.Score, err error) {
	for _, word := range c.texts("score") {
		for name := range strings.SplitSeq(word, ",") {
			s, err := match.ParseScore(name)
			if err != nil || name == "" {
				return nil, usage("--score: %q is none: there are hybrid, best-fit, worst-fit and fragmentation", name)
			}
			if !slices.Contains(list, s) {
				list = append(list, s)
			}
		}
	}
	if list == nil {
		list = otherwise
	}
	return list, nil
}

// seeds is how often something random is done: as --seeds says, or as usual.
func (c *call) seeds(usual int) (int, error) {
	n := usual
	if c.given("seeds") {
		n = c.count("seeds")
	}
	if n < 1 || n > maxSeeds {
		return 0, usage("--seeds %d: it is from 1 to %d", n, maxSeeds)
	}
	return n, nil
}

// readTrace reads the two lists of a trace.
func (c *call) readTrace(args []string) (nodes []pack.Node, pods []pack.Pod, err error) {
	err = c.unpacked(args[0], func(file string, r io.Reader) (err error) {
		nodes, err = pack.ReadNodes(file, r)
		return err
	})
	if err == nil {
		err = c.unpacked(args[1], func(file string, r io.Reader) (err error) {
			pods, err = pack.ReadPods(file, r)
			return err
		})
	}
	return nodes, pods, err
}

// filling is what came of filling a cell by one score, in so many orders.
type filling struct {
	score match.Score
	runs  []*pack.Filled
	took  time.Duration // of all, once
}

func fillTrace(c *call, args []string) error {
	scores, err := c.scores(match.Hybrid, match.BestFit, match.Fragmentation)
	if err != nil {
		return err
	}
	seeds, err := c.seeds(10)
	if err != nil {
		return err
	}
	nodes, pods, err := c.readTrace(args)
	if err != nil {
		return err
	}
	cell, err := pack.NewCell(nodes, pods)
	if err != nil {
		return problem(roost.Invalid, "%v", err)
	}
	var all []filling
	for _, s := range scores {
		f := filling{score: s}
		for seed := range seeds {
			began := time.Now()
			run, err := fillOnce(cell, s, seed)
			if err != nil {
				return problem(roost.Invalid, "%v", err)
			}
			f.took += time.Since(began)
			if again, err := fillOnce(cell, s, seed); err != nil || again.Digest != run.Digest {
				return problem(roost.Internal, "%s: filling again, it came out differently: %016x and %016x; please tell us, with the lists", s, run.Digest, again.Digest)
			}
			f.runs = append(f.runs, run)
		}
		all = append(all, f)
	}
	if err := c.writeTable(fillTable(all)); err != nil {
		return err
	}
	if err := c.writePicture(fillCharts(all)...); err != nil {
		return err
	}
	if c.json() {
		return c.fillJSON(args, all)
	}
	total := cell.Total()
	fmt.Fprintf(c.stdout, "%s on %s: %s with %s; %s of %s\n\n", filepath.Base(printable(args[1])), filepath.Base(printable(args[0])),
		plural(len(cell.Machines), "machine"), plural(total.GPUs, "GPU"), plural(len(cell.Tasks), "task"), plural(len(cell.Requests), "kind"))
	c.printFilled(all)
	return nil
}

// fillOnce fills a cell in the order of a seed. One number is drawn before, as the published experiment does.
func fillOnce(cell *pack.Cell, by match.Score, seed int) (*pack.Filled, error) {
	random := rand.New(rand.NewSource(int64(firstSeed + seed)))
	random.Int()
	return pack.Fill(cell, by, random)
}

// at are the values of all orders at a percentage, rising.
func (f *filling) at(percent int, of func(pack.Point) float64) (values []float64) {
	for _, run := range f.runs {
		values = append(values, of(run.At(percent)))
	}
	slices.Sort(values)
	return values
}

func middle(sorted []float64) float64 { return (sorted[len(sorted)/2] + sorted[(len(sorted)-1)/2]) / 2 }

func allocated(p pack.Point) float64 { return p.Allocated }
func useless(p pack.Point) float64   { return p.Useless }
func lost(p pack.Point) float64      { return p.Lost }

func (c *call) printFilled(all []filling) {
	t := &table{columns: []column{
		{head: "SCORE"}, {head: "GIVEN AWAY AT 100 %", right: true}, {head: "FROM", right: true}, {head: "TO", right: true}, {head: "AT 130 %", right: true},
		{head: "USELESS AT 80 %", right: true, spare: 2}, {head: "AT 90 %", right: true, spare: 2}, {head: "AT 95 %", right: true, spare: 2},
		{head: "LOST AT 100 %", right: true, spare: 1}, {head: "SECONDS", right: true, spare: 3},
	}}
	for i := range all {
		f := &all[i]
		full := f.at(100, allocated)
		row := []cell{{text: f.score.String()}}
		for _, v := range []float64{middle(full), full[0], full[len(full)-1], middle(f.at(pack.Overload, allocated)), middle(f.at(80, useless)), middle(f.at(90, useless)), middle(f.at(95, useless)), middle(f.at(100, lost))} {
			row = append(row, cell{text: fmt.Sprintf("%.2f", v)})
		}
		t.add(append(row, cell{text: fmt.Sprintf("%.2f", f.took.Seconds()/float64(len(f.runs)))})...)
	}
	t.print(c.stdout, c.out)
	fmt.Fprintf(c.stdout, "\nPer cent of the GPUs, when as much has been asked for as there is, and in the end; medians of %s of arrival.\n", plural(len(all[0].runs), "order"))
	fmt.Fprintf(c.stdout, "Useless is what of the idle the typical task cannot use, lost the same of all there is. Seconds are those of one order.\n")
	for _, f := range all {
		digest := uint64(0)
		for _, run := range f.runs {
			digest = digest*31 + run.Digest
		}
		fmt.Fprintf(c.stdout, "%s: each order twice, digest %016x both times\n", f.score, digest)
	}
}

// fillTable is a row for each score, order and percentage.
func fillTable(all []filling) (head []string, rows [][]string) {
	for _, f := range all {
		for seed, run := range f.runs {
			for q, p := range run.Points {
				rows = append(rows, []string{f.score.String(), strconv.Itoa(firstSeed + seed), strconv.Itoa(q), thousandths(p.Allocated), thousandths(p.Useless), thousandths(p.Lost)})
			}
		}
	}
	return []string{"score", "seed", "arrived_percent", "allocated_percent", "useless_percent_of_idle", "lost_percent"}, rows
}

// fillCharts are medians over what was asked for: what is given away where it becomes scarce, and what of the rest is of use.
func fillCharts(all []filling) []plot.Chart {
	arrived := plot.Axis{Label: "asked for (% of the GPUs)"}
	given := plot.Chart{Title: "Given away", X: arrived, Y: plot.Axis{Label: "of the GPUs (%)"}}
	idle := plot.Chart{Title: "What of the idle GPUs the typical task cannot use", X: arrived, Y: plot.Axis{Label: "of the idle (%)"}}
	amount := plot.Chart{Title: "The same of all GPUs", X: arrived, Y: plot.Axis{Label: "of the GPUs (%)"}}
	for i := range all {
		f := &all[i]
		over := func(from int, of func(pack.Point) float64) (s plot.Series) {
			s.Name = f.score.String()
			for q := from; q <= pack.Overload; q++ {
				s.Points = append(s.Points, plot.Point{X: float64(q), Y: middle(f.at(q, of))})
			}
			return s
		}
		given.Series = append(given.Series, over(80, allocated))
		idle.Series = append(idle.Series, over(0, useless))
		amount.Series = append(amount.Series, over(0, lost))
	}
	return []plot.Chart{given, idle, amount}
}

func (c *call) fillJSON(args []string, all []filling) error {
	var list []document
	for i := range all {
		f := &all[i]
		var runs []document
		for seed, run := range f.runs {
			runs = append(runs, document{
				"seed": firstSeed + seed, "allocated_percent": run.At(100).Allocated, "allocated_percent_at_130": run.At(pack.Overload).Allocated,
				"lost_percent": run.At(100).Lost, "arrived": run.Arrived, "placed": run.Placed, "digest": fmt.Sprintf("%016x", run.Digest),
			})
		}
		list = append(list, document{
			"score": f.score.String(), "allocated_percent": middle(f.at(100, allocated)), "allocated_percent_at_130": middle(f.at(pack.Overload, allocated)),
			"useless_percent_at_80": middle(f.at(80, useless)), "useless_percent_at_90": middle(f.at(90, useless)), "useless_percent_at_95": middle(f.at(95, useless)),
			"lost_percent": middle(f.at(100, lost)), "took_seconds": f.took.Seconds() / float64(len(f.runs)), "orders": runs,
		})
	}
	return printJSON(c.stdout, document{"nodes": args[0], "pods": args[1], "scores": list})
}
