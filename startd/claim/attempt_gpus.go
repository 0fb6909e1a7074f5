package claim

import (
	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/gpu"
	"github.com/roost-batch/roost/internal/cgroup"
	"github.com/roost-batch/roost/internal/wire"
)

// gpuShares are the devices that the claim was given, and how much of each.
func (f *File) gpuShares() []gpu.SavedShare {
	if f.Placed == nil {
		return nil
	}
	return f.Placed.Shares
}

// openableDevices are the device files that the claim's control group lets be opened. A
// claim that may wait gets other cards with each turn, and which those are is not known
// yet when its group is made: there the sandbox alone, which has only the nodes of its
// own cards, keeps it from the others.
func (h *Runner) openableDevices() []cgroup.DeviceNode {
	shares := h.file.gpuShares()
	if h.file.MayWait && h.file.Resources.GPUs > 0 {
		shares = nil
		for _, d := range h.machine.gpus.Devices() {
			shares = append(shares, gpu.SavedShare{UUID: d.UUID})
		}
	}
	return h.machine.gpus.DeviceNodes(shares)
}

// watchGPUs begins to look at what the attempt on the claim does with the devices. One
// that uses what it was not given ends at once: others on the device may fail for want of
// memory before a notice is over.
func (h *Runner) watchGPUs(id roost.AttemptID) {
	if h.starter == nil {
		return
	}
	h.machine.gpus.AddAttempt(h.id, h.file.gpuShares(), h.starter.PID(), func(reason string) {
		h.queue.Put(VacateCmd{ID: id, Cause: wire.Cause_CAUSE_GPU_MEMORY, Fast: true, Reason: reason})
	})
}
