package admission

import (
	"fmt"
	"slices"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/schedd/queue"
	"github.com/roost-batch/roost/schedd/queue/jobad"
)

// CheckPorts refuses jobs with ports that their user may not have in this pool. Machines
// check that again.
func CheckPorts(p *wire.Policy, user, node string, specs []queue.SubmitSpec) error {
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
			if !slices.Contains(holders, user) && !slices.Contains(holders, user+"@"+node) {
				return JobOrdinal(portRefusal(user, needed), i, specs)
			}
		}
	}
	return nil
}

func portRefusal(user, needed string) error {
	what := "a port on all addresses of a machine (host = \"*\")"
	if needed == roost.CapabilityPrivilegedPorts {
		what = fmt.Sprintf("a port below %d", roost.UnprivilegedPort)
	}
	return fmt.Errorf("%w: %s lacks the capability %q, which %s needs; an administrator gives it with: roost admin "+
		"give %s %s", roost.PermissionDenied, user, needed, what, user, needed)
}
