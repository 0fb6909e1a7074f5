package pack

import (
	"math/bits"
	"slices"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/gpu"
	"github.com/roost-batch/roost/negotiator/match"
	"github.com/roost-batch/roost/negotiator/share"
)

// with is the cell's machines with other work.
func (c *Cell) with(requests []*match.Request) *Cell {
	d := &Cell{Machines: c.Machines, Requests: requests, Standing: c.Standing, Known: c.Known}
	for i, r := range requests {
		d.Tasks = append(d.Tasks, slices.Repeat([]int32{int32(i)}, r.Wanted)...)
	}
	return d
}

// some are the cell's requests that a rule takes.
func (c *Cell) some(takes func(i int, r *match.Request) bool) (list []*match.Request) {
	for i, r := range c.Requests {
		if takes(i, r) {
			list = append(list, r)
		}
	}
	return list
}

// Segregate parts the work of a cell: production, and the rest, would have a cell each (Borg §5.2).
func (c *Cell) Segregate() (cells []*Cell) {
	for _, prod := range []bool{true, false} {
		if list := c.some(func(_ int, r *match.Request) bool { return r.Band.Prod() == prod }); len(list) > 0 {
			cells = append(cells, c.with(list))
		}
	}
	return cells
}

// Users is how many users there are taken to be where the source of a cell knows of none.
const Users = 10

// ByUser parts the work of a cell by its submitters: each would have a cell (Borg §5.2). Where there is but one submitter, each kind of tasks belongs to one of
// [Users] users at random, of whom the k-th is drawn with a weight of 1/k.
func (c *Cell) ByUser(random Random) (cells []*Cell) {
	whose := make([]int, len(c.Requests))
	var users []share.Submitter
	for i, r := range c.Requests {
		if whose[i] = slices.Index(users, r.Submitter); whose[i] < 0 {
			whose[i], users = len(users), append(users, r.Submitter)
		}
	}
	n := len(users)
	if n == 1 {
		n = Users
		for i := range whose {
			whose[i] = zipf(random)
		}
	}
	for u := range n {
		if list := c.some(func(i int, _ *match.Request) bool { return whose[i] == u }); len(list) > 0 {
			cells = append(cells, c.with(list))
		}
	}
	return cells
}

// zipf draws one of [Users] with the weights 1, 1/2, 1/3, ….
func zipf(random Random) int {
	const whole = 1 << 20
	sum := 0
	for k := range Users {
		sum += whole / (k + 1)
	}
	at := random.Intn(sum)
	for k := range Users {
		if at -= whole / (k + 1); at < 0 {
			return k
		}
	}
	return Users - 1
}

// Buckets rounds what tasks ask for up to the next power of two: of processor time from half a core on, of memory from 1 GiB on (Borg §5.4). What no machine
// would have room for then stays as it is, so that this is the least that buckets cost.
func (c *Cell) Buckets() (*Cell, error) {
	var list []*match.Request
	for _, r := range c.Requests {
		u := r.Class.Resources
		u.CPU, u.Memory = bucket(u.CPU, 500), bucket(u.Memory, roost.GiB)
		ad := r.Class.Ad.Copy()
		class, err := match.NewClass(ad.String(), r.Submitter, r.Band, u)
		if err != nil {
			return nil, err
		}
		rounded := *r
		rounded.Class = class
		if holders(c.Machines, &rounded) == 0 {
			rounded = *r
		}
		list = append(list, &rounded)
	}
	return c.with(list), nil
}

// bucket is the next power of two times least; nothing stays nothing.
func bucket[T roost.MilliCPU | roost.Bytes](n, least T) T {
	if n <= 0 {
		return n
	}
	times := uint64((n + least - 1) / least)
	return least << bits.Len64(times-1)
}

// holders is how many machines could hold a task of a request were they empty.
func holders(machines []*match.Machine, r *match.Request) (n int) {
	e, _ := r.Class.Ad.Lookup(roost.AttrRequirements)
	for _, m := range machines {
		if u := r.Class.Resources; u.CPU > m.Total.CPU || u.Memory > m.Total.Memory || u.Disk > m.Total.Disk || u.GPUs > m.Total.GPUs {
			continue
		}
		if !classad.Eval(e, r.Class.Ad, m.Ad, nil).IsTrue() {
			continue
		}
		if f, err := gpu.Read(m.Ad); err == nil && f.Len() > 0 && f.Never(gpu.Request{Resources: r.Class.Resources, Class: r.Class.App}) != nil {
			continue
		}
		n++
	}
	return n
}
