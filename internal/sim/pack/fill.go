package pack

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/gpu"
	"github.com/roost-batch/roost/negotiator/match"
)

// Overload is how much of the GPUs is asked for in the end, in percent, as in Weng et al.
const Overload = 130

// Point is how a cell stands when so much has been asked for. All are percent of the GPUs of the cell, but Useless, which is percent of the idle ones.
type Point struct {
	Arrived   float64 // asked for, whether there was room or not
	Allocated float64 // given away
	Useless   float64 // of what is idle, what the typical task cannot use: the fragmentation ratio (ibid., §4.1)
	Lost      float64 // the same, of all there is: the fragmentation amount
}

// Filled is what came of letting tasks come.
type Filled struct {
	Points  []Point // one for each whole percent that was asked for, from 0 on: how things stood before one task more would have been beyond it
	Arrived int     // tasks
	Placed  int     // of those
	Digest  uint64  // of where each went: two runs with the same are the same
}

// At is the point of a percentage.
func (f *Filled) At(percent int) Point { return f.Points[min(percent, len(f.Points)-1)] }

// Fill lets the tasks of a cell come one by one, in random order, and stay; who finds no room goes away. More of the same, drawn at random, come until
// [Overload] percent of the GPUs have been asked for. It is the experiment of Weng et al. (ATC 2023, §6), with their order of arrival if random is
// math/rand's generator of the same seed, one number of which has been drawn. The error, of a cell without GPUs or of work that asks for none, wraps
// [roost.Invalid].
func Fill(c *Cell, by match.Score, random Random) (*Filled, error) {
	f := &filling{Cell: c, out: &Filled{}, capacity: int64(c.Total().GPUs) * gpu.CardParts * partsFine}
	if f.capacity == 0 {
		return nil, fmt.Errorf("%w: no machine has GPUs: there is nothing to fill", roost.Invalid)
	}
	order, err := f.order(random)
	if err != nil {
		return nil, err
	}
	if err := f.open(); err != nil {
		return nil, err
	}
	digest, arrivals := fnv.New64a(), match.NewMatcher().Arrivals(&match.Snapshot{Machines: c.Machines, Requests: c.Requests, Standing: c.Standing, Score: by})
	for _, task := range order {
		r := c.Requests[task]
		parts := asks(r)
		f.note(f.asked + parts)
		f.asked += parts
		where := -1
		if m, on, ok := arrivals.Come(r); ok {
			where = f.at[m]
			f.take(where, on, parts)
		}
		var what [8]byte
		binary.LittleEndian.PutUint32(what[:], uint32(task))
		binary.LittleEndian.PutUint32(what[4:], uint32(where))
		digest.Write(what[:])
	}
	f.note(f.asked + f.capacity)
	f.out.Arrived, f.out.Digest = len(order), digest.Sum64()
	return f.out, nil
}

// partsFine makes parts of GPUs so fine that thousandths and other shares are exact enough.
const partsFine = 1000

// asks is what a unit of a request asks for of GPUs, in parts.
func asks(r *match.Request) int64 {
	const whole = gpu.CardParts * partsFine
	q := r.Class.Resources
	if q.GPUMemory > 0 {
		return int64(q.GPUs) * int64(q.GPUMemory) * whole / int64(card)
	}
	return int64(q.GPUs) * whole
}

// filling is a cell that is being filled.
type filling struct {
	*Cell
	out      *Filled
	capacity int64 // parts of GPUs
	asked    int64
	given    int64
	at       map[*match.Machine]int
	books    []books // by machine
	mix      *gpu.Mix
	gauge    gpu.Gauge
	lost     int64 // by all machines together, in the gauge's measure
	idle     int64
}

// books is what is free of a machine, kept here beside the matcher: what is taken twice panics.
type books struct {
	free       *gpu.Free // nil: it has no GPUs
	set        uint64    // the needs that may have the machine
	lost, idle int64
}

// order is the tasks in the order in which they come.
func (f *filling) order(random Random) (list []int32, err error) {
	list = append(list, f.Tasks...)
	random.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	asked := int64(0)
	for _, task := range list {
		asked += asks(f.Requests[task])
	}
	if asked == 0 {
		return nil, fmt.Errorf("%w: no task asks for GPUs: there is nothing to fill with", roost.Invalid)
	}
	for {
		task := f.Tasks[random.Intn(len(f.Tasks))]
		parts := asks(f.Requests[task])
		// As published: what asks for several GPUs counts as one here, and so may go a little beyond.
		if one := parts / int64(max(f.Requests[task].Class.Resources.GPUs, 1)); (asked+one)*100 > f.capacity*Overload {
			return list, nil
		}
		asked += parts
		list = append(list, task)
	}
}

// open makes the books.
func (f *filling) open() error {
	needs := typical(f.Requests)
	list := make([]gpu.Need, len(needs))
	for i, n := range needs {
		list[i] = n.Need
	}
	f.mix, f.at, f.books = gpu.NewMix(list), map[*match.Machine]int{}, make([]books, len(f.Machines))
	for i, m := range f.Machines {
		f.at[m] = i
		if m.Total.GPUs == 0 {
			continue
		}
		free, err := gpu.Read(m.Ad)
		if err != nil {
			return fmt.Errorf("machine %s: %w", m.Name, err)
		}
		b := &f.books[i]
		b.free = free
		for k, n := range needs {
			if n.agrees(m) {
				b.set |= 1 << k
			}
		}
		f.measure(b)
	}
	return nil
}

// take notes where a task went.
func (f *filling) take(at int, on gpu.Placement, parts int64) {
	f.out.Placed++
	f.given += parts
	if b := &f.books[at]; b.free != nil {
		b.free.Take(on)
		f.measure(b)
	}
}

func (f *filling) measure(b *books) {
	lost, idle := f.gauge.Units(b.free, f.mix, b.set, nil)
	f.lost, f.idle = f.lost+lost-b.lost, f.idle+idle-b.idle
	b.lost, b.idle = lost, idle
}

// note notes how things stand for each percentage that is passed when so much will have been asked for.
func (f *filling) note(asked int64) {
	for len(f.out.Points) <= Overload && asked*100 > f.capacity*int64(len(f.out.Points)) {
		p := Point{Arrived: percent(f.asked, f.capacity), Allocated: percent(f.given, f.capacity), Lost: percent(f.lost*partsFine/gpu.MixWeight, f.capacity)}
		if f.idle > 0 {
			p.Useless = percent(f.lost, f.idle*gpu.MixWeight)
		}
		f.out.Points = append(f.out.Points, p)
	}
}

func percent(part, of int64) float64 { return 100 * float64(part) / float64(of) }
