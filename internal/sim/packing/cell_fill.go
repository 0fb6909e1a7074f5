package packing

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/gpu"
	"github.com/roost-batch/roost/negotiator/match"
)

// FillLimit is the demand for GPUs at the end, in percent of the cell's, as in Weng et
// al.
const FillLimit = 130

// FillPoint is the state of a cell at one level of demand. All values are percent of the
// cell's GPUs, except FragmentationRatio, which is percent of the idle ones.
type FillPoint struct {
	Arrived   float64 // requested so far, placed or not
	Allocated float64 // allocated
	// part of the idle GPUs that a typical task cannot use: the fragmentation ratio
	// (ibid., §4.1)
	FragmentationRatio  float64
	FragmentationAmount float64 // the same as percent of all GPUs: the fragmentation amount
}

// FillResult is the result of filling a cell.
type FillResult struct {
	// one for each whole percent of demand from 0 on: the state before the next task
	// would have exceeded it
	Points  []FillPoint
	Arrived int    // number of tasks that arrived
	Placed  int    // number of tasks that were placed
	Digest  uint64 // digest of all placements: equal digests mean equal runs
}

// PointAt returns the state at a percentage of demand.
func (f *FillResult) PointAt(percent int) FillPoint { return f.Points[min(percent, len(f.Points)-1)] }

// FillCell lets the tasks of a cell arrive in random order, and tasks that find no room
// leave. More tasks, drawn at random from the same ones, arrive until [FillLimit] percent
// of the GPUs have been requested. This is the experiment of Weng et al. (ATC 2023, §6).
// The order of arrival is theirs if random is math/rand's generator of the same seed
// after one draw. A cell without GPUs, or work that asks for none, gives an error that
// wraps [roost.Invalid].
func FillCell(c *CellWorkload, by match.ScorePolicy, random RandomSource) (*FillResult, error) {
	f := &cellFill{CellWorkload: c, result: &FillResult{},
		capacity: int64(c.Total().GPUs) * gpu.SharesPerGPU * partsPrecision}
	if f.capacity == 0 {
		return nil, fmt.Errorf("%w: no machine has GPUs: there is nothing to fill", roost.Invalid)
	}
	order, err := f.arrivalOrder(random)
	if err != nil {
		return nil, err
	}
	if err := f.createNodes(); err != nil {
		return nil, err
	}
	digest, arrivals := fnv.New64a(), match.NewMatcher().NewOnlinePlacement(&match.Snapshot{Machines: c.Machines,
		Requests: c.Requests, Shares: c.Shares, Score: by})
	for _, task := range order {
		r := c.Requests[task]
		parts := gpuPartsOf(r)
		f.recordPoints(f.arrived + parts)
		f.arrived += parts
		where := -1
		if m, on, ok := arrivals.Place(r); ok {
			where = f.nextPercent[m]
			f.recordPlacement(where, on, parts)
		}
		var what [8]byte
		binary.LittleEndian.PutUint32(what[:], uint32(task))
		binary.LittleEndian.PutUint32(what[4:], uint32(where))
		digest.Write(what[:])
	}
	f.recordPoints(f.arrived + f.capacity)
	f.result.Arrived, f.result.Digest = len(order), digest.Sum64()
	return f.result, nil
}

// partsPrecision is the number of parts of one GPU share. It makes thousandths of a GPU
// exact enough.
const partsPrecision = 1000

// gpuPartsOf returns the GPUs that a task of a request asks for, in parts.
func gpuPartsOf(r *match.Request) int64 {
	const whole = gpu.SharesPerGPU * partsPrecision
	q := r.Class.Resources
	if q.GPUMemory > 0 {
		return int64(q.GPUs) * int64(q.GPUMemory) * whole / int64(gpuParts)
	}
	return int64(q.GPUs) * whole
}

// cellFill is the state of filling a cell.
type cellFill struct {
	*CellWorkload
	result        *FillResult
	capacity      int64 // parts of GPUs
	arrived       int64
	allocated     int64
	nextPercent   map[*match.Machine]int
	freeNodes     []freeByNode // by machine
	typicalTasks  *gpu.RequestMix
	fragmentation gpu.FragmentationMeter
	fragmented    int64 // sum over all machines, in units of [gpu.MixWeight]
	idle          int64
}

// freeByNode tracks the free resources of a machine independently of the matcher: a
// double allocation panics.
type freeByNode struct {
	free             *gpu.FreeResources // nil: the machine has no GPUs
	allowedShapes    uint64             // bit set of the task shapes that may use the machine
	fragmented, idle int64
}

// arrivalOrder returns the tasks in the order of their arrival.
func (f *cellFill) arrivalOrder(random RandomSource) (list []int32, err error) {
	list = append(list, f.Tasks...)
	random.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	asked := int64(0)
	for _, task := range list {
		asked += gpuPartsOf(f.Requests[task])
	}
	if asked == 0 {
		return nil, fmt.Errorf("%w: no task asks for GPUs: there is nothing to fill with", roost.Invalid)
	}
	for {
		task := f.Tasks[random.Intn(len(f.Tasks))]
		parts := gpuPartsOf(f.Requests[task])
		// As published: a task with several GPUs counts as one GPU here, so the demand
		// may exceed the limit a little.
		if one := parts / int64(max(f.Requests[task].Class.Resources.GPUs, 1)); (asked+one)*100 > f.capacity*FillLimit {
			return list, nil
		}
		asked += parts
		list = append(list, task)
	}
}

// createNodes creates the state of the nodes and of the fragmentation.
func (f *cellFill) createNodes() error {
	needs := typicalTasks(f.Requests)
	list := make([]gpu.MixRequest, len(needs))
	for i, n := range needs {
		list[i] = n.MixRequest
	}
	f.typicalTasks, f.nextPercent, f.freeNodes = gpu.NewMix(list), map[*match.Machine]int{},
		make([]freeByNode, len(f.Machines))
	for i, m := range f.Machines {
		f.nextPercent[m] = i
		if m.Total.GPUs == 0 {
			continue
		}
		free, err := gpu.ReadAd(m.Ad)
		if err != nil {
			return fmt.Errorf("machine %s: %w", m.Name, err)
		}
		b := &f.freeNodes[i]
		b.free = free
		for k, n := range needs {
			if n.mayUse(m) {
				b.allowedShapes |= 1 << k
			}
		}
		f.measureFragmentation(b)
	}
	return nil
}

// recordPlacement records where a task was placed.
func (f *cellFill) recordPlacement(at int, on gpu.Placement, parts int64) {
	f.result.Placed++
	f.allocated += parts
	if b := &f.freeNodes[at]; b.free != nil {
		b.free.TakePlacement(on)
		f.measureFragmentation(b)
	}
}

func (f *cellFill) measureFragmentation(b *freeByNode) {
	fragmented, idle := f.fragmentation.MeasureUnits(b.free, f.typicalTasks, b.allowedShapes, nil)
	f.fragmented, f.idle = f.fragmented+fragmented-b.fragmented, f.idle+idle-b.idle
	b.fragmented, b.idle = fragmented, idle
}

// recordPoints records the state for each percentage that the demand asked passes.
func (f *cellFill) recordPoints(asked int64) {
	for len(f.result.Points) <= FillLimit && asked*100 > f.capacity*int64(len(f.result.Points)) {
		p := FillPoint{Arrived: percentOf(f.arrived, f.capacity), Allocated: percentOf(f.allocated, f.capacity),
			FragmentationAmount: percentOf(f.fragmented*partsPrecision/gpu.MixWeight, f.capacity)}
		if f.idle > 0 {
			p.FragmentationRatio = percentOf(f.fragmented, f.idle*gpu.MixWeight)
		}
		f.result.Points = append(f.result.Points, p)
	}
}

func percentOf(part, of int64) float64 { return 100 * float64(part) / float64(of) }
