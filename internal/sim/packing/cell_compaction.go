package packing

import (
	"fmt"
	"slices"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/gpu"
	"github.com/roost-batch/roost/negotiator/fairshare"
	"github.com/roost-batch/roost/negotiator/match"
)

// CellCompaction asks how few machines hold the work of a cell (Borg §5.1): machines are
// taken away at random, and what is left is packed anew, from scratch, until the work no
// longer fits. How much that leaves says how good a policy is, in machines.
//
// It fits if nothing is left waiting but picky tasks: at most [MaxPicky] of all, which
// only a handful of the cell's machines could hold at all. A request that is more than
// half of the cell has its Requirements as a wish only. Where the work does not fit into
// the cell there are copies of its machines to begin with.
type CellCompaction struct {
	*CellWorkload
	Score      match.ScorePolicy
	Copies     int  // of the machines to begin with, 1 for the cell alone; see [CellCompaction.GrowToFit]
	Exact      bool // take the machines away one at a time; else see [CellCompaction.Run]
	Reclaiming bool // machines lend what production leaves of what it asks for; see [CellWorkload.SetReserved]

	machines   []*match.Machine // in the order of their names
	softened   []*match.Request
	pickyTasks map[*match.Request]bool
	packings   int
	lastSize   int // what the last run came to: the next is likely to be near
}

// Picky is how many of all tasks may wait if they are picky, in thousandths, and handful
// how many of the cell's machines make one of them so, likewise.
const (
	MaxPicky      = 2
	pickyMachines = 50
)

// maxCopies bounds how large a cell is made. What does not fit into so many has no place
// in any.
const maxCopies = 16

// CompactionResult is what came of a compaction.
type CompactionResult struct {
	Machines int // that hold the work; with one less, of those, it does not fit
	Waiting  int // picky tasks that have no place there
	Packings int // from scratch, that it took
}

// GrowToFit makes as many copies of the cell's machines as the work needs to fit,
// [CellCompaction.Copies] at least. The error wraps [roost.Exhausted] and says of what
// fits nowhere why, as the matcher explains it.
func (c *CellCompaction) GrowToFit() error {
	c.softenRequirements()
	for c.Copies = max(c.Copies, 1); ; c.Copies++ {
		c.machines = c.copies(c.Copies)
		waiting := c.packFromScratch(c.machines)
		if c.acceptsWaiting(waiting) {
			return nil
		}
		if c.Copies == maxCopies || c.isInfeasible(waiting) {
			return c.explainInfeasible(waiting)
		}
	}
}

// isInfeasible reports whether something waits that no machine could hold were it empty:
// then more of the same will not do.
func (c *CellCompaction) isInfeasible(waiting []match.UnplacedRequest) bool {
	n := 0
	for _, u := range waiting {
		if holderCount(c.Machines, u.Request) == 0 {
			n += u.Missing
		}
	}
	return n*1000 > MaxPicky*len(c.Tasks)
}

// explainInfeasible says what does not fit, and why, of what has most tasks.
func (c *CellCompaction) explainInfeasible(waiting []match.UnplacedRequest) error {
	n := 0
	worst := waiting[0]
	for _, u := range waiting {
		n += u.Missing
		if u.Missing > worst.Missing {
			worst = u
		}
	}
	worst.Request.Explain = true
	defer func() { worst.Request.Explain = false }()
	why := ""
	for _, u := range c.packFromScratch(c.machines) {
		if u.Request == worst.Request && u.Explanation != nil {
			why = ": " + u.Explanation.Summary
		}
	}
	return fmt.Errorf("%w: on %d times its machines the cell has no room for %d of %d tasks, %d of which are alike "+
		"and ask for %v%s",
		roost.Exhausted, c.Copies, n, len(c.Tasks), worst.Missing, worst.Request.Class.Resources, why)
}

// softenRequirements makes wishes of the requirements of what is more than half of the
// cell.
func (c *CellCompaction) softenRequirements() {
	total, all := c.Total(), 0.0
	all = fairshare.CoresWorth(total, total)
	c.softened, c.pickyTasks = slices.Clone(c.Requests), map[*match.Request]bool{}
	for i, r := range c.softened {
		e, ok := r.Class.Ad.Lookup(roost.AttrRequirements)
		if _, constant := e.Literal(); !ok || constant ||
			fairshare.CoresWorth(r.Class.Resources, total)*float64(r.Wanted) <= all/2 {
			continue
		}
		ad := r.Class.Ad.Copy()
		ad.Delete(roost.AttrRequirements)
		ad.Insert(roost.AttrRank, e)
		if class, err := match.NewClass(ad.String(), r.Submitter, r.Band, r.Class.Resources); err == nil {
			wishing := *r
			wishing.Class = class
			c.softened[i] = &wishing
		}
	}
}

// packFromScratch packs the work onto machines, from scratch, and returns what waits.
func (c *CellCompaction) packFromScratch(machines []*match.Machine) (waiting []match.UnplacedRequest) {
	c.packings++
	if c.Reserved != nil {
		return c.packReclaimed(machines)
	}
	return match.NewMatcher().Plan(&match.Snapshot{Machines: machines, Requests: c.softened, Shares: c.Shares,
		Score: c.Score}).Unplaced
}

// acceptsWaiting reports whether only so few picky tasks wait that it counts as fitting.
func (c *CellCompaction) acceptsWaiting(waiting []match.UnplacedRequest) bool {
	n := 0
	for _, u := range waiting {
		if n += u.Missing; n*1000 > MaxPicky*len(c.Tasks) || !c.isPicky(u.Request) {
			return false
		}
	}
	return true
}

// isPicky reports whether only a handful of the cell's machines could hold a task.
func (c *CellCompaction) isPicky(r *match.Request) bool {
	few, known := c.pickyTasks[r]
	if !known {
		few = holderCount(c.Machines, r)*1000 <= pickyMachines*len(c.Machines)
		c.pickyTasks[r] = few
	}
	return few
}

// Run takes machines away in random order until the work no longer fits, and says how
// many the last cell had that it fitted into.
//
// The protocol is to take them away one at a time, which is a packing for each. It is
// kept to here but for this: no packing is tried of which it is sure that there is too
// little of something; above that a place is looked for by halving where a cell holds the
// work and the next smaller does not; and then the next [above] larger ones are tried one
// by one, and if one of them does not hold it the place is looked for above that. So it
// comes to the same unless a cell that does not hold the work is followed by so many
// smaller ones that do. In cells of thousands of machines a step is a thousandth, not one
// machine. [CellCompaction.Exact] does as the protocol says.
func (c *CellCompaction) Run(random RandomSource) CompactionResult {
	order := make([]int, len(c.machines))
	for i := range order {
		order[i] = i
	}
	random.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
	r := &removalOrder{CellCompaction: c, order: order, tried: map[int]trialResult{}, step: 1}
	c.packings = 0
	n := 0
	if c.Exact {
		for n = len(order); n > 0 && r.fitsFirst(n-1); n-- {
		}
	} else {
		n = r.findMinimum()
	}
	r.fitsFirst(n)
	c.lastSize = n
	return CompactionResult{Machines: n, Waiting: r.tried[n].waiting, Packings: c.packings}
}

// triedAbove is how many cells that are larger than the one that was found are tried,
// too.
const triedAbove = 6

// removalOrder is one order in which machines are taken away.
type removalOrder struct {
	*CellCompaction
	order []int // the first so many are left
	tried map[int]trialResult
	step  int // machines of one step
}

type trialResult struct {
	fits    bool
	waiting int
}

// fitsFirst reports whether the first n machines of the order hold the work.
func (r *removalOrder) fitsFirst(n int) bool {
	if t, known := r.tried[n]; known {
		return t.fits
	}
	some := slices.Clone(r.order[:n])
	slices.Sort(some)
	machines := make([]*match.Machine, n)
	for i, at := range some {
		machines[i] = r.machines[at]
	}
	waiting, t := r.packFromScratch(machines), trialResult{}
	for _, u := range waiting {
		t.waiting += u.Missing
	}
	t.fits = r.acceptsWaiting(waiting)
	r.tried[n] = t
	return t.fits
}

// findMinimum finds how many machines are left at last, of which all together hold the
// work.
func (r *removalOrder) findMinimum() int {
	low, high := r.lowerBound()-1, len(r.order) // low does not hold it, high does
	guess := r.lastSize
	if guess == 0 { // a copy less was not enough, or too little of something is
		guess = max(low+low/32, (r.Copies-1)*len(r.Machines))
	}
	low, high = r.narrowBounds(low, high, guess)
	for {
		r.step = max(1, high/2000)
		for high-low > r.step {
			if mid := (low + high) / 2; r.fitsFirst(mid) {
				high = mid
			} else {
				low = mid
			}
		}
		larger := r.largestFailingAbove(high)
		if larger == 0 {
			return high
		}
		low, high = r.narrowBounds(larger, len(r.order), larger+triedAbove*r.step)
	}
}

// narrowBounds narrows between what does not hold the work and does, from a guess on, in
// steps that grow.
func (r *removalOrder) narrowBounds(low, high, guess int) (int, int) {
	if guess <= low || guess >= high {
		return low, high
	}
	step := 1 + guess/64
	if r.fitsFirst(guess) {
		for high = guess; high-step > low; step *= 2 {
			if !r.fitsFirst(high - step) {
				return high - step, high
			}
			high -= step
		}
		return low, high
	}
	for low = guess; low+step < high; step *= 2 {
		if r.fitsFirst(low + step) {
			return low, low + step
		}
		low += step
	}
	return low, high
}

// largestFailingAbove is the largest of the cells that are next larger which does not
// hold the work, 0 if all do.
func (r *removalOrder) largestFailingAbove(n int) (larger int) {
	for i := 1; i <= triedAbove && n+i*r.step <= len(r.order); i++ {
		if !r.fitsFirst(n + i*r.step) {
			larger = n + i*r.step
		}
	}
	return larger
}

// lowerBound is of how many machines on there may be enough of everything, whatever is
// done.
func (r *removalOrder) lowerBound() int {
	var work, have roost.Resources
	for _, q := range r.softened {
		u := q.Class.Resources
		if part, known := r.Reserved[q.Key]; known && r.Reclaiming && q.Band.IsProd() {
			u.CPU, u.Memory = roost.MilliCPU(float64(u.CPU)*part.CPU), roost.Bytes(float64(u.Memory)*part.Memory)
		}
		if q.Class.AppClass == gpu.StreamClass {
			u.CPU = 0 // it may have that of batch
		}
		if u.GPUMemory > 0 {
			u.GPUs = 0 // shares of cards: how many cards they need at least the sums do not tell
		}
		n := q.Wanted
		work = work.Add(roost.Resources{CPU: u.CPU * roost.MilliCPU(n), Memory: u.Memory * roost.Bytes(n),
			Disk: u.Disk * roost.Bytes(n), GPUs: u.GPUs * n})
	}
	work = perThousand(work, 1000-MaxPicky)
	for n, at := range r.order {
		if work.FitsIn(have) {
			return n
		}
		have = have.Add(r.machines[at].Total)
	}
	return len(r.order)
}

// perThousand is so many thousandths.
func perThousand(r roost.Resources, thousandths int) roost.Resources {
	k := int64(thousandths)
	return roost.Resources{
		CPU: r.CPU * roost.MilliCPU(k) / 1000, Memory: roost.Bytes(float64(r.Memory) * float64(k) / 1000),
		GPUs: r.GPUs * thousandths / 1000,
	}
}
