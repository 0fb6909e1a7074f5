package gpu

import (
	"slices"

	"github.com/roost-batch/roost"
)

// Unmeasured stands for a quantity that a device, or its driver, does not tell.
const Unmeasured = -1

// Usage is what one device was doing when it was asked.
type Usage struct {
	UUID        string
	Busy        float64     // the part of the time that kernels ran, 0 to 1; Unmeasured
	Memory      roost.Bytes // in use by everybody; Unmeasured
	Temperature int         // degrees Celsius; Unmeasured
	Power       float64     // watts; Unmeasured
	Processes   []Process   // that hold memory of it, by ascending pid
}

// Process is one program on a device.
type Process struct {
	PID    int         // as the startd's own process namespace numbers it
	Memory roost.Bytes // of the device; Unmeasured
	Busy   float64     // the part of the time that its kernels ran, 0 to 1; Unmeasured
}

// Of adds up what those processes use of the device that belong to one task, of which pids are all, in ascending order. Largest is the one with
// the most memory, with pid 0 if there is none; busy is 0 when it is not measured.
func (u Usage) Of(pids []int) (memory roost.Bytes, busy float64, largest Process) {
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
