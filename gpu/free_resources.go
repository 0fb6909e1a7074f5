package gpu

import (
	"slices"

	"github.com/roost-batch/roost"
)

// FreeResources holds what is free of a machine's units. It must be used by one
// goroutine.
//
// It guarantees P5: memory, disk and devices are never allocated beyond their total, nor
// CPU by the claims of one class. The sum of the shares of a device is at most its
// memory, and a whole device is never shared.
type FreeResources struct {
	units    []unitState
	devices  []DeviceState
	linkRows []int // closeness of each pair of devices, row by row; nil if no links are known
	disk     roost.Bytes
	diskSize roost.Bytes   // total disk
	io       roost.IORates // free
	ioTotal  roost.IORates // zero rates: the machine states none
	cpuOnly  bool          // some units have no devices: requests without GPUs go there
	reclaims bool          // the machine reclaims what its tasks do not use
}

type unitState struct {
	ResourceUnit
	cpu         [2]roost.MilliCPU // free CPU, by class
	memory      roost.Bytes       // free memory
	reclaimable reclaimableResources
	queue       UnitQueue
}

// DeviceState is a device and its free part.
type DeviceState struct {
	Device
	Unit  int         // index of its unit
	Free  roost.Bytes // free memory; 0 if a task has the whole device
	Tasks int         // number of tasks with a share
}

// NewFree returns the state of units, and a disk, with nothing allocated.
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

// SetIOTotal sets the rates of I/O that the machine has, of which nothing is taken yet.
func (f *FreeResources) SetIOTotal(r roost.IORates) { f.io, f.ioTotal = r, r }

// Clone returns a copy that shares only immutable parts.
func (f *FreeResources) Clone() *FreeResources {
	g := *f
	g.units, g.devices = slices.Clone(f.units), slices.Clone(f.devices)
	return &g
}

// EmptyClone returns a copy with nothing allocated and nothing waiting.
func (f *FreeResources) EmptyClone() *FreeResources {
	g := f.Clone()
	g.disk, g.io = g.diskSize, g.ioTotal
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

// Len returns the number of units.
func (f *FreeResources) Len() int { return len(f.units) }

// Unit returns the i-th unit, with its totals.
func (f *FreeResources) Unit(i int) ResourceUnit { return f.units[i].ResourceUnit }

// Units returns all units with their devices, and how close these are to each other.
// NewFree makes the same of them as EmptyClone.
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

// UnitFree returns what a task of a class could take of the i-th unit, apart from its
// node queue. GPUs are the whole ones.
func (f *FreeResources) UnitFree(i int, c AppClass) roost.Resources {
	r := roost.Resources{CPU: f.units[i].cpu[c], Memory: f.units[i].memory}
	for _, d := range f.devices {
		if d.Unit == i && d.Health.OK && d.Tasks == 0 {
			r.GPUs++
		}
	}
	return r
}

// Queue returns the state of the node queue of the i-th unit.
func (f *FreeResources) Queue(i int) UnitQueue { return f.units[i].queue }

// SetQueue sets the state of the node queue of the i-th unit. While the queue is closed
// no batch request is placed there.
func (f *FreeResources) SetQueue(i int, q UnitQueue) { f.units[i].queue = q }

// Devices returns the state of the devices, by their numbers in a DeviceShare. The caller
// must not change it.
func (f *FreeResources) Devices() []DeviceState { return f.devices }

// Total returns what the machine has. GPUs are the healthy ones.
func (f *FreeResources) Total() roost.Resources {
	r := roost.Resources{Disk: f.diskSize, IO: f.ioTotal}
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

// LeftForBatch returns what batch requests can still get: what is free in units whose
// queue is not closed. GPUs are the whole ones.
func (f *FreeResources) LeftForBatch() roost.Resources {
	r := roost.Resources{Disk: f.disk, IO: f.io}
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

// SetHealth sets the health of a device. Tasks retain their parts of an unhealthy device,
// but it is not allocated again until it is healthy. The result reports a change; for an
// unknown device it is false.
func (f *FreeResources) SetHealth(uuid string, h DeviceHealth) bool {
	for i := range f.devices {
		if d := &f.devices[i]; d.UUID == uuid && d.Health != h {
			d.Health = h
			return true
		}
	}
	return false
}

// HasSameFree reports whether f and g, of the same units, have the same free resources.
func (f *FreeResources) HasSameFree(g *FreeResources) bool {
	return f.disk == g.disk && f.io == g.io && slices.EqualFunc(f.units, g.units, func(a, b unitState) bool {
		return a.cpu == b.cpu && a.memory == b.memory && a.reclaimable == b.reclaimable
	}) &&
		slices.EqualFunc(f.devices, g.devices, func(a, b DeviceState) bool {
			return a.Free == b.Free && a.Tasks == b.Tasks
		})
}
