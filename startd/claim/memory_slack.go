package claim

import "github.com/roost-batch/roost"

// setMemorySlack lets the claim use more memory than it asked for, or less of that than
// before. It never has less than it uses now: what must be taken back is the business of
// evictions. The larger limit is on disk before the kernel has it, and the smaller one
// afterwards.
func (h claimResizer) setMemorySlack(o MemorySlackCmd) {
	if h.group == nil || o.Slack == h.file.Slack {
		return
	}
	before, after := h.file, h.file
	after.Slack = o.Slack
	if o.Slack < before.Slack {
		if used := h.group.ChargedMemory(); used > before.Resources.Memory {
			after.Slack = min(max(o.Slack, used-before.Resources.Memory+roost.MiB), before.Slack)
		}
	}
	if after.Slack > before.Slack {
		h.recordSlack(after)
	}
	if err := h.group.SetLimits(limitsOf(after, h.machine.config)); err != nil {
		h.machine.log.Info("the memory slack of a claim stays", "claim", h.id, "err", err)
		h.recordSlack(before)
		return
	}
	h.recordSlack(after)
}

// recordSlack notes what the claim may use.
func (h claimResizer) recordSlack(file File) {
	if h.file.Slack == file.Slack {
		return
	}
	h.file.Slack = file.Slack
	if err := writeClaimFile(h.dir, h.file); err != nil {
		h.machine.log.Warn("the memory slack of a claim cannot be written down", "claim", h.id, "err", err)
	}
}
