package sim

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
	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/document"
	"github.com/roost-batch/roost/internal/plot"
	"github.com/roost-batch/roost/internal/sim/packing"
	"github.com/roost-batch/roost/negotiator/match"
)

func packSubcommand() (frame.Subcommand, []ucli.Flag) {
	return frame.Subcommand{
		Name: "pack", Summary: "fill the machines of a GPU trace with its tasks", MinOperands: 2, MaxOperands: 2,
		OperandNames: "a list of nodes and a list of pods of the openb trace", Run: fillFromTrace,
	}, append(packFlags(), resultFlags()...)
}

// packFlags are what all that packs machines takes.
func packFlags() []ucli.Flag {
	return []ucli.Flag{
		&ucli.StringSliceFlag{Name: "score",
			Usage: "pack, compact: by which score machines are chosen: `hybrid|best-fit|worst-fit|fragmentation`, " +
				"which is the pool's own and what it is compared with; again for several"},
		seedsFlag(),
	}
}

// firstSeed is the seed of the first order of arrival, as in the published experiment.
const firstSeed = 42

// maxSeeds bounds how often something is done over.
const maxSeeds = 1000

// scores are those that --score names, and what they are otherwise.
func scores(c *frame.Invocation, otherwise ...match.ScorePolicy) (list []match.ScorePolicy, err error) {
	for _, word := range c.StringsFlag("score") {
		for name := range strings.SplitSeq(word, ",") {
			s, err := match.ParseScore(name)
			if err != nil || name == "" {
				return nil, frame.UsageErrorf(
					"--score: %q is none: there are hybrid, best-fit, worst-fit and fragmentation",
					name)
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
func seeds(c *frame.Invocation, usual int) (int, error) {
	n := usual
	if c.IsFlagSet("seeds") {
		n = c.CountFlag("seeds")
	}
	if n < 1 || n > maxSeeds {
		return 0, frame.UsageErrorf("--seeds %d: it is from 1 to %d", n, maxSeeds)
	}
	return n, nil
}

// readTrace reads the two lists of a trace.
func readTrace(c *frame.Invocation, args []string) (nodes []packing.TraceNode, pods []packing.TracePod, err error) {
	err = openMaybeGzip(c, args[0], func(file string, r io.Reader) (err error) {
		nodes, err = packing.ReadNodes(file, r)
		return err
	})
	if err == nil {
		err = openMaybeGzip(c, args[1], func(file string, r io.Reader) (err error) {
			pods, err = packing.ReadPods(file, r)
			return err
		})
	}
	return nodes, pods, err
}

// packingResult is what came of filling a cell by one score, in so many orders.
type packingResult struct {
	score    match.ScorePolicy
	runs     []*packing.FillResult
	duration time.Duration // of all, once
}

func fillFromTrace(c *frame.Invocation, args []string) error {
	scores, err := scores(c, match.Hybrid, match.BestFit, match.Fragmentation)
	if err != nil {
		return err
	}
	seeds, err := seeds(c, 10)
	if err != nil {
		return err
	}
	nodes, pods, err := readTrace(c, args)
	if err != nil {
		return err
	}
	cell, err := packing.NewCell(nodes, pods)
	if err != nil {
		return frame.KindErrorf(roost.Invalid, "%v", err)
	}
	var all []packingResult
	for _, s := range scores {
		f := packingResult{score: s}
		for seed := range seeds {
			began := time.Now()
			run, err := fillSeed(cell, s, seed)
			if err != nil {
				return frame.KindErrorf(roost.Invalid, "%v", err)
			}
			f.duration += time.Since(began)
			if again, err := fillSeed(cell, s, seed); err != nil || again.Digest != run.Digest {
				return frame.KindErrorf(roost.Internal,
					"%s: filling again, it came out differently: %016x and %016x; please tell us, with the lists", s,
					run.Digest, again.Digest)
			}
			f.runs = append(f.runs, run)
		}
		all = append(all, f)
	}
	head, rows := fillTable(all)
	if err := writeTable(c, head, rows); err != nil {
		return err
	}
	if err := writeCharts(c, fillCharts(all)...); err != nil {
		return err
	}
	if c.WantsJSON() {
		return fillJSON(c, args, all)
	}
	total := cell.Total()
	fmt.Fprintf(c.Stdout, "%s on %s: %s with %s; %s of %s\n\n", filepath.Base(document.PrintableText(args[1])),
		filepath.Base(document.PrintableText(args[0])),
		document.Plural(len(cell.Machines), "machine"), document.Plural(total.GPUs, "GPU"),
		document.Plural(len(cell.Tasks), "task"),
		document.Plural(len(cell.Requests), "kind"))
	printPacking(c, all)
	return nil
}

// fillSeed fills a cell in the order of a seed. One number is drawn before, as the
// published experiment does.
func fillSeed(cell *packing.CellWorkload, by match.ScorePolicy, seed int) (*packing.FillResult, error) {
	random := rand.New(rand.NewSource(int64(firstSeed + seed)))
	random.Int()
	return packing.FillCell(cell, by, random)
}

// percentileValues are the values of all orders at a percentage, rising.
func (f *packingResult) percentileValues(percent int, of func(packing.FillPoint) float64) (values []float64) {
	for _, run := range f.runs {
		values = append(values, of(run.PointAt(percent)))
	}
	slices.Sort(values)
	return values
}

func median(sorted []float64) float64 { return (sorted[len(sorted)/2] + sorted[(len(sorted)-1)/2]) / 2 }

func allocatedShare(p packing.FillPoint) float64  { return p.Allocated }
func fragmentedShare(p packing.FillPoint) float64 { return p.FragmentationRatio }
func lostShare(p packing.FillPoint) float64       { return p.FragmentationAmount }

func printPacking(c *frame.Invocation, all []packingResult) {
	t := &frame.TextTable{Columns: []frame.TableColumn{
		{Head: "SCORE"}, {Head: "GIVEN AWAY AT 100 %", RightAligned: true}, {Head: "FROM", RightAligned: true},
		{Head: "TO", RightAligned: true}, {Head: "AT 130 %", RightAligned: true},
		{Head: "USELESS AT 80 %", RightAligned: true, DropPriority: 2}, {Head: "AT 90 %", RightAligned: true,
			DropPriority: 2}, {Head: "AT 95 %", RightAligned: true, DropPriority: 2},
		{Head: "LOST AT 100 %", RightAligned: true, DropPriority: 1},
		{Head: "SECONDS", RightAligned: true, DropPriority: 3},
	}}
	for i := range all {
		f := &all[i]
		full := f.percentileValues(100, allocatedShare)
		row := []frame.TableCell{{Text: f.score.String()}}
		for _, v := range []float64{median(full), full[0], full[len(full)-1],
			median(f.percentileValues(packing.FillLimit, allocatedShare)),
			median(f.percentileValues(80, fragmentedShare)), median(f.percentileValues(90, fragmentedShare)),
			median(f.percentileValues(95, fragmentedShare)), median(f.percentileValues(100, lostShare))} {
			row = append(row, frame.TableCell{Text: fmt.Sprintf("%.2f", v)})
		}
		t.AddRow(append(row, frame.TableCell{Text: fmt.Sprintf("%.2f", f.duration.Seconds()/float64(len(f.runs)))})...)
	}
	t.Print(c.Stdout, c.OutScreen)
	fmt.Fprintf(c.Stdout, "\nPer cent of the GPUs, when as much has been asked for as there is, and in the end; "+
		"medians of %s of arrival.\n", document.Plural(len(all[0].runs), "order"))
	fmt.Fprintf(c.Stdout, "Useless is what of the idle the typical task cannot use, lost the same of all there is. "+
		"Seconds are those of one order.\n")
	for _, f := range all {
		digest := uint64(0)
		for _, run := range f.runs {
			digest = digest*31 + run.Digest
		}
		fmt.Fprintf(c.Stdout, "%s: each order twice, digest %016x both times\n", f.score, digest)
	}
}

// fillTable is a row for each score, order and percentage.
func fillTable(all []packingResult) (head []string, rows [][]string) {
	for _, f := range all {
		for seed, run := range f.runs {
			for q, p := range run.Points {
				rows = append(rows, []string{f.score.String(), strconv.Itoa(firstSeed + seed), strconv.Itoa(q),
					decimalText(p.Allocated), decimalText(p.FragmentationRatio), decimalText(p.FragmentationAmount)})
			}
		}
	}
	return []string{"score", "seed", "arrived_percent", "allocated_percent", "useless_percent_of_idle", "lost_percent"},
		rows
}

// fillCharts are medians over the requests: what is allocated when it becomes scarce, and
// what remains usable.
func fillCharts(all []packingResult) []plot.Chart {
	arrived := plot.ChartAxis{Label: "asked for (% of the GPUs)"}
	given := plot.Chart{Title: "Given away", X: arrived, Y: plot.ChartAxis{Label: "of the GPUs (%)"}}
	idle := plot.Chart{Title: "What of the idle GPUs the typical task cannot use", X: arrived,
		Y: plot.ChartAxis{Label: "of the idle (%)"}}
	amount := plot.Chart{Title: "The same of all GPUs", X: arrived, Y: plot.ChartAxis{Label: "of the GPUs (%)"}}
	for i := range all {
		f := &all[i]
		over := func(from int, of func(packing.FillPoint) float64) (s plot.ChartSeries) {
			s.Name = f.score.String()
			for q := from; q <= packing.FillLimit; q++ {
				s.Points = append(s.Points, plot.DataPoint{X: float64(q), Y: median(f.percentileValues(q, of))})
			}
			return s
		}
		given.Series = append(given.Series, over(80, allocatedShare))
		idle.Series = append(idle.Series, over(0, fragmentedShare))
		amount.Series = append(amount.Series, over(0, lostShare))
	}
	return []plot.Chart{given, idle, amount}
}

func fillJSON(c *frame.Invocation, args []string, all []packingResult) error {
	var list []frame.JSONDocument
	for i := range all {
		f := &all[i]
		var runs []frame.JSONDocument
		for seed, run := range f.runs {
			runs = append(runs, frame.JSONDocument{
				"seed": firstSeed + seed, "allocated_percent": run.PointAt(100).Allocated,
				"allocated_percent_at_130": run.PointAt(packing.FillLimit).Allocated,
				"lost_percent":             run.PointAt(100).FragmentationAmount, "arrived": run.Arrived,
				"placed": run.Placed,
				"digest": fmt.Sprintf("%016x", run.Digest),
			})
		}
		list = append(list, frame.JSONDocument{
			"score": f.score.String(), "allocated_percent": median(f.percentileValues(100, allocatedShare)),
			"allocated_percent_at_130": median(f.percentileValues(packing.FillLimit, allocatedShare)),
			"useless_percent_at_80":    median(f.percentileValues(80, fragmentedShare)),
			"useless_percent_at_90":    median(f.percentileValues(90, fragmentedShare)),
			"useless_percent_at_95":    median(f.percentileValues(95, fragmentedShare)),
			"lost_percent":             median(f.percentileValues(100, lostShare)),
			"took_seconds":             f.duration.Seconds() / float64(len(f.runs)), "orders": runs,
		})
	}
	return frame.PrintJSON(c.Stdout, frame.JSONDocument{"nodes": args[0], "pods": args[1], "scores": list})
}
