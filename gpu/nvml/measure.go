//go:build cgo

package nvml

import (
	"maps"
	"slices"

	lib "github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/gpu"
)

// unavailable is what NVML writes for a number that it does not have.
const unavailable = ^uint64(0)

// Usage measures the devices that Devices has found last. What cannot be measured is gpu.Unmeasured; one that does not answer at all is left out.
func (l *Library) Usage() ([]gpu.Usage, error) {
	var all []gpu.Usage
	for _, c := range l.all() {
		u := gpu.Usage{UUID: c.UUID, Busy: gpu.Unmeasured, Memory: gpu.Unmeasured, Temperature: gpu.Unmeasured, Power: gpu.Unmeasured}
		m, ret := c.handle.GetMemoryInfo()
		if ret == lib.ERROR_GPU_IS_LOST {
			continue
		}
		if ret == lib.SUCCESS {
			u.Memory = roost.Bytes(m.Used)
		}
		if c.Parent == "" {
			l.senses(c, &u)
		}
		u.Processes = l.processes(c, u.Busy)
		all = append(all, u)
	}
	return all, nil
}

// senses asks for what only whole cards know.
func (l *Library) senses(c card, u *gpu.Usage) {
	if v, ret := c.handle.GetUtilizationRates(); ret == lib.SUCCESS {
		u.Busy = float64(v.Gpu) / 100
	}
	if v, ret := c.handle.GetTemperature(lib.TEMPERATURE_GPU); ret == lib.SUCCESS {
		u.Temperature = int(v)
	}
	if v, ret := c.handle.GetPowerUsage(); ret == lib.SUCCESS {
		u.Power = float64(v) / 1000
	}
}

// processes lists who holds memory of the device. Computing, drawing, and computing through the MPS daemon are three lists, in which one process
// may stand several times with the same memory.
func (l *Library) processes(c card, busy float64) []gpu.Process {
	held := map[int]roost.Bytes{}
	lists := []func() ([]lib.ProcessInfo, lib.Return){c.handle.GetComputeRunningProcesses}
	if l.has("nvmlDeviceGetGraphicsRunningProcesses") {
		lists = append(lists, c.handle.GetGraphicsRunningProcesses)
	}
	if l.has("nvmlDeviceGetMPSComputeRunningProcesses") {
		lists = append(lists, c.handle.GetMPSComputeRunningProcesses)
	}
	for _, list := range lists {
		infos, ret := list()
		if ret != lib.SUCCESS {
			continue
		}
		for _, p := range infos {
			memory := roost.Bytes(gpu.Unmeasured)
			if p.UsedGpuMemory != unavailable {
				memory = roost.Bytes(p.UsedGpuMemory)
			}
			if before, twice := held[int(p.Pid)]; !twice || memory > before {
				held[int(p.Pid)] = memory
			}
		}
	}
	samples, sampled := l.samples(c)
	var all []gpu.Process
	for _, pid := range slices.Sorted(maps.Keys(held)) {
		p := gpu.Process{PID: pid, Memory: held[pid], Busy: gpu.Unmeasured}
		switch {
		case sampled:
			p.Busy = samples[pid]
		case len(held) == 1:
			p.Busy = busy
		}
		all = append(all, p)
	}
	return all
}

// samples are the parts of the time that each process kept the card busy, since it was asked last.
func (l *Library) samples(c card) (map[int]float64, bool) {
	if c.Parent != "" || !l.has("nvmlDeviceGetProcessUtilization") {
		return nil, false
	}
	l.mu.Lock()
	since := l.seen[c.UUID]
	l.mu.Unlock()
	list, ret := c.handle.GetProcessUtilization(since)
	if ret != lib.SUCCESS && ret != lib.ERROR_NOT_FOUND {
		return nil, false
	}
	parts, at := map[int]float64{}, map[int]uint64{}
	for _, s := range list {
		if s.TimeStamp >= at[int(s.Pid)] && s.SmUtil <= 100 {
			parts[int(s.Pid)], at[int(s.Pid)] = float64(s.SmUtil)/100, s.TimeStamp
		}
		since = max(since, s.TimeStamp)
	}
	l.mu.Lock()
	l.seen[c.UUID] = since
	l.mu.Unlock()
	return parts, true
}
