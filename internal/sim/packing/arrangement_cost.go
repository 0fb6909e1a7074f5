package packing

import (
	"math/bits"
	"slices"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/gpu"
	"github.com/roost-batch/roost/negotiator/fairshare"
	"github.com/roost-batch/roost/negotiator/match"
)

// withWork returns a cell with the same machines and other work.
func (c *CellWorkload) withWork(requests []*match.Request) *CellWorkload {
	d := &CellWorkload{Machines: c.Machines, Requests: requests, Shares: c.Shares, KnownReserved: c.KnownReserved}
	for i, r := range requests {
		d.Tasks = append(d.Tasks, slices.Repeat([]int32{int32(i)}, r.Wanted)...)
	}
	return d
}

// selectRequests returns the cell's requests that takes selects.
func (c *CellWorkload) selectRequests(takes func(i int, r *match.Request) bool) (list []*match.Request) {
	for i, r := range c.Requests {
		if takes(i, r) {
			list = append(list, r)
		}
	}
	return list
}

// SplitByProd splits the work of a cell into one cell for production and one for the rest
// (Borg §5.2).
func (c *CellWorkload) SplitByProd() (cells []*CellWorkload) {
	for _, prod := range []bool{true, false} {
		if list := c.selectRequests(func(_ int, r *match.Request) bool {
			return r.Band.IsProd() == prod
		}); len(list) > 0 {
			cells = append(cells, c.withWork(list))
		}
	}
	return cells
}

// UserCount is the number of users that is assumed if the source of a cell knows none.
const UserCount = 10

// LargeUserPercent is the part of a cell's work from which on a user is large.
const LargeUserPercent = 10

// SplitByUser splits the work of a cell into a cell for each submitter (Borg §5.2). Those
// with less than percent of the work share one. If there is only one submitter, each kind
// of task is assigned to one of [UserCount] users at random. The k-th user is drawn with
// a weight of 1/k.
func (c *CellWorkload) SplitByUser(random RandomSource, percent float64) (cells []*CellWorkload) {
	whose := make([]int, len(c.Requests))
	var users []fairshare.Submitter
	for i, r := range c.Requests {
		if whose[i] = slices.Index(users, r.Submitter); whose[i] < 0 {
			whose[i], users = len(users), append(users, r.Submitter)
		}
	}
	n := len(users)
	if n == 1 {
		n = UserCount
		for i := range whose {
			whose[i] = zipf(random)
		}
	}
	work, all, total := make([]float64, n), 0.0, c.Total()
	for i, r := range c.Requests {
		cores := fairshare.CoresWorth(r.Class.Resources, total) * float64(r.Wanted)
		work[whose[i]], all = work[whose[i]]+cores, all+cores
	}
	const together = -1
	for u := together; u < n; u++ {
		if list := c.selectRequests(func(i int, _ *match.Request) bool {
			if work[whose[i]]*100 < percent*all {
				return u == together
			}
			return whose[i] == u
		}); len(list) > 0 {
			cells = append(cells, c.withWork(list))
		}
	}
	return cells
}

// Divide divides the work of a cell among smaller cells (Borg §5.3). Each gets an equal
// part of the tasks of each kind. What remains goes round, so that no cell gets more of
// it than another by more than a task.
func (c *CellWorkload) Divide(parts int) (cells []*CellWorkload) {
	next := 0
	lists := make([][]*match.Request, parts)
	for _, r := range c.Requests {
		rest := r.Wanted % parts
		for k := range parts {
			part := *r
			part.Wanted = r.Wanted / parts
			if (k-next+parts)%parts < rest {
				part.Wanted++
			}
			if part.Wanted > 0 {
				lists[k] = append(lists[k], &part)
			}
		}
		next = (next + rest) % parts
	}
	for _, list := range lists {
		if len(list) > 0 {
			cells = append(cells, c.withWork(list))
		}
	}
	return cells
}

// zipf draws a number below [UserCount], with the weights 1, 1/2, 1/3, ….
func zipf(random RandomSource) int {
	const whole = 1 << 20
	sum := 0
	for k := range UserCount {
		sum += whole / (k + 1)
	}
	at := random.Intn(sum)
	for k := range UserCount {
		if at -= whole / (k + 1); at < 0 {
			return k
		}
	}
	return UserCount - 1
}

// RoundUpSizes rounds the sizes of tasks up to the next power of two (Borg §5.4). It
// rounds processor time from half a core on and memory from 1 GiB on. A task that no
// machine could then hold keeps its size, so the result is a lower bound of the cost of
// such sizes.
func (c *CellWorkload) RoundUpSizes() (*CellWorkload, error) {
	var list []*match.Request
	for _, r := range c.Requests {
		u := r.Class.Resources
		u.CPU, u.Memory = nextBucket(u.CPU, 500), nextBucket(u.Memory, roost.GiB)
		ad := r.Class.Ad.Copy()
		class, err := match.NewClass(ad.String(), r.Submitter, r.Band, u)
		if err != nil {
			return nil, err
		}
		rounded := *r
		rounded.Class = class
		if holderCount(c.Machines, &rounded) == 0 {
			rounded = *r
		}
		list = append(list, &rounded)
	}
	return c.withWork(list), nil
}

// nextBucket returns the next power of two times least; 0 stays 0.
func nextBucket[T roost.MilliCPU | roost.Bytes](n, least T) T {
	if n <= 0 {
		return n
	}
	times := uint64((n + least - 1) / least)
	return least << bits.Len64(times-1)
}

// holderCount returns how many machines could hold a task of a request if they were
// empty.
func holderCount(machines []*match.Machine, r *match.Request) (n int) {
	e, _ := r.Class.Ad.Lookup(roost.AttrRequirements)
	for _, m := range machines {
		if u := r.Class.Resources; u.CPU > m.Total.CPU || u.Memory > m.Total.Memory || u.Disk > m.Total.Disk ||
			u.GPUs > m.Total.GPUs {
			continue
		}
		if !classad.Eval(e, r.Class.Ad, m.Ad, nil).IsTrue() {
			continue
		}
		if f, err := gpu.ReadAd(m.Ad); err == nil && f.Len() > 0 &&
			f.WhyNever(gpu.DeviceRequest{Resources: r.Class.Resources, Class: r.Class.AppClass}) != nil {
			continue
		}
		n++
	}
	return n
}
