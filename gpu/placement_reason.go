package gpu

import (
	"fmt"
	"slices"
	"strings"

	"github.com/roost-batch/roost"
)

// WhyNotNow explains why a request cannot be placed now, with the most there is of what
// is missing. The error is of kind roost.Exhausted.
func (f *FreeResources) WhyNotNow(r DeviceRequest) error {
	why := f.missingDevicesText(r)
	if why == "" {
		why = f.missingText(r)
	}
	return fmt.Errorf("%w: %s", roost.Exhausted, why)
}

// WhyNever explains why a request could not be placed on the empty machine; nil: it
// could.
func (f *FreeResources) WhyNever(r DeviceRequest) error {
	e := f.EmptyClone()
	var p Placement
	if e.FindPlacement(r, AnyUnit, &p) {
		return nil
	}
	return e.WhyNotNow(r)
}

func (f *FreeResources) missingDevicesText(r DeviceRequest) string {
	if r.GPUs == 0 {
		return ""
	}
	well, large, ready, most, room := 0, 0, 0, roost.Bytes(0), roost.Bytes(0)
	var ill *DeviceState
	for i := range f.devices {
		d := &f.devices[i]
		if !d.Health.OK {
			ill = d
			continue
		}
		well++
		most, room = max(most, d.Memory), max(room, d.Free)
		if d.Memory >= r.GPUMemory {
			large++
		}
		if d.Free >= r.GPUMemory && (r.GPUMemory > 0 || d.Tasks == 0) {
			ready++
		}
	}
	switch n := len(f.devices); {
	case n == 0:
		return "it has no GPU"
	case well == 0 && n == 1:
		return "its GPU is not well: " + ill.Health.Reason
	case well == 0:
		return fmt.Sprintf("none of its %s is well: %s", countText(n, "GPU"), ill.Health.Reason)
	case large == 0:
		return fmt.Sprintf("no GPU has %v: the largest has %v", r.GPUMemory, most)
	case large < r.GPUs && r.GPUMemory > 0:
		return fmt.Sprintf("only %d of %s have %v", large, countText(r.GPUs, "GPU"), r.GPUMemory)
	case well < r.GPUs:
		return fmt.Sprintf("it has only %d of %s", well, countText(r.GPUs, "GPU"))
	case ready >= r.GPUs:
		return ""
	case r.GPUMemory == 0:
		return fmt.Sprintf("only %d of %d gpus are free", ready, r.GPUs)
	case ready == 0:
		return fmt.Sprintf("no GPU has %v free: the most is %v", r.GPUMemory, room)
	}
	return fmt.Sprintf("only %d of %s have %v free", ready, countText(r.GPUs, "GPU"), r.GPUMemory)
}

// missingText names what is missing other than devices.
func (f *FreeResources) missingText(r DeviceRequest) string {
	var sum, most roost.Resources // sum of all units that could give it; most of the one with most CPU, or most memory
	waits, open := 0, 0
	for i := range f.units {
		u := &f.units[i]
		if r.GPUs == 0 && len(u.Devices) > 0 && f.cpuOnly || u.usesCPUOfOthers() {
			continue
		}
		if !f.queueAdmits(i, r.Class) {
			waits++
			continue
		}
		open++
		cpu, memory := f.availableCPU(i, r), f.availableMemory(i, r)
		sum.CPU, sum.Memory = sum.CPU+cpu, sum.Memory+memory
		if cpu > most.CPU || cpu == most.CPU && memory > most.Memory {
			most.CPU, most.Memory = cpu, memory
		}
	}
	var short []string
	add := func(is bool, have, want fmt.Stringer, what string) {
		if is {
			short = append(short, fmt.Sprintf("%v of %v %s", have, want, what))
		}
	}
	add(r.CPU > sum.CPU, sum.CPU, r.CPU, "cpus")
	add(r.Memory > sum.Memory, sum.Memory, r.Memory, "memory")
	add(r.Disk > f.disk, f.disk, r.Disk, "disk")
	add(r.IO.Disk > f.io.Disk, f.io.Disk, r.IO.Disk, "disk I/O")
	add(r.IO.Network > f.io.Network, f.io.Network, r.IO.Network, "network")
	switch {
	case waits > 0 && open > 0 && len(short) > 0:
		return "others wait for what falls free in some units, and in the rest only " + strings.Join(short, ", ") +
			" are free"
	case waits > 0:
		return "others wait for what falls free"
	case len(short) > 0:
		return "only " + strings.Join(short, ", ") + " are free"
	case r.GPUs > 0 && !slices.ContainsFunc(f.units, func(u unitState) bool { return u.usesCPUOfOthers() }):
		return fmt.Sprintf("the units of the GPUs that are free have too little: the most is %v, %v memory",
			countText(most.CPU, "cpu"), most.Memory)
	}
	return fmt.Sprintf("no single resource unit has so much free: the most is %v, %v memory",
		countText(most.CPU, "cpu"), most.Memory)
}

// countText returns a number with a noun: "1 GPU", "2.5 cpus".
func countText(n any, thing string) string {
	if text := fmt.Sprint(n); text != "1" {
		return text + " " + thing + "s"
	}
	return "1 " + thing
}
