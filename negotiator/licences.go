package negotiator

import (
	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/negotiator/match"
)

// licences is how many of each licence are in use.
type licences map[string]int

// add notes what a machine's claims take, or with sign -1 that they do no more. A list that makes no sense takes nothing: the startd had it from a
// request that made sense.
func (n licences) add(m *machine, sign int) {
	for i := range m.Claims {
		if m.Claims[i].Limits == "" {
			continue
		}
		all, err := roost.ParseLicences(m.Claims[i].Limits)
		if err != nil {
			continue
		}
		for _, l := range all {
			if n[l.Name] += sign * l.Count; n[l.Name] == 0 {
				delete(n, l.Name)
			}
		}
	}
}

// limits is how much of each limit that is set is in use: by the claims that machines tell of, and by grants that do not show there yet.
func (c *cell) limits() map[string]match.Limit {
	if len(c.policy.limits)+len(c.policy.queues) == 0 {
		return nil
	}
	promised := licences{}
	for _, p := range c.pending {
		for _, l := range p.licences {
			promised[l.Name] += l.Count
		}
	}
	all := make(map[string]match.Limit, len(c.policy.limits))
	for _, l := range c.policy.limits {
		all[l.Name] = match.Limit{Total: int(l.Count), Used: c.licences[l.Name] + promised[l.Name]}
	}
	c.countQueues(all)
	return all
}
