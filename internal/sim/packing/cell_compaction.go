package packing

import (
	"fmt"
	"slices"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/gpu"
	"github.com/roost-batch/roost/negotiator/fairshare"
	"github.com/roost-batch/roost/negotiator/match"
)

// CellCompaction finds how few machines hold the work of a cell (Borg §5.1). It removes
// machines at random and packs the work onto the rest from scratch, until it no longer
// fits. The number of machines that are left measures the quality of a policy.
//
// The work fits if only picky tasks are left waiting, at most [MaxPicky] of all. A task
// is picky if only a few of the cell's machines could hold it at all. Requirements of a
// request that is more than half of the cell become soft constraints. If the work does
// not fit into the cell, the compaction begins with copies of its machines.
type CellCompaction struct {
	*CellWorkload
	Score match.ScorePolicy
	// copies of the machines to begin with, 1 for the cell alone; see
	// [CellCompaction.GrowToFit]
	Copies     int
	Exact      bool // remove machines one at a time; otherwise see [CellCompaction.Run]
	Reclaiming bool // machines offer what production leaves of its requests; see [CellWorkload.SetReserved]

	machines   []*match.Machine // in the order of their names
	softened   []*match.Request
	pickyTasks map[*match.Request]bool
	packings   int
	lastSize   int // result of the last run: the next one is likely to be near it
}

// MaxPicky is the part of all tasks that may wait because they are picky, in thousandths.
// A task is picky if at most pickyMachines thousandths of the cell's machines could hold
// it.
const (
	MaxPicky      = 2
	pickyMachines = 50
)

// maxCopies bounds the copies of a cell's machines. Work that does not fit into that many
// fits into no number.
const maxCopies = 16

// CompactionResult is the result of a compaction.
type CompactionResult struct {
	Machines int // number that holds the work; without the last one it does not fit
	Waiting  int // picky tasks that are left waiting
	Packings int // number of packings from scratch
}

// GrowToFit increases the copies of the cell's machines until the work fits. It begins
// with [CellCompaction.Copies]. The error wraps [roost.Exhausted] and contains the
// matcher's explanation of what does not fit.
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

// isInfeasible reports whether tasks wait that no empty machine could hold. Then more
// machines of the same kinds do not help.
func (c *CellCompaction) isInfeasible(waiting []match.UnplacedRequest) bool {
	n := 0
	for _, u := range waiting {
		if holderCount(c.Machines, u.Request) == 0 {
			n += u.Missing
		}
	}
	return n*1000 > MaxPicky*len(c.Tasks)
}

// explainInfeasible explains why the request with the most waiting tasks does not fit.
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

// softenRequirements makes soft constraints of the requirements of requests that are more
// than half of the cell.
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

// packFromScratch packs the work onto empty machines and returns what is left waiting.
func (c *CellCompaction) packFromScratch(machines []*match.Machine) (waiting []match.UnplacedRequest) {
	c.packings++
	if c.Reserved != nil {
		return c.packReclaimed(machines)
	}
	return match.NewMatcher().Plan(&match.Snapshot{Machines: machines, Requests: c.softened, Shares: c.Shares,
		Score: c.Score}).Unplaced
}

// acceptsWaiting reports whether so few picky tasks are left waiting that the work fits.
func (c *CellCompaction) acceptsWaiting(waiting []match.UnplacedRequest) bool {
	n := 0
	for _, u := range waiting {
		if n += u.Missing; n*1000 > MaxPicky*len(c.Tasks) || !c.isPicky(u.Request) {
			return false
		}
	}
	return true
}

// isPicky reports whether only a few of the cell's machines could hold a task of the
// request.
func (c *CellCompaction) isPicky(r *match.Request) bool {
	few, known := c.pickyTasks[r]
	if !known {
		few = holderCount(c.Machines, r)*1000 <= pickyMachines*len(c.Machines)
		c.pickyTasks[r] = few
	}
	return few
}

// Run removes machines in random order until the work no longer fits. It returns the size
// of the last cell into which it fitted.
//
// By the protocol one machine is removed at a time, and each removal costs a packing. Run
// deviates in three ways. It tries no cell that certainly lacks some resource. It
// searches by bisection for a cell that holds the work while the next smaller one does
// not. Then it tries the [triedAbove] next larger cells one by one, and if one of them
// does not hold the work, it searches above that one. So the result is the protocol's,
// unless a cell that does not hold the work is followed by at least that many smaller
// ones that do. In cells of thousands of machines a step is about a thousandth of the
// cell, not one machine. With [CellCompaction.Exact] Run follows the protocol literally.
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

// triedAbove is the number of cells above the one found that Run tries, too.
const triedAbove = 6

// removalOrder is an order in which machines are removed.
type removalOrder struct {
	*CellCompaction
	order []int // machines by index; the first n are those left in a cell of n
	tried map[int]trialResult
	step  int // machines that a step removes
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

// findMinimum returns the number of machines of the smallest cell found that holds the
// work.
func (r *removalOrder) findMinimum() int {
	low, high := r.lowerBound()-1, len(r.order) // low does not hold the work, high does
	guess := r.lastSize
	if guess == 0 { // one copy less did not suffice, or some resource would be short
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

// narrowBounds narrows the bounds from a guess on, in growing steps. The cell of size low
// does not hold the work, the cell of size high does.
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

// largestFailingAbove returns the largest of the next larger cells that does not hold the
// work, 0 if all do.
func (r *removalOrder) largestFailingAbove(n int) (larger int) {
	for i := 1; i <= triedAbove && n+i*r.step <= len(r.order); i++ {
		if !r.fitsFirst(n + i*r.step) {
			larger = n + i*r.step
		}
	}
	return larger
}

// lowerBound returns the smallest number of machines whose resources could suffice for
// the work.
func (r *removalOrder) lowerBound() int {
	var work, have roost.Resources
	for _, q := range r.softened {
		u := q.Class.Resources
		if part, known := r.Reserved[q.Key]; known && r.Reclaiming && q.Band.IsProd() {
			u.CPU, u.Memory = roost.MilliCPU(float64(u.CPU)*part.CPU), roost.Bytes(float64(u.Memory)*part.Memory)
		}
		if q.Class.AppClass == gpu.StreamClass {
			u.CPU = 0 // a stream task may take the CPU of batch tasks
		}
		if u.GPUMemory > 0 {
			u.GPUs = 0 // shares of GPUs: the sums do not show how many GPUs they need
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

// perThousand returns a number of thousandths of resources.
func perThousand(r roost.Resources, thousandths int) roost.Resources {
	k := int64(thousandths)
	return roost.Resources{
		CPU: r.CPU * roost.MilliCPU(k) / 1000, Memory: roost.Bytes(float64(r.Memory) * float64(k) / 1000),
		GPUs: r.GPUs * thousandths / 1000,
	}
}
