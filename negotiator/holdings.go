package negotiator

import (
	"maps"
	"strings"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/negotiator/match"
	"github.com/roost-batch/roost/negotiator/picture"
	"github.com/roost-batch/roost/negotiator/share"
)

// holdings is what submitters hold, by schedd.
type holdings map[string]map[share.Submitter]roost.Resources

// prodHoldings is what claims in the bands that displace others hold, by payer.
type prodHoldings map[picture.Payer]picture.Held

// add notes what a machine's claims hold, those that wait there included, or with sign -1 that they do no more.
func (h prodHoldings) add(m *machine, sign int) {
	for _, list := range [...][]match.Claim{m.Claims, m.Heirs} {
		for i := range list {
			if claim := &list[i]; claim.Band.Prod() {
				h.put(picture.Payer{Submitter: claim.Submitter, Band: claim.Band}, claim.Resources, sign)
			}
		}
	}
}

func (h prodHoldings) put(who picture.Payer, more roost.Resources, sign int) {
	if h[who] = h[who].Add(more, sign); h[who] == (picture.Held{}) {
		delete(h, who)
	}
}

// prodHeld is what claims in those bands hold, and grants that do not show in machines' ads yet.
func (c *cell) prodHeld() map[picture.Payer]picture.Held {
	all := maps.Clone(c.prod)
	for _, p := range c.pending {
		if p.band.Prod() {
			all.put(picture.Payer{Submitter: p.submitter, Band: p.band}, p.promise.Resources, 1)
		}
	}
	return all
}

// add notes what a machine's claims hold, or with sign -1 that they do no more. A claim on which nothing runs says no job, and so not whose it is: its schedd
// has made it a moment ago, and tells of it by itself; taken for one of a schedd that is away it would be charged twice.
func (h holdings) add(m *machine, sign int) {
	for i := range m.Claims {
		claim := &m.Claims[i]
		_, schedd, named := strings.Cut(claim.Job, ".") // "12[3].host"
		if !named {
			continue
		}
		all := h[schedd]
		if all == nil {
			all = map[share.Submitter]roost.Resources{}
			h[schedd] = all
		}
		sum := all[claim.Submitter]
		if sign > 0 {
			sum = sum.Add(claim.Resources)
		} else {
			sum = sum.Sub(claim.Resources)
		}
		if all[claim.Submitter] = sum; sum == (roost.Resources{}) {
			if delete(all, claim.Submitter); len(all) == 0 {
				delete(h, schedd)
			}
		}
	}
}
