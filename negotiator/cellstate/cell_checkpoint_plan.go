package cellstate

import (
	"github.com/roost-batch/roost/negotiator/match"
)

// Plan returns the snapshot for the plan that the leader would have made at the moment of
// the checkpoint. It uses the present ledger, machines and requests of c, which may have
// been changed since; requests want their OwnWanted.
func (c *CellCheckpoint) Plan() *match.Snapshot {
	policy := NewPolicy(c.Ledger)
	p := c.CellState
	p.Policy, p.ToPlace = &policy, nil
	for _, a := range c.Requests {
		if a.Wanted = a.OwnWanted; a.Wanted > 0 && policy.StopReason(a.Queue) == "" {
			p.ToPlace = append(p.ToPlace, a)
		}
	}
	p.ToPlace = CollectWaiting(p.ToPlace)
	return p.Snapshot(c.Ledger)
}
