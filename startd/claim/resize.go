package claim

import (
	"fmt"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/gpu"
	"github.com/roost-batch/roost/internal/failpoint"
)

// claimResizer is a runner as far as it changes the size of its claim.
type claimResizer struct{ *Runner }

// resizeClaim changes the limits of a claim while its attempt runs. What is on disk is
// never less than what the kernel allows: the larger size is written down before the
// limits change, and the new one afterwards. A startd that is killed in between adopts
// the larger size, and its schedd asks again.
func (h claimResizer) resizeClaim(o ResizeCmd) {
	refusal := "its attempt has ended"
	if h.hasOpenAttempt(o.ID) {
		refusal = ""
		if err := h.changeSize(o); err != nil {
			refusal = PrintableReason(err.Error())
		}
	}
	failpoint.Point(failpoint.StartdAfterResize)
	h.machine.host.Post(ResizedEvent{h.id, refusal})
}

func (h claimResizer) changeSize(o ResizeCmd) error {
	before := h.file
	if err := h.recordSize(o.Held, o.Saved); err != nil {
		h.file = before
		return err
	}
	failpoint.Point(failpoint.StartdInResize)
	after := before
	after.Resources, after.Placed = o.To, placedAs(before, o.SavedAfter)
	if err := h.limitSize(before, after); err != nil {
		if back := h.recordSize(before.Resources, savedOf(before)); back != nil {
			h.machine.log.Error("the old size of a claim cannot be written down", "claim", h.id, "err", back)
		}
		h.file = before
		return err
	}
	if err := h.recordSize(o.To, o.SavedAfter); err != nil { // more than it has is on disk, which does no harm
		h.machine.log.Error("the new size of a claim cannot be written down", "claim", h.id, "err", err)
	}
	h.file = after
	h.machine.log.Info("claim resized", "claim", h.id, "from", before.Resources, "to", o.To)
	return nil
}

// recordSize writes down what the claim holds.
func (h claimResizer) recordSize(size roost.Resources, saved gpu.SavedPlacement) error {
	h.file.Resources, h.file.Placed = size, placedAs(h.file, saved)
	return writeClaimFile(h.dir, h.file)
}

// placedAs is the placement of a claim's file. A claim inside an alloc has none of its
// own of the machine's CPU and memory.
func placedAs(f File, saved gpu.SavedPlacement) *gpu.SavedPlacement {
	if f.Inside != 0 || f.Placed == nil {
		return f.Placed
	}
	return &saved
}

func savedOf(f File) gpu.SavedPlacement {
	if f.Placed == nil {
		return gpu.SavedPlacement{}
	}
	return *f.Placed
}

// limitSize changes the limits of the claim's processes. Without a control group nothing
// holds them to their memory, and it is enough that they use less than they may.
func (h claimResizer) limitSize(before, after File) error {
	if h.group != nil {
		return h.group.Resize(limitsOf(before, h.machine.config), limitsOf(after, h.machine.config))
	}
	_, used, measured := h.machine.meters.CurrentUse(h.id, h.attempt.id)
	if measured && used > after.Resources.Memory && after.Resources.Memory < before.Resources.Memory {
		return fmt.Errorf("%w: its processes use %v of memory, and it would have %v", roost.Conflict, used,
			after.Resources.Memory)
	}
	return nil
}

// restoreLimits sets the limits of an adopted claim again. A startd that was killed while
// it changed them may have left others than it has written down.
func (h claimResizer) restoreLimits() {
	if h.group == nil {
		return
	}
	if err := h.group.SetLimits(limitsOf(h.file, h.machine.config)); err != nil {
		h.machine.log.Warn("the limits of a claim cannot be set again", "claim", h.id, "err", err)
	}
}
