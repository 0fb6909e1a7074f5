package picture

import (
	"github.com/roost-batch/roost/negotiator/match"
)

// Plan returns what a plan is made of that the leader would have made at the moment of the checkpoint, or would make if its ledger, its machines or its
// asks were as they have become since: what these want is their Own.
func (c *Checkpoint) Plan() *match.Snapshot {
	policy := NewPolicy(c.Ledger)
	p := c.Picture
	p.Policy, p.Asking = &policy, nil
	for _, a := range c.Asks {
		if a.Wanted = a.Own; a.Wanted > 0 && policy.Stopped(a.Queue) == "" {
			p.Asking = append(p.Asking, a)
		}
	}
	p.Asking = Gather(p.Asking)
	return p.Snapshot(c.Ledger)
}
