package gpu

import (
	"slices"

	"github.com/roost-batch/roost"
)

// NotMeasured means that a device or its driver does not report a quantity.
const NotMeasured = -1

// DeviceUsage is a measurement of one device.
type DeviceUsage struct {
	UUID         string
	BusyFraction float64         // part of the time in which kernels ran, 0 to 1; or NotMeasured
	Memory       roost.Bytes     // in use by all processes; or NotMeasured
	Temperature  int             // degrees Celsius; or NotMeasured
	Power        float64         // watts; or NotMeasured
	Processes    []DeviceProcess // processes with memory on the device, by ascending pid
}

// DeviceProcess is one process on a device.
type DeviceProcess struct {
	PID    int         // in the startd's own PID namespace
	Memory roost.Bytes // memory of the device in use; or NotMeasured
	Busy   float64     // part of the time in which its kernels ran, 0 to 1; or NotMeasured
}

// UsageOf sums the usage of one task's processes on the device. pids are all processes of
// the task, ascending. largest is the one with the most memory, with pid 0 if there is
// none; busy is 0 if it is not measured.
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
