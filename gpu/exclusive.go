package gpu

// WholeMachine returns a placement of the whole machine, for a batch task that has it
// alone. ok is false while any task has or waits for a part of it. Unhealthy devices are
// left out.
func (f *FreeResources) WholeMachine() (p Placement, ok bool) {
	if !f.IsIdle() {
		return p, false
	}
	p.Disk, p.IO = f.diskSize, f.ioTotal
	for i := range f.units {
		if u := &f.units[i]; !u.usesCPUOfOthers() {
			p.Parts = append(p.Parts, UnitPart{Unit: i, CPU: u.CPU, Memory: u.Memory})
		}
	}
	for i := range f.devices {
		if d := &f.devices[i]; d.Health.OK {
			p.Shares = append(p.Shares, DeviceShare{Device: i, Memory: d.Memory, Whole: true})
		}
	}
	return p, true
}

// IsIdle reports whether nothing of the machine is allocated and no task waits for it.
// All classes and reclaimed resources count.
func (f *FreeResources) IsIdle() bool {
	if f.disk < f.diskSize || f.io != f.ioTotal {
		return false
	}
	for i := range f.units {
		u := &f.units[i]
		if u.queue.Length > 0 || u.queue.Running > 0 || u.memory < u.Memory || u.reclaimable.memory < u.Memory {
			return false
		}
		for class := range u.cpu {
			if u.cpu[class] < u.CPU || u.reclaimable.cpu[class] < u.CPU {
				return false
			}
		}
	}
	for i := range f.devices {
		if d := &f.devices[i]; d.Tasks > 0 {
			return false
		}
	}
	return true
}
