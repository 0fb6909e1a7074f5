package match

import (
	"fmt"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
)

// A machine may prefer some requests by its Rank, an expression over itself (MY) and a
// request (TARGET). A batch request that finds no room preempts claims of batch on
// machines that rank it strictly higher than they ranked the claim when they granted it,
// as in HTCondor. So no two requests preempt each other in turn. The machine's Rank has
// no influence where a request finds room.

// readRank sets rankPreempts if the machine's Rank could prefer a request to one of its
// batch claims.
func (m *Machine) readRank() {
	e, ok := m.Ad.Lookup(roost.AttrRank)
	if _, constant := e.Literal(); !ok || constant {
		return
	}
	for i := range m.Claims {
		if m.Claims[i].Band == roost.BatchBand {
			m.rankPreempts = true
		}
	}
}

// machineRankOf returns a machine's Rank of a request, 0 if it is no number.
func (p preemptionPlanner) machineRankOf(w *requestState, m *Machine) float64 {
	e, ok := m.Ad.Lookup(roost.AttrRank)
	if !ok {
		return 0
	}
	rank, _ := classad.Eval(e, m.Ad, w.Class.Ad, &p.env).Number()
	return rankOrZero(rank)
}

// preferredByRank reports whether a machine prefers a request to a claim of the same
// band. A task that cannot be run again is never preempted for Rank.
func (p preemptionPlanner) preferredByRank(w *requestState, m *Machine, c *MachineClaim) bool {
	return m.rankPreempts && !c.losesTask() && c.TaskStarted != 0 && p.machineRankOf(w, m) > c.Rank
}

// rankReason says to the victim's user why the claim is preempted.
func (p preemptionPlanner) rankReason(w *requestState, m *Machine, c *MachineClaim) string {
	return fmt.Sprintf("%s ranks it higher: %.4g over %.4g", m.Name, p.machineRankOf(w, m), c.Rank)
}
