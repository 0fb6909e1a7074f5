package packing

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/gpu"
	"github.com/roost-batch/roost/negotiator/fairshare"
	"github.com/roost-batch/roost/negotiator/match"
)

// CellWorkload is a set of empty machines and the work to be placed there. It is not safe
// for concurrent use.
type CellWorkload struct {
	Machines      []*match.Machine // in the order of their names
	Requests      []*match.Request // Wanted is the number of identical tasks
	Tasks         []int32          // by task, in the order of the source: the index of its request
	Shares        map[fairshare.Submitter]match.SubmitterShare
	KnownReserved map[match.RequestKey]ReservedPart // by request: the known reserved parts; nil: unknown
	// by request: the reserved parts in effect; nil: none, see [CellWorkload.SetReserved]
	Reserved map[match.RequestKey]ReservedPart
}

// gpuParts is the assumed memory of each GPU of the trace, which counts thousandths of a
// GPU.
const gpuParts = 1000 * roost.MiB

// NewCell makes a cell of the openb trace. The processors of a machine form one resource
// unit that all its GPUs share. Pods with the same demand and class of service form one
// request. Latency-sensitive and guaranteed pods are production, burstable ones and those
// without a class are batch, and best-effort ones are free. The trace knows no users.
func NewCell(nodes []TraceNode, pods []TracePod) (*CellWorkload, error) {
	c := &CellWorkload{}
	for _, n := range nodes {
		m, err := n.asMachine()
		if err != nil {
			return nil, fmt.Errorf("node %s: %w", n.Name, err)
		}
		c.Machines = append(c.Machines, m)
	}
	slices.SortFunc(c.Machines, func(a, b *match.Machine) int { return cmp.Compare(a.Name, b.Name) })
	pods = slices.Clone(pods)
	slices.SortFunc(pods, func(a, b TracePod) int { return cmp.Compare(a.Name, b.Name) })
	number := map[string]int32{}
	for _, p := range pods {
		key := fmt.Sprint(p.CPU, p.Memory, p.GPUs, p.GPUMilli, p.GPUModels, p.QoS)
		i, known := number[key]
		if !known {
			r, err := p.asRequest(uint64(len(c.Requests)))
			if err != nil {
				return nil, fmt.Errorf("pod %s: %w", p.Name, err)
			}
			i, number[key] = int32(len(c.Requests)), int32(len(c.Requests))
			c.Requests = append(c.Requests, r)
		}
		r := c.Requests[i]
		r.Wanted++
		r.Oldest = min(r.Oldest, 1+p.Created*1e9)
		c.Tasks = append(c.Tasks, i)
	}
	return c, nil
}

// ResourceUnits returns the resource units of a node. Its processors form one unit that
// all its GPUs share.
func (n *TraceNode) ResourceUnits() ([]gpu.ResourceUnit, error) {
	topology := gpu.MachineTopology{CPU: n.CPU, Memory: n.Memory}
	for i := range int(n.CPU+999) / 1000 {
		topology.Cores = append(topology.Cores, gpu.CPUCore{ID: i, NUMANode: -1})
	}
	for i := range n.GPUs {
		topology.Devices = append(topology.Devices, gpu.Device{UUID: fmt.Sprint("GPU-", i), Model: n.GPUModel, Index: i,
			Memory: gpuParts, NUMANode: -1, Health: gpu.HealthyDevice()})
	}
	return gpu.CutUnits(topology, gpu.LayoutConfig{})
}

// asMachine returns the node as its startd would advertise it.
func (n *TraceNode) asMachine() (*match.Machine, error) {
	units, err := n.ResourceUnits()
	if err != nil {
		return nil, err
	}
	ad := classad.New()
	ad.SetString(roost.AttrName, n.Name)
	ad.SetString(AttrModel, n.GPUModel)
	ad.SetInt(roost.AttrTotalDisk, 1<<20)
	ad.SetInt(roost.AttrDisk, 1<<20)
	gpu.NewFree(units, roost.GiB).Describe(ad)
	return match.NewMachine(n.Name, 1, 1, ad), nil
}

// AttrModel is the attribute of a trace's machine that names the model of its GPUs.
const AttrModel = "Model"

// Demand returns what a pod takes, its requirements ("" for none), and its class of
// service.
func (p *TracePod) Demand() (r roost.Resources, require string, band roost.PriorityBand) {
	r = roost.Resources{CPU: p.CPU, Memory: p.Memory, GPUs: p.GPUs}
	if p.GPUs > 0 && p.GPUMilli < 1000 {
		r.GPUMemory = gpuParts * roost.Bytes(p.GPUMilli) / 1000
	}
	if len(p.GPUModels) > 0 {
		require = fmt.Sprintf(`TARGET.%s == "%s"`, AttrModel,
			strings.Join(p.GPUModels, `" || TARGET.`+AttrModel+` == "`))
	}
	switch p.QoS {
	case "LS", "Guaranteed":
		return r, require, roost.ProductionBand
	case "BE":
		return r, require, roost.FreeBand
	}
	return r, require, roost.BatchBand
}

// asRequest returns the request of a pod.
func (p *TracePod) asRequest(id uint64) (*match.Request, error) {
	ask, text, band := p.Demand()
	if text != "" {
		text = fmt.Sprintf("[%s = %s]", roost.AttrRequirements, text)
	}
	who := fairshare.Submitter{Owner: "openb"}
	class, err := match.NewClass(text, who, band, ask)
	if err != nil {
		return nil, err
	}
	return &match.Request{Key: match.RequestKey{Schedd: "openb", ID: id}, Submitter: who, Band: band,
		Oldest: 1 + p.Created*1e9, Class: class}, nil
}

// Total returns the sum of all machines' resources.
func (c *CellWorkload) Total() (r roost.Resources) {
	for _, m := range c.Machines {
		r = r.Add(m.Total)
	}
	return r
}

// copies returns n copies of each of the cell's machines, the originals first.
func (c *CellWorkload) copies(n int) []*match.Machine {
	list := slices.Clone(c.Machines)
	for k := 1; k < n; k++ {
		for _, m := range c.Machines {
			name := fmt.Sprintf("%s+%d", m.Name, k)
			ad := m.Ad.Copy()
			ad.SetString(roost.AttrName, name)
			list = append(list, match.NewMachine(name, 1, 1, ad))
		}
	}
	return list
}

// RandomSource is a source of randomness, such as the generator of math/rand.
type RandomSource interface {
	Intn(n int) int
	Shuffle(n int, swap func(i, j int))
}
