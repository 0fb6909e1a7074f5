package startd

import (
	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/gpu"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/startd/slot"
)

// claimDevices are the devices that a claim was given, and how much of each.
func (l *loop) claimDevices(c *slot.Claim) []gpu.SavedShare { return nil }

// healthChanged tells the books how the devices are.
func (l *loop) healthChanged() { l.publish(true) }

// measure begins to look at what the attempt on the claim does with the devices.
func (h *hand) measure(pid int) {
	h.m.gpus.enter(h.id, h.file.GPUs, pid, h.overGPU(h.now.id))
}

// overGPU ends an attempt that uses what it was not given, at once: others on the device may fail for want of memory before a notice is over.
func (h *hand) overGPU(id roost.AttemptID) func(reason string) {
	return func(reason string) {
		h.box.put(vacate{id: id, cause: wire.Cause_CAUSE_GPU_MEMORY, fast: true, reason: reason})
	}
}
