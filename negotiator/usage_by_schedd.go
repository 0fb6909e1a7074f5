package negotiator

import (
	"maps"
	"strings"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/negotiator/cellstate"
	"github.com/roost-batch/roost/negotiator/fairshare"
	"github.com/roost-batch/roost/negotiator/match"
)

// usageBySchedd is the resources that submitters hold, by schedd.
type usageBySchedd map[string]map[fairshare.Submitter]roost.Resources

// prodHoldings is the resources that claims in prod bands hold, by payer.
type prodHoldings map[cellstate.Payer]cellstate.Held

// add adds what a machine's claims hold, including waiting ones, or removes it if sign is
// -1.
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

// prodHeld returns what claims in prod bands hold, and grants that are not in machine ads
// yet.
func (c *leaderState) prodHeld() map[cellstate.Payer]cellstate.Held {
	all := maps.Clone(c.prod)
	for _, p := range c.pendingByID {
		if p.band.IsProd() {
			all.put(cellstate.Payer{Submitter: p.submitter, Band: p.band}, p.resources.Resources, 1)
		}
	}
	return all
}

// addMachine adds what a machine's claims hold, or removes it if sign is -1. A claim
// without a task names no job, so its schedd is unknown. That schedd has just made it and
// reports it itself; if it counted for a schedd that is away, it would be charged twice.
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
