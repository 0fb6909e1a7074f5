//go:build cgo

package nvml

import (
	"maps"
	"slices"

	lib "github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/gpu"
)

// notAvailable is NVML's value for an unknown number.
const notAvailable = ^uint64(0)

// Usage measures the devices of the last call of Devices. A quantity that cannot be
// measured is gpu.NotMeasured. A device that does not answer at all is left out.
func (l *Library) Usage() ([]gpu.DeviceUsage, error) {
	var all []gpu.DeviceUsage
	for _, c := range l.listDevices() {
		u := gpu.DeviceUsage{UUID: c.UUID, BusyFraction: gpu.NotMeasured, Memory: gpu.NotMeasured,
			Temperature: gpu.NotMeasured, Power: gpu.NotMeasured}
		m, ret := c.handle.GetMemoryInfo()
		if ret == lib.ERROR_GPU_IS_LOST {
			continue
		}
		if ret == lib.SUCCESS {
			u.Memory = roost.Bytes(m.Used)
		}
		if c.ParentUUID == "" {
			l.readSensors(c, &u)
		}
		u.Processes = l.listProcesses(c, u.BusyFraction)
		all = append(all, u)
	}
	return all, nil
}

// readSensors reads what only whole cards report.
func (l *Library) readSensors(c deviceHandle, u *gpu.DeviceUsage) {
	if v, ret := c.handle.GetUtilizationRates(); ret == lib.SUCCESS {
		u.BusyFraction = float64(v.Gpu) / 100
	}
	if v, ret := c.handle.GetTemperature(lib.TEMPERATURE_GPU); ret == lib.SUCCESS {
		u.Temperature = int(v)
	}
	if v, ret := c.handle.GetPowerUsage(); ret == lib.SUCCESS {
		u.Power = float64(v) / 1000
	}
}

// listProcesses lists the processes with memory on the device. NVML has three lists, for
// computing, graphics, and computing through the MPS daemon; one process may be in
// several with the same memory.
func (l *Library) listProcesses(c deviceHandle, busy float64) []gpu.DeviceProcess {
	held := map[int]roost.Bytes{}
	lists := []func() ([]lib.ProcessInfo, lib.Return){c.handle.GetComputeRunningProcesses}
	if l.hasFunction("nvmlDeviceGetGraphicsRunningProcesses") {
		lists = append(lists, c.handle.GetGraphicsRunningProcesses)
	}
	if l.hasFunction("nvmlDeviceGetMPSComputeRunningProcesses") {
		lists = append(lists, c.handle.GetMPSComputeRunningProcesses)
	}
	for _, list := range lists {
		infos, ret := list()
		if ret != lib.SUCCESS {
			continue
		}
		for _, p := range infos {
			memory := roost.Bytes(gpu.NotMeasured)
			if p.UsedGpuMemory != notAvailable {
				memory = roost.Bytes(p.UsedGpuMemory)
			}
			if before, twice := held[int(p.Pid)]; !twice || memory > before {
				held[int(p.Pid)] = memory
			}
		}
	}
	samples, sampled := l.processSamples(c)
	var all []gpu.DeviceProcess
	for _, pid := range slices.Sorted(maps.Keys(held)) {
		p := gpu.DeviceProcess{PID: pid, Memory: held[pid], Busy: gpu.NotMeasured}
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

// processSamples returns the part of the time in which each process used the card, since
// the last call.
func (l *Library) processSamples(c deviceHandle) (map[int]float64, bool) {
	if c.ParentUUID != "" || !l.hasFunction("nvmlDeviceGetProcessUtilization") {
		return nil, false
	}
	l.mu.Lock()
	since := l.lastSamples[c.UUID]
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
	l.lastSamples[c.UUID] = since
	l.mu.Unlock()
	return parts, true
}
