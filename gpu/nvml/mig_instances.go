//go:build cgo

package nvml

import (
	"fmt"
	"strings"

	lib "github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/gpu"
)

// listInstances lists the MIG instances of a card, and whether the card is in MIG mode. A
// card in that mode without instances has nothing that a program could use.
func (l *Library) listInstances(c deviceHandle) (parts []deviceHandle, cut bool) {
	if !l.hasFunction("nvmlDeviceGetMigMode") {
		return nil, false
	}
	if mode, _, ret := c.handle.GetMigMode(); ret != lib.SUCCESS || mode != lib.DEVICE_MIG_ENABLE {
		return nil, false
	}
	most, ret := c.handle.GetMaxMigDeviceCount()
	if ret != lib.SUCCESS {
		return nil, true
	}
	for i := range most {
		handle, ret := c.handle.GetMigDeviceHandleByIndex(i)
		if ret != lib.SUCCESS {
			continue // the numbers have gaps
		}
		if part, ok := l.readInstance(c, handle); ok {
			parts = append(parts, part)
		}
	}
	return parts, true
}

// readInstance reads a MIG instance, which has the location and the health of its card.
func (l *Library) readInstance(parent deviceHandle, handle lib.Device) (deviceHandle, bool) {
	uuid, ret := handle.GetUUID()
	if ret != lib.SUCCESS {
		return deviceHandle{}, false
	}
	d := parent.Device
	d.UUID, d.ParentUUID, d.Memory = uuid, parent.UUID, 0
	if m, ret := handle.GetMemoryInfo(); ret == lib.SUCCESS {
		d.Memory = roost.Bytes(m.Total)
	}
	d.Instance, _ = handle.GetGpuInstanceId()
	d.Compute, _ = handle.GetComputeInstanceId()
	d.MIG = profileName(parent.Model, handle)
	return deviceHandle{Device: d, handle: handle}, true
}

// profileName returns the profile of an instance in the form of nvidia-smi: "3g.20gb".
// Drivers end the instance's name with it.
func profileName(model string, handle lib.Device) string {
	if name, ret := handle.GetName(); ret == lib.SUCCESS {
		if _, p, ok := strings.Cut(name, " MIG "); ok {
			return p
		}
	}
	a, ret := handle.GetAttributes()
	if ret != lib.SUCCESS {
		return "unknown"
	}
	size := fmt.Sprintf("%dg.%dgb", a.GpuInstanceSliceCount, (a.MemorySizeMB+1023)/1024)
	if a.ComputeInstanceSliceCount != 0 && a.ComputeInstanceSliceCount != a.GpuInstanceSliceCount {
		return fmt.Sprintf("%dc.%s", a.ComputeInstanceSliceCount, size)
	}
	return size
}

// devicesOfReport returns the devices to which a report about a card, or about one of its
// GPU instances, applies.
func (l *Library) devicesOfReport(uuid string, instance uint32) []gpu.Device {
	var all []gpu.Device
	for _, c := range l.listDevices() {
		if c.UUID == uuid || c.ParentUUID == uuid && (instance == allInstances || int(instance) == c.Instance) {
			all = append(all, c.Device)
		}
	}
	return all
}

// allInstances is NVML's value for no particular GPU instance.
const allInstances = 0xFFFFFFFF
