package gpu

import (
	"slices"

	"github.com/roost-batch/roost"
)

// NotMeasured stands for a quantity that a device, or its driver, does not tell.
const NotMeasured = -1

// DeviceUsage is what one device was doing when it was asked.
type DeviceUsage struct {
	UUID         string
	BusyFraction float64         // the part of the time that kernels ran, 0 to 1; Unmeasured
	Memory       roost.Bytes     // in use by everybody; Unmeasured
	Temperature  int             // degrees Celsius; Unmeasured
	Power        float64         // watts; Unmeasured
	Processes    []DeviceProcess // that hold memory of it, by ascending pid
}

// DeviceProcess is one program on a device.
type DeviceProcess struct {
	PID    int         // as the startd's own process namespace numbers it
	Memory roost.Bytes // of the device; Unmeasured
	Busy   float64     // the part of the time that its kernels ran, 0 to 1; Unmeasured
}

// UsageOf adds up what those processes use of the device that belong to one task, of
// which pids are all, in ascending order. Largest is the one with the most memory, with
// pid 0 if there is none; busy is 0 when it is not measured.
func (u DeviceUsage) UsageOf(pids []int) (memory roost.Bytes, busy float64, largest DeviceProcess) {
	for _, p := range u.Processes {
		if _, ours := slices.BinarySearch(pids, p.PID); !ours {
			continue
		}
		memory += max(p.Memory, 0)
		busy += max(p.Busy, 0)
		if largest.PID == 0 || p.Memory > largest.Memory {
			largest = p
		}
	}
	return memory, busy, largest
}
