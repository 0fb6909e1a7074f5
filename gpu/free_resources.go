package gpu

import (
	"slices"

	"github.com/roost-batch/roost"
)

// FreeResources is what is free of a machine's units. It is for one goroutine.
//
// It keeps promise P5: of memory, disk and devices never more is taken than there is; of
// processor time, never more by the claims of one class. The sum of the shares of a
// device is at most its memory, and a device that is taken whole is shared with nobody.
type FreeResources struct {
	units    []unitState
	devices  []DeviceState
	linkRows []int // closeness of each pair of devices, row by row; nil when no links are known
	disk     roost.Bytes
	diskSize roost.Bytes // of the disk
	cpuOnly  bool        // there are units without devices: requests without GPUs go there
	reclaims bool        // the machine lends what its tasks leave
}

type unitState struct {
	ResourceUnit
	cpu         [2]roost.MilliCPU // free, by class
	memory      roost.Bytes       // free
	reclaimable reclaimableResources
	queue       UnitQueue
}

// DeviceState is a device and what is free of it.
type DeviceState struct {
	Device
	Unit  int         // index of its unit
	Free  roost.Bytes // not handed out; 0 when a task has the whole device
	Tasks int         // how many have a share
}

// NewFree returns units, and a disk, of which nothing is taken.
func NewFree(units []ResourceUnit, disk roost.Bytes) *FreeResources {
	f := &FreeResources{disk: disk, diskSize: disk}
	linked := false
	for i, u := range units {
		f.units = append(f.units, unitState{
			ResourceUnit: u, cpu: [2]roost.MilliCPU{u.CPU, u.CPU}, memory: u.Memory,
			reclaimable: reclaimableResources{[2]roost.MilliCPU{u.CPU, u.CPU}, u.Memory},
		})
		f.cpuOnly = f.cpuOnly || len(u.Devices) == 0
		for _, d := range u.Devices {
			f.devices = append(f.devices, DeviceState{Device: d, Unit: i, Free: d.Memory})
			linked = linked || len(d.Links) > 0
		}
	}
	if linked {
		f.linkRows = make([]int, len(f.devices)*len(f.devices))
		for i, d := range f.devices {
			for j, e := range f.devices {
				f.linkRows[i*len(f.devices)+j] = max(d.Links[e.UUID], e.Links[d.UUID])
			}
		}
	}
	return f
}

// Clone returns a copy that shares nothing that changes.
func (f *FreeResources) Clone() *FreeResources {
	g := *f
	g.units, g.devices = slices.Clone(f.units), slices.Clone(f.devices)
	return &g
}

// EmptyClone returns a copy of which nothing is taken, and for which nobody waits.
func (f *FreeResources) EmptyClone() *FreeResources {
	g := f.Clone()
	g.disk = g.diskSize
	for i := range g.units {
		u := &g.units[i]
		u.cpu, u.memory, u.queue = [2]roost.MilliCPU{u.CPU, u.CPU}, u.Memory, UnitQueue{}
		u.reclaimable = reclaimableResources{u.cpu, u.memory}
	}
	for i := range g.devices {
		d := &g.devices[i]
		d.Free, d.Tasks = d.Memory, 0
	}
	return g
}

// Len is the number of units.
func (f *FreeResources) Len() int { return len(f.units) }

// Unit returns the i-th unit, with its totals.
func (f *FreeResources) Unit(i int) ResourceUnit { return f.units[i].ResourceUnit }

// Units returns all units with their devices, and how close these are to each other:
// NewFree makes of them what EmptyClone does.
func (f *FreeResources) Units() []ResourceUnit {
	all := make([]ResourceUnit, len(f.units))
	for i := range f.units {
		all[i] = f.units[i].ResourceUnit
		all[i].Devices = nil
	}
	n := len(f.devices)
	for i := range f.devices {
		d := f.devices[i].Device
		if f.linkRows != nil {
			d.Links = map[string]int{}
			for j := range f.devices {
				d.Links[f.devices[j].UUID] = f.linkRows[i*n+j]
			}
		}
		u := &all[f.devices[i].Unit]
		u.Devices = append(u.Devices, d)
	}
	return all
}

// UnitFree returns what a task of that class could take of the i-th unit, queues aside.
// GPUs are the whole ones.
func (f *FreeResources) UnitFree(i int, c AppClass) roost.Resources {
	r := roost.Resources{CPU: f.units[i].cpu[c], Memory: f.units[i].memory}
	for _, d := range f.devices {
		if d.Unit == i && d.Health.OK && d.Tasks == 0 {
			r.GPUs++
		}
	}
	return r
}

// Queue returns how the batch queue of the i-th unit stands; SetQueue says it.
func (f *FreeResources) Queue(i int) UnitQueue { return f.units[i].queue }

// SetQueue says how the batch queue of the i-th unit stands. While it is shut no batch
// request is placed there.
func (f *FreeResources) SetQueue(i int, q UnitQueue) { f.units[i].queue = q }

// Devices returns the devices as they stand, by their numbers in a DeviceShare. The
// caller only reads it.
func (f *FreeResources) Devices() []DeviceState { return f.devices }

// Total returns what the machine has. GPUs are those that are well.
func (f *FreeResources) Total() roost.Resources {
	r := roost.Resources{Disk: f.diskSize}
	for i := range f.units {
		r.CPU += f.units[i].CPU
		r.Memory += f.units[i].Memory
	}
	for i := range f.devices {
		if f.devices[i].Health.OK {
			r.GPUs++
		}
	}
	return r
}

// LeftForBatch returns what batch requests can still be given: what is free, of units
// that are not shut. GPUs are the whole ones.
func (f *FreeResources) LeftForBatch() roost.Resources {
	r := roost.Resources{Disk: f.disk}
	for i := range f.units {
		if u := &f.units[i]; !u.queue.IsClosed() {
			r.CPU += u.cpu[BatchClass]
			r.Memory += u.memory
		}
	}
	for i := range f.devices {
		if d := &f.devices[i]; d.Health.OK && d.Tasks == 0 && !f.units[d.Unit].queue.IsClosed() {
			r.GPUs++
		}
	}
	return r
}

// SetHealth notes how a device is. What tasks have of it they keep; a sick one is not
// handed out again until it is well. It reports whether that is news; of a device that
// the machine did not have at the start there is none.
func (f *FreeResources) SetHealth(uuid string, h DeviceHealth) bool {
	for i := range f.devices {
		if d := &f.devices[i]; d.UUID == uuid && d.Health != h {
			d.Health = h
			return true
		}
	}
	return false
}

// HasSameFree reports whether f and g, of the same units, have the same free.
func (f *FreeResources) HasSameFree(g *FreeResources) bool {
	return f.disk == g.disk && slices.EqualFunc(f.units, g.units, func(a, b unitState) bool {
		return a.cpu == b.cpu && a.memory == b.memory && a.reclaimable == b.reclaimable
	}) &&
		slices.EqualFunc(f.devices, g.devices, func(a, b DeviceState) bool {
			return a.Free == b.Free && a.Tasks == b.Tasks
		})
}
