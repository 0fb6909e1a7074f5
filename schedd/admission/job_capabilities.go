package admission

import (
	"fmt"
	"slices"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/schedd/queue"
	"github.com/roost-batch/roost/schedd/queue/jobad"
)

// CheckCapabilities refuses jobs that their user may not have in this pool. node is the
// submit node of the user. Machines check ports again.
func CheckCapabilities(p *wire.Policy, user, node string, specs []queue.SubmitSpec) error {
	for i, spec := range specs {
		if _, ok := spec.Ad.Lookup(roost.AttrPorts); !ok {
			continue
		}
		job, err := jobad.ReadSpec(spec.Ad)
		if err != nil {
			return JobOrdinal(err, i, specs)
		}
		for _, needed := range roost.PortCapabilities(job.Ports) {
			holders := p.GetStaticPortUsers()
			if needed == roost.CapabilityPrivilegedPorts {
				holders = p.GetPrivilegedPortUsers()
			}
			if !isHolder(holders, user, node) {
				return JobOrdinal(capabilityRefusal(user, node, needed, ""), i, specs)
			}
		}
	}
	return CheckRestricted(p, user, node, specs)
}

// CheckRestricted refuses jobs that the policy restricts to holders of a capability whom
// their user does not belong to.
func CheckRestricted(p *wire.Policy, user, node string, specs []queue.SubmitSpec) error {
	for _, r := range p.GetRestricted() {
		if isHolder(r.GetUsers(), user, node) {
			continue
		}
		for i := range specs {
			if needsCapability(&specs[i], r.GetCapability()) {
				return JobOrdinal(capabilityRefusal(user, node, r.GetCapability(),
					" in this cell (its setting restricted)"), i, specs)
			}
		}
	}
	return nil
}

// isHolder reports whether a list of users has a user of a submit node.
func isHolder(holders []string, user, node string) bool {
	return slices.Contains(holders, user) || slices.Contains(holders, user+"@"+node)
}

// needsCapability reports whether a job is one of those that a capability allows.
func needsCapability(spec *queue.SubmitSpec, capability string) bool {
	if capability == roost.CapabilityServices {
		alloc, _ := spec.Ad.Bool(roost.AttrAlloc)
		_, service := spec.Ad.Lookup(roost.AttrService)
		return alloc || service
	}
	if capability == roost.DeviceCapability(roost.DeviceGPU) && len(spec.GPUs()) > 0 {
		return true
	}
	text, _ := spec.Ad.Str(roost.AttrLimits)
	limits, _ := roost.ParseLimitRequests(text) // the queue reports one that makes no sense
	return slices.ContainsFunc(limits, func(l roost.LimitRequest) bool {
		return roost.DeviceCapability(l.Name) == capability
	})
}

// capabilityRefusal says which capability a user lacks, for what, and who gives it.
func capabilityRefusal(user, node, needed, where string) error {
	var what string
	switch needed {
	case roost.CapabilityStaticPorts:
		what = "a port on all addresses of a machine (host = \"*\")"
	case roost.CapabilityPrivilegedPorts:
		what = fmt.Sprintf("a port below %d", roost.UnprivilegedPort)
	case roost.CapabilityServices:
		what = "a service or alloc set"
	case roost.DeviceCapability(roost.DeviceGPU):
		what = "a job with GPUs"
	default:
		device, _ := roost.CapabilityDevice(needed)
		what = "a job that asks for " + device
	}
	return fmt.Errorf("%w: %s lacks the capability %q, which %s needs%s; an administrator gives it with: roost admin "+
		"give %s@%s %s", roost.PermissionDenied, user, needed, what, where, user, node, needed)
}
