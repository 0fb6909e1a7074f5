package packing

import (
	"fmt"
	"strings"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/gpu"
	"github.com/roost-batch/roost/negotiator/cellstate"
	"github.com/roost-batch/roost/negotiator/match"
)

// FromCheckpoint makes a cell of a checkpoint: all its machines, empty, and the tasks
// that run there as the work. A task's ad counts if the checkpoint has its request, and
// otherwise what its claim holds. The reserved parts come from the machines, if any of
// them reclaims.
func FromCheckpoint(p *cellstate.CellCheckpoint) (*CellWorkload, error) {
	c := &CellWorkload{}
	x := newIndex(p)
	number := map[string]int{}
	reclaimed := map[match.RequestKey]ReservedPart{}
	lends := false
	for _, m := range p.Machines {
		empty, err := emptyMachine(m)
		if err != nil {
			return nil, err
		}
		c.Machines = append(c.Machines, empty)
		for i := range m.Claims {
			r, key, err := x.request(&m.Claims[i], uint64(len(c.Requests)))
			if err != nil {
				return nil, fmt.Errorf("machine %s: claim %d: %w", m.Name, m.Claims[i].ID, err)
			}
			at, known := number[key]
			if !known {
				at, number[key] = len(c.Requests), len(c.Requests)
				c.Requests = append(c.Requests, r)
			}
			c.Requests[at].Wanted++
			c.Tasks = append(c.Tasks, int32(at))
			part := reservedResources(&m.Claims[i])
			sum := reclaimed[c.Requests[at].Key]
			reclaimed[c.Requests[at].Key] = ReservedPart{sum.CPU + part.CPU, sum.Memory + part.Memory}
			lends = lends || part != ReservedPart{1, 1}
		}
	}
	if len(c.Requests) == 0 {
		return nil, fmt.Errorf("%w: nothing runs in the cell: there is no work to hold", roost.Invalid)
	}
	if lends {
		for _, r := range c.Requests {
			sum, n := reclaimed[r.Key], float64(r.Wanted)
			reclaimed[r.Key] = ReservedPart{sum.CPU / n, sum.Memory / n}
		}
		c.KnownReserved = reclaimed
	}
	return c, nil
}

// reservedResources returns the part of a claim that is not offered to others.
func reservedResources(c *match.MachineClaim) ReservedPart {
	cpu, memory := c.Placement.UsageEstimate()
	p := ReservedPart{1, 1}
	if c.Resources.CPU > 0 && len(c.Placement.Parts) > 0 {
		p.CPU = float64(cpu) / float64(c.Resources.CPU)
	}
	if c.Resources.Memory > 0 && len(c.Placement.Parts) > 0 {
		p.Memory = float64(memory) / float64(c.Resources.Memory)
	}
	return p
}

// emptyMachine returns the machine without claims, drains and owner.
func emptyMachine(m *match.Machine) (*match.Machine, error) {
	f, err := gpu.ReadAd(m.Ad)
	if err != nil {
		return nil, fmt.Errorf("machine %s: %w", m.Name, err)
	}
	ad := m.Ad.Copy()
	for _, name := range []string{roost.AttrState, roost.AttrOwnerBusyReason, roost.AttrPaused, roost.AttrReclaim,
		roost.AttrClaims} {
		ad.Delete(name)
	}
	f = f.EmptyClone()
	f.SetReclaim(false)
	f.Describe(ad)
	freeResources(ad, f.Total())
	return match.NewMachine(m.Name, 1, 1, ad), nil
}

// freeResources sets the free resources in a machine ad, for requirements that refer to
// them.
func freeResources(ad *classad.Ad, r roost.Resources) {
	ad.SetReal(roost.AttrCpus, r.CPU.Cores())
	ad.SetReal(roost.AttrMemory, float64(r.Memory)/float64(roost.MiB))
	ad.SetReal(roost.AttrDisk, float64(r.Disk)/float64(roost.KiB))
	ad.SetInt(roost.AttrGpus, int64(r.GPUs))
}

// requestIndex finds the requests of a checkpoint.
type requestIndex struct {
	asks map[match.RequestKey]*cellstate.PendingRequest
	jobs map[string]uint64 // by job: the id of its request
}

func newIndex(p *cellstate.CellCheckpoint) requestIndex {
	x := requestIndex{map[match.RequestKey]*cellstate.PendingRequest{}, map[string]uint64{}}
	for _, a := range p.Requests {
		x.asks[a.Key] = a
	}
	for _, j := range p.Jobs {
		x.jobs[j.ID] = j.Request
	}
	return x
}

// request returns the request of a claim's task, and a key that is equal for identical
// requests.
func (x requestIndex) request(c *match.MachineClaim, id uint64) (r *match.Request, key string, err error) {
	u, text := c.Resources, ""
	if s := c.Placement.Shares; len(s) > 0 {
		if u.GPUs, u.GPUMemory = len(s), 0; !s[0].Whole {
			u.GPUMemory = s[0].Memory
		}
	}
	job := c.JobName()
	_, schedd, _ := strings.Cut(job, ".")
	if a := x.asks[match.RequestKey{Schedd: schedd, ID: x.jobs[job]}]; a != nil && a.Submitter == c.Submitter {
		text = a.AdText
	} else if c.AppClass() == gpu.StreamClass {
		text = fmt.Sprintf("[%s = %q]", roost.AttrAppClass, gpu.StreamClass.String())
	}
	class, err := match.NewClass(text, c.Submitter, c.Band, u)
	if err != nil {
		return nil, "", err
	}
	r = &match.Request{Key: match.RequestKey{Schedd: "cell", ID: id}, Submitter: c.Submitter, Band: c.Band, Oldest: 1,
		Class: class}
	return r, fmt.Sprint(c.Submitter, c.Band, u, class.AppClass, text), nil
}
