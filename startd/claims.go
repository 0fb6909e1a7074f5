package startd

import (
	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/startd/slot"
)

// about is what a request's ad says of whom the claim is for. No ad at all is of the ordinary band.
func about(ad *classad.Ad) slot.About {
	a := slot.About{Band: roost.Batch}
	if ad == nil {
		return a
	}
	a.Group, _ = ad.Str(roost.AttrGroup)
	a.Limits, _ = ad.Str(roost.AttrLimits)
	if text, ok := ad.Str(roost.AttrBand); ok {
		if band, err := roost.ParseBand(text); err == nil {
			a.Band = band
		}
	}
	return a
}

// tellSaves has it known how much would be lost if the attempt had to leave. A program that saves its own state is taken at its word.
func (h *hand) tellSaves(a *attempt) {
	s := &a.saving
	h.m.meters.setSaves(h.id, a.id, slot.Saved{Can: s.policy.GetOnVacate() && (s.can || a.savesItself()), Last: s.good})
}
