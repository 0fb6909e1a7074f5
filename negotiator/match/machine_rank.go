package match

import (
	"fmt"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
)

// A machine may say whom it would rather run: its Rank, an expression over itself (MY)
// and a request (TARGET). A batch request that finds no room displaces claims of batch on
// machines that rank it strictly higher than they ranked the claim's when they gave it,
// as HTCondor's machines do; so no two requests displace each other in turn. Where a
// request is placed that finds room is not for the machine to say.

// readRank notes whom the machine would rather run, if it makes a difference: it has a
// claim of batch that is less to it than another could be.
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

// machineRankOf is a machine's Rank of a request, 0 if it is no number.
func (p preemptionPlanner) machineRankOf(w *requestState, m *Machine) float64 {
	e, ok := m.Ad.Lookup(roost.AttrRank)
	if !ok {
		return 0
	}
	rank, _ := classad.Eval(e, m.Ad, w.Class.Ad, &p.env).Number()
	return rankOrZero(rank)
}

// preferredByRank reports whether a machine would rather run a want than a claim of the
// same band. What is not run again nobody loses for that.
func (p preemptionPlanner) preferredByRank(w *requestState, m *Machine, c *MachineClaim) bool {
	return m.rankPreempts && !c.losesTask() && c.TaskStarted != 0 && p.machineRankOf(w, m) > c.Rank
}

// rankReason says to those who have to go why they have to.
func (p preemptionPlanner) rankReason(w *requestState, m *Machine, c *MachineClaim) string {
	return fmt.Sprintf("%s ranks it higher: %.4g over %.4g", m.Name, p.machineRankOf(w, m), c.Rank)
}
