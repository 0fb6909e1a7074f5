package packing

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/gpu"
	"github.com/roost-batch/roost/negotiator/match"
)

// FillLimit is how much of the GPUs is asked for in the end, in percent, as in Weng et
// al.
const FillLimit = 130

// FillPoint is how a cell stands when so much has been asked for. All are percent of the
// GPUs of the cell, but FragmentationRatio, which is percent of the idle ones.
type FillPoint struct {
	Arrived   float64 // asked for, whether there was room or not
	Allocated float64 // given away
	// of what is idle, what the typical task cannot use: the fragmentation ratio (ibid.,
	// §4.1)
	FragmentationRatio  float64
	FragmentationAmount float64 // the same, of all there is: the fragmentation amount
}

// FillResult is what came of letting tasks come.
type FillResult struct {
	// one for each whole percent that was asked for, from 0 on: how things stood before
	// one task more would have been beyond it
	Points  []FillPoint
	Arrived int    // tasks
	Placed  int    // of those
	Digest  uint64 // of where each went: two runs with the same are the same
}

// PointAt is the point of a percentage.
func (f *FillResult) PointAt(percent int) FillPoint { return f.Points[min(percent, len(f.Points)-1)] }

// FillCell lets the tasks of a cell come one by one, in random order, and stay; who finds
// no room goes away. More of the same, drawn at random, come until [FillLimit] percent of
// the GPUs have been asked for. It is the experiment of Weng et al. (ATC 2023, §6), with
// their order of arrival if random is math/rand's generator of the same seed, one number
// of which has been drawn. The error, of a cell without GPUs or of work that asks for
// none, wraps [roost.Invalid].
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

// partsPrecision makes parts of GPUs so fine that thousandths and other shares are exact
// enough.
const partsPrecision = 1000

// gpuPartsOf is what a unit of a request asks for of GPUs, in parts.
func gpuPartsOf(r *match.Request) int64 {
	const whole = gpu.SharesPerGPU * partsPrecision
	q := r.Class.Resources
	if q.GPUMemory > 0 {
		return int64(q.GPUs) * int64(q.GPUMemory) * whole / int64(gpuParts)
	}
	return int64(q.GPUs) * whole
}

// cellFill is a cell that is being filled.
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
	fragmented    int64 // by all machines together, in the gauge's measure
	idle          int64
}

// freeByNode is what is free of a machine, kept here beside the matcher: what is taken
// twice panics.
type freeByNode struct {
	free             *gpu.FreeResources // nil: it has no GPUs
	allowedShapes    uint64             // the needs that may have the machine
	fragmented, idle int64
}

// arrivalOrder is the tasks in the order in which they come.
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
		// As published: what asks for several GPUs counts as one here, and so may go a
		// little beyond.
		if one := parts / int64(max(f.Requests[task].Class.Resources.GPUs, 1)); (asked+one)*100 > f.capacity*FillLimit {
			return list, nil
		}
		asked += parts
		list = append(list, task)
	}
}

// createNodes makes the books.
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

// recordPlacement notes where a task went.
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

// recordPoints notes how things stand for each percentage that is passed when so much
// will have been asked for.
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
