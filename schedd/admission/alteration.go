package admission

import (
	"cmp"
	"slices"
	"strings"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/schedd/queue"
)

// limitedAttributes are the attributes by which a job's queue, and quotas, allow it or do
// not.
func limitedAttributes() []string {
	return []string{
		roost.AttrRequestCpus, roost.AttrRequestMemory, roost.AttrRequestDisk, roost.AttrRequestGpus,
		roost.AttrRequestGpuMem, roost.AttrWalltime, roost.AttrPriority,
		roost.AttrCPUTime, roost.AttrProcessCPU, roost.AttrVirtual, roost.AttrProcessVirtual, roost.AttrProcessMemory,
		roost.AttrFileSize, roost.AttrLimits, roost.AttrRequirements,
	}
}

// setQueueAttributes notes in an ad what its queue has given it.
func setQueueAttributes(ad *classad.Ad, names []string) {
	if len(names) == 0 {
		ad.Delete(roost.AttrQueueDefaults)
		return
	}
	ad.SetStrings(roost.AttrQueueDefaults, names)
}

// ApplyAlteration checks the names in an altered job and applies its queue again. It does
// so only where an attribute has changed that queues look at.
func ApplyAlteration(p *wire.Policy, changes *classad.Ad, spec *queue.SubmitSpec) error {
	stated := func(name string) bool { _, ok := changes.Lookup(name); return ok }
	if stated(roost.AttrGroup) || stated(roost.AttrReservation) || stated(roost.AttrLimits) {
		if err := checkJobReferences(p, spec); err != nil {
			return err
		}
	}
	if !slices.ContainsFunc(limitedAttributes(), stated) {
		return nil
	}
	if filled, ok := spec.Ad.Strings(roost.AttrQueueDefaults); ok { // the job says it itself now
		setQueueAttributes(spec.Ad, slices.DeleteFunc(filled, func(name string) bool {
			return stated(name) || strings.HasPrefix(name, limitPrefix) && stated(roost.AttrLimits)
		}))
	}
	name, _ := spec.Ad.Str(roost.AttrQueue)
	q, ok := FindQueue(p, name)
	if !ok {
		return nil
	}
	return applyQueue(p, q, spec)
}

// CheckRights refuses a new revision or an alteration of a job that its owner may not
// have in this pool. An alteration is checked only if it concerns what capabilities are
// for.
func CheckRights(p *wire.Policy, owner, node string, changes *classad.Ad, spec *queue.SubmitSpec) error {
	concerned := []string{roost.AttrPorts, roost.AttrRequestGpus, roost.AttrRequestGpuMem, roost.AttrLimits,
		roost.AttrService}
	if changes != nil && !slices.ContainsFunc(concerned, func(name string) bool {
		_, ok := changes.Lookup(name)
		return ok
	}) {
		return nil
	}
	return CheckCapabilities(p, owner, node, []queue.SubmitSpec{*spec})
}

// MoveToQueue makes a job what a submission to another queue would have made of it. The
// name may be a reservation's; empty: the default queue. The job leaves its present one.
func (e *QueueAdmission) MoveToQueue(spec *queue.SubmitSpec, to string) error {
	if to == "" {
		to = e.Policy.GetDefaultQueue()
	}
	was, _ := spec.Ad.Str(roost.AttrQueue)
	if reserved, _ := spec.Ad.Str(roost.AttrReservation); cmp.Or(reserved, was) == to {
		return nil
	}
	spec.Ad.Delete(roost.AttrReservation)
	if undefinedQueue(e.Policy, to) {
		return notFoundError("queue", to, []string{roost.DefaultQueueName})
	}
	return e.enterQueue(spec, to)
}
