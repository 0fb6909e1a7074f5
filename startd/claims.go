package startd

import (
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/startd/slot"
)

// about is for whom a claim is, as the grant says; what it counts for stands in the request's ad. No band is the ordinary one.
func about(r *wire.ClaimRequest, ad *classad.Ad) (slot.About, error) {
	a := slot.About{Group: r.GetGroup(), Band: roost.Batch}
	if ad != nil {
		a.Limits, _ = ad.Str(roost.AttrLimits)
		a.Alone, _ = ad.Bool(roost.AttrExclusive)
		a.Queue, _ = ad.Str(roost.AttrQueue)
	}
	if r.GetBand() == "" {
		return a, nil
	}
	var err error
	a.Band, err = roost.ParseBand(r.GetBand())
	return a, err
}

// terms are what a schedd says of an attempt beforehand.
func terms(p *wire.Program) slot.Terms {
	return slot.Terms{Walltime: time.Duration(p.GetWalltimeNs()), Expected: time.Duration(p.GetExpectedNs()), Once: p.GetOnce()}
}

// evicted is who has to go for a claim.
func evicted(r *wire.ClaimRequest) slot.Evicted {
	e := slot.Evicted{Why: r.GetWhy(), Job: r.GetJob()}
	for _, id := range r.GetVictims() {
		e.Claims = append(e.Claims, slot.ClaimID(id))
	}
	return e
}

// tellSaves has it known how much would be lost if the attempt had to leave. A program that saves its own state is taken at its word.
func (h *hand) tellSaves(a *attempt) {
	s := &a.saving
	h.m.meters.setSaves(h.id, a.id, slot.Saved{Can: s.policy.GetOnVacate() && (s.can || a.savesItself()), Last: s.good})
}
