package cli

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
	"github.com/roost-batch/roost/internal/sim/pack"
	"github.com/roost-batch/roost/negotiator/match"
)

func simCompact() (branch, []ucli.Flag) {
	return branch{
			name: "compact", brief: "find out how few machines hold the work of a cell", least: 1, most: 2,
			wants: "a checkpoint of a cell, or a list of nodes and a list of pods of the openb trace", do: compact,
		}, append(append(packFlags(),
			&ucli.BoolFlag{Name: "ways", Usage: "compact: say too what it costs to keep production apart, or each user, to have sizes in powers of two, and to reclaim nothing"},
			&ucli.StringFlag{Name: "reserved", Usage: "compact: what production is expected to use of what it asks for, in per cent, where nobody knows: `LEAST-MOST`", Value: "40-80"},
			&ucli.BoolFlag{Name: "exact", Usage: "compact: take machines away one at a time, which takes long"},
		), resultFlags()...)
}

// compacting is one thing that is compacted for, in each of so many random orders.
type compacting struct {
	score       match.Score
	cost        pack.Cost
	priced      bool      // it is a cost, and not a score
	line, usual pack.Line // usual: what a cost is beside
	took        time.Duration
}

func (k *compacting) name() string {
	if k.priced {
		return k.cost.String()
	}
	return k.score.String()
}

// lines are all lines of it: what has to come out the same twice.
func (k *compacting) digest() uint64 { return k.line.Digest()*31 + k.usual.Digest() }

// compaction is a cell that is compacted.
type compaction struct {
	source  func() (*pack.Cell, error) // the cell anew: one serves one goroutine
	seeds   int
	exact   bool
	reserve pack.Reserving
}

func (c *compaction) random(seed int) pack.Random { return rand.New(rand.NewSource(int64(seed) + 1)) }

// scored compacts by one score.
func (c *compaction) scored(by match.Score) (compacting, error) {
	k, began := compacting{score: by}, time.Now()
	cell, err := c.source()
	if err == nil {
		k.line, err = pack.Study([]*pack.Cell{cell}, pack.Compaction{Score: by, Exact: c.exact}, c.seeds, c.random)
	}
	k.took = time.Since(began)
	return k, err
}

// priced compacts for one cost.
func (c *compaction) priced(by match.Score, cost pack.Cost, usual pack.Line) (compacting, error) {
	k, began := compacting{score: by, cost: cost, priced: true}, time.Now()
	cell, err := c.source()
	if err == nil {
		k.line, k.usual, err = cost.Price(cell, by, usual, c.reserve, c.seeds, c.random)
	}
	k.took = time.Since(began)
	return k, err
}

// compactTwice does things side by side, each two times, and holds that both came out the same.
func compactTwice(n int, do func(i int) (compacting, error)) ([]compacting, error) {
	first, second := make([]compacting, n), make([]compacting, n)
	var all errgroup.Group
	all.SetLimit(runtime.NumCPU())
	for i := range n {
		for _, into := range [][]compacting{first, second} {
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
			return nil, problem(roost.Internal, "%s: compacted again, it came out differently: %016x and %016x; please tell us, with the cell", first[i].name(), a, b)
		}
	}
	return first, nil
}

func compact(c *call, args []string) error {
	scores, err := c.scores(match.Hybrid, match.BestFit, match.WorstFit)
	if err != nil {
		return err
	}
	how := compaction{exact: c.flag("exact")}
	if how.seeds, err = c.seeds(11); err != nil {
		return err
	}
	if how.reserve, err = c.reserving(); err != nil {
		return err
	}
	if how.source, err = c.cellSource(args); err != nil {
		return err
	}
	cell, err := how.source()
	if err != nil {
		return err
	}
	found, err := compactTwice(len(scores), func(i int) (compacting, error) { return how.scored(scores[i]) })
	if err == nil && c.flag("ways") {
		var more []compacting
		usual, costs := found[0].line, pack.Costs()
		more, err = compactTwice(len(costs), func(i int) (compacting, error) { return how.priced(scores[0], costs[i], usual) })
		found = append(found, more...)
	}
	if err != nil {
		return compactProblem(err)
	}
	if err := c.writeTable(compactTable(found)); err != nil {
		return err
	}
	if err := c.writePicture(compactCharts(found, len(cell.Machines))...); err != nil {
		return err
	}
	if c.json() {
		return c.compactJSON(args, cell, found)
	}
	var names []string
	for _, a := range args {
		names = append(names, filepath.Base(printable(a)))
	}
	fmt.Fprintf(c.stdout, "%s: %s, %s\n\n", strings.Join(names, ", "), plural(len(cell.Machines), "machine"), plural(len(cell.Tasks), "task"))
	c.printCompacted(found, len(cell.Machines))
	return nil
}

// compactProblem is an error of a compaction in the words of the commands.
func compactProblem(err error) error {
	if errors.Is(err, roost.Exhausted) {
		return advise(problem(roost.Invalid, "%s", strings.TrimPrefix(err.Error(), roost.Exhausted.Error()+": ")), "leave out what has no place, or choose another --score")
	}
	return err
}

// reserving reads --reserved.
func (c *call) reserving() (r pack.Reserving, err error) {
	least, most, _ := strings.Cut(c.text("reserved"), "-")
	r.Least, err = strconv.Atoi(least)
	if err == nil {
		r.Most, err = strconv.Atoi(most)
	}
	if err != nil || r.Least < 0 || r.Least > r.Most || r.Most > 100 {
		return r, usage("--reserved %s: it is two whole numbers from 0 to 100 with - between them, as in 40-80", c.text("reserved"))
	}
	return r, nil
}

// cellSource reads a cell from a checkpoint or a trace, and makes it anew whenever it is asked.
func (c *call) cellSource(args []string) (func() (*pack.Cell, error), error) {
	if len(args) == 2 {
		nodes, pods, err := c.readTrace(args)
		if err != nil {
			return nil, err
		}
		return func() (*pack.Cell, error) {
			cell, err := pack.NewCell(nodes, pods)
			if err != nil {
				err = problem(roost.Invalid, "%v", err)
			}
			return cell, err
		}, nil
	}
	p, err := c.picture(args[0])
	if err != nil {
		return nil, err
	}
	var one sync.Mutex // a checkpoint is read by one at a time
	return func() (*pack.Cell, error) {
		one.Lock()
		defer one.Unlock()
		cell, err := pack.OfCheckpoint(p)
		if err != nil {
			err = problem(roost.Invalid, "%s: %s", printable(args[0]), strings.TrimPrefix(err.Error(), roost.Invalid.Error()+": "))
		}
		return cell, err
	}, nil
}
