package negotiator

import (
	"maps"
	"strings"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/negotiator/cellstate"
	"github.com/roost-batch/roost/negotiator/fairshare"
	"github.com/roost-batch/roost/negotiator/match"
)

// usageBySchedd is what submitters hold, by schedd.
type usageBySchedd map[string]map[fairshare.Submitter]roost.Resources

// prodHoldings is what claims in the bands that displace others hold, by payer.
type prodHoldings map[cellstate.Payer]cellstate.Held

// add notes what a machine's claims hold, those that wait there included, or with sign -1
// that they do no more.
func (h prodHoldings) add(m *inventoryMachine, sign int) {
	for _, list := range [...][]match.MachineClaim{m.Claims, m.Preemptors} {
		for i := range list {
			if claim := &list[i]; claim.Band.IsProd() {
				h.put(cellstate.Payer{Submitter: claim.Submitter, Band: claim.Band}, claim.Resources, sign)
			}
		}
	}
}

func (h prodHoldings) put(who cellstate.Payer, more roost.Resources, sign int) {
	if h[who] = h[who].Add(more, sign); h[who] == (cellstate.Held{}) {
		delete(h, who)
	}
}

// prodHeld is what claims in those bands hold, and grants that do not show in machines'
// ads yet.
func (c *leaderState) prodHeld() map[cellstate.Payer]cellstate.Held {
	all := maps.Clone(c.prod)
	for _, p := range c.pendingByID {
		if p.band.IsProd() {
			all.put(cellstate.Payer{Submitter: p.submitter, Band: p.band}, p.resources.Resources, 1)
		}
	}
	return all
}

// addMachine notes what a machine's claims hold, or with sign -1 that they do no more. A
// claim on which nothing runs says no job, and so not whose it is: its schedd has made it
// a moment ago, and tells of it by itself; taken for one of a schedd that is away it
// would be charged twice.
func (h usageBySchedd) addMachine(m *inventoryMachine, sign int) {
	for i := range m.Claims {
		claim := &m.Claims[i]
		_, schedd, named := strings.Cut(claim.Job, ".") // "12[3].host"
		if !named {
			continue
		}
		all := h[schedd]
		if all == nil {
			all = map[fairshare.Submitter]roost.Resources{}
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
