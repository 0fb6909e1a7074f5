package sim

import (
	"errors"
	"fmt"
	"math/rand"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"

	ucli "github.com/urfave/cli/v2"
	"golang.org/x/sync/errgroup"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/cli/cell"
	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/document"
	"github.com/roost-batch/roost/internal/sim/packing"
	"github.com/roost-batch/roost/negotiator/match"
)

func compactSubcommand() (frame.Subcommand, []ucli.Flag) {
	return frame.Subcommand{
			Name: "compact", Summary: "find out how few machines hold the work of a cell", MinOperands: 1,
			MaxOperands:  2,
			OperandNames: "a checkpoint of a cell, or a list of nodes and a list of pods of the openb trace",
			Run:          compactCell,
		}, append(append(packFlags(),
			&ucli.BoolFlag{Name: "ways", Usage: "compact: say too what it costs to keep production apart, or each " +
				"user, to have sizes in powers of two, and to reclaim nothing"},
			&ucli.StringFlag{Name: "reserved", Usage: "compact: what production is expected to use of what it asks " +
				"for, in per cent, where nobody knows: `LEAST-MOST`", Value: "40-80"},
			&ucli.BoolFlag{Name: "exact", Usage: "compact: take machines away one at a time, which takes long"},
		), resultFlags()...)
}

// compactionRun is one thing that is compacted for, in each of so many random orders.
type compactionRun struct {
	score              match.ScorePolicy
	cost               packing.ArrangementCost
	isCost             bool                // it is a cost, and not a score
	line, baselineLine packing.StudyResult // usual: what a cost is beside
	duration           time.Duration
}

func (k *compactionRun) name() string {
	if k.isCost {
		return k.cost.String()
	}
	return k.score.String()
}

// digest covers both lines of a run, which must come out the same twice.
func (k *compactionRun) digest() uint64 { return k.line.Digest()*31 + k.baselineLine.Digest() }

// compactionCell is a cell that is compacted.
type compactionCell struct {
	source  func() (*packing.CellWorkload, error) // the cell anew: one serves one goroutine
	seeds   int
	exact   bool
	reserve packing.ReservationModel
}

func (c *compactionCell) compactRandom(seed int) packing.RandomSource {
	return rand.New(rand.NewSource(int64(seed) + 1))
}

// compactByScore compacts by one score.
func (c *compactionCell) compactByScore(by match.ScorePolicy) (compactionRun, error) {
	k, began := compactionRun{score: by}, time.Now()
	cell, err := c.source()
	if err == nil {
		k.line, err = packing.Study([]*packing.CellWorkload{cell}, packing.CellCompaction{Score: by, Exact: c.exact},
			c.seeds, c.compactRandom)
	}
	k.duration = time.Since(began)
	return k, err
}

// compactByCost compacts for one cost.
func (c *compactionCell) compactByCost(by match.ScorePolicy, cost packing.ArrangementCost,
	usual packing.StudyResult) (compactionRun, error) {
	k, began := compactionRun{score: by, cost: cost, isCost: true}, time.Now()
	cell, err := c.source()
	if err == nil {
		k.line, k.baselineLine, err = cost.Study(cell, by, usual, c.reserve, c.seeds, c.compactRandom)
	}
	k.duration = time.Since(began)
	return k, err
}

// verifyCompactions does things side by side, each two times, and holds that both came
// out the same.
func verifyCompactions(n int, do func(i int) (compactionRun, error)) ([]compactionRun, error) {
	first, second := make([]compactionRun, n), make([]compactionRun, n)
	var all errgroup.Group
	all.SetLimit(runtime.NumCPU())
	for i := range n {
		for _, into := range [][]compactionRun{first, second} {
			all.Go(func() (err error) {
				into[i], err = do(i)
				return err
			})
		}
	}
	if err := all.Wait(); err != nil {
		return nil, err
	}
	for i := range first {
		if a, b := first[i].digest(), second[i].digest(); a != b {
			return nil, frame.KindErrorf(roost.Internal,
				"%s: compacted again, it came out differently: %016x and %016x; please tell us, with the cell",
				first[i].name(), a, b)
		}
	}
	return first, nil
}

func compactCell(c *frame.Invocation, args []string) error {
	scores, err := scores(c, match.Hybrid, match.BestFit, match.WorstFit)
	if err != nil {
		return err
	}
	how := compactionCell{exact: c.Flag("exact")}
	if how.seeds, err = seeds(c, 11); err != nil {
		return err
	}
	if how.reserve, err = reservedFlag(c); err != nil {
		return err
	}
	if how.source, err = cellSource(c, args); err != nil {
		return err
	}
	cell, err := how.source()
	if err != nil {
		return err
	}
	found, err := verifyCompactions(len(scores), func(i int) (compactionRun, error) {
		return how.compactByScore(scores[i])
	})
	if err == nil && c.Flag("ways") {
		var more []compactionRun
		usual, costs := found[0].line, packing.AllCosts()
		more, err = verifyCompactions(len(costs), func(i int) (compactionRun, error) {
			return how.compactByCost(scores[0], costs[i], usual)
		})
		found = append(found, more...)
	}
	if err != nil {
		return compactionError(err)
	}
	head, rows := compactTable(found)
	if err := writeTable(c, head, rows); err != nil {
		return err
	}
	if err := writeCharts(c, compactCharts(found, len(cell.Machines))...); err != nil {
		return err
	}
	if c.WantsJSON() {
		return compactJSON(c, args, cell, found)
	}
	var names []string
	for _, a := range args {
		names = append(names, filepath.Base(document.PrintableText(a)))
	}
	fmt.Fprintf(c.Stdout, "%s: %s, %s\n\n", strings.Join(names, ", "), document.Plural(len(cell.Machines), "machine"),
		document.Plural(len(cell.Tasks), "task"))
	printCompacted(c, found, len(cell.Machines))
	return nil
}

// compactionError is an error of a compaction in the words of the commands.
func compactionError(err error) error {
	if errors.Is(err, roost.Exhausted) {
		return frame.WithHint(frame.KindErrorf(roost.Invalid, "%s",
			strings.TrimPrefix(err.Error(), roost.Exhausted.Error()+": ")),
			"leave out what has no place, or choose another --score")
	}
	return err
}

// reservedFlag reads --reserved.
func reservedFlag(c *frame.Invocation) (r packing.ReservationModel, err error) {
	least, most, _ := strings.Cut(c.StringFlag("reserved"), "-")
	r.Min, err = strconv.Atoi(least)
	if err == nil {
		r.Max, err = strconv.Atoi(most)
	}
	if err != nil || r.Min < 0 || r.Min > r.Max || r.Max > 100 {
		return r, frame.UsageErrorf("--reserved %s: it is two whole numbers from 0 to 100 with - between them, "+
			"as in 40-80",
			c.StringFlag("reserved"))
	}
	return r, nil
}

// cellSource reads a cell from a checkpoint or a trace, and makes it anew whenever it is
// asked.
func cellSource(c *frame.Invocation, args []string) (func() (*packing.CellWorkload, error), error) {
	if len(args) == 2 {
		nodes, pods, err := readTrace(c, args)
		if err != nil {
			return nil, err
		}
		return func() (*packing.CellWorkload, error) {
			cell, err := packing.NewCell(nodes, pods)
			if err != nil {
				err = frame.KindErrorf(roost.Invalid, "%v", err)
			}
			return cell, err
		}, nil
	}
	p, err := cell.ReadCellCheckpoint(c, args[0])
	if err != nil {
		return nil, err
	}
	var one sync.Mutex // a checkpoint is read by one at a time
	return func() (*packing.CellWorkload, error) {
		one.Lock()
		defer one.Unlock()
		cell, err := packing.FromCheckpoint(p)
		if err != nil {
			err = frame.KindErrorf(roost.Invalid, "%s: %s", document.PrintableText(args[0]),
				strings.TrimPrefix(err.Error(), roost.Invalid.Error()+": "))
		}
		return cell, err
	}, nil
}
