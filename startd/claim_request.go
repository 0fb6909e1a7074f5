package startd

import (
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/startd/slot"
)

// claimInfo is for whom a claim is, as the grant says; what it counts for stands in the
// request's ad. No band is the ordinary one.
func claimInfo(r *wire.ClaimRequest, ad *classad.Ad) (slot.ClaimInfo, error) {
	a := slot.ClaimInfo{Group: r.GetGroup(), Band: roost.BatchBand}
	if ad != nil {
		a.Limits, _ = ad.Str(roost.AttrLimits)
		a.Alone, _ = ad.Bool(roost.AttrExclusive)
		a.Queue, _ = ad.Str(roost.AttrQueue)
		a.Alloc, _ = ad.Bool(roost.AttrAlloc)
		readMachineOptions(&a, ad)
	}
	if r.GetBand() == "" {
		return a, nil
	}
	var err error
	a.Band, err = roost.ParsePriorityBand(r.GetBand())
	return a, err
}

// readMachineOptions reads what a request wants of the machine beside resources.
func readMachineOptions(a *slot.ClaimInfo, ad *classad.Ad) {
	if slack, ok := ad.Bool(roost.AttrCPUSlack); ok {
		a.NoCPUSlack = !slack
	}
	a.MemorySlack, _ = ad.Bool(roost.AttrMemorySlack)
	a.WholeCores, _ = ad.Bool(roost.AttrWholeCores)
	a.OneNUMANode, _ = ad.Bool(roost.AttrOneNumaNode)
	if n, ok := ad.Int(roost.AttrCoreThreads); ok && n > 0 {
		a.CoreThreads = int(min(n, maxCoreThreads))
	}
}

// maxCoreThreads is the most hardware threads of a core that any processor has.
const maxCoreThreads = 8

// attemptInfo are what a schedd says of an attempt beforehand.
func attemptInfo(p *wire.Program) slot.AttemptInfo {
	return slot.AttemptInfo{Walltime: time.Duration(p.GetWalltimeNs()), Expected: time.Duration(p.GetExpectedNs()),
		NotRestartable: p.GetOnce(), Priority: slot.BoundPriority(p.GetPriority())}
}

// preemptionReason is who has to go for a claim.
func preemptionReason(r *wire.ClaimRequest) slot.PreemptionReason {
	e := slot.PreemptionReason{Reason: r.GetWhy(), Job: r.GetJob()}
	for _, id := range r.GetVictims() {
		e.Claims = append(e.Claims, slot.ClaimID(id))
	}
	return e
}
