package slot

import (
	"fmt"
	"slices"

	"github.com/roost-batch/roost"
)

// PortNeeds are the ports that a claim is to have.
type PortNeeds struct {
	Wanted []roost.PortRequest
	Job    string // that they are for, with its schedd: it may have again what it had a moment ago
	// whether nothing else on the machine has a port, as far as can be seen now; nil:
	// nothing has
	IsFree func(roost.ClaimPort) bool
}

// ClaimPorts is the claim table as far as claims have ports.
type ClaimPorts struct{ *ClaimTable }

// PortsOf returns the claim table as far as claims have ports.
func PortsOf(c *ClaimTable) ClaimPorts { return ClaimPorts{c} }

// Table returns the books of the machine's ports.
func (c ClaimPorts) Table() *PortTable { return c.ports }

// findPorts finds the ports of a request.
func (c admission) findPorts(n PortNeeds) ([]roost.ClaimPort, error) {
	if c.ports.updateQuarantines(c.now) {
		c.version++
	}
	s := portSearch{PortTable: c.ports, now: c.now, job: n.Job, isFree: n.IsFree}
	ports, err := s.find(n.Wanted)
	if s.foreignChanged {
		c.version++
	}
	return ports, err
}

// hold gives a claim its ports.
func (c ClaimPorts) hold(claim *Claim, job string, ports []roost.ClaimPort) {
	claim.Ports, claim.PortJob = ports, job
	c.ports.hold(claim.ID, ports)
	if len(ports) > 0 {
		c.version++
	}
}

// adopt gives an adopted claim the ports that it had. One that another claim has
// stays with that: files of claims say so only if they are damaged.
func (c ClaimPorts) adopt(claim *Claim) {
	ports := slices.DeleteFunc(slices.Clone(claim.Ports), func(p roost.ClaimPort) bool {
		_, held := c.ports.holders[p.Number]
		return held || p.Number == 0
	})
	claim.portsBound = true
	if claim.endReason != "" {
		claim.portsReleased = true
		return
	}
	c.hold(claim, claim.PortJob, ports)
}

// release gives up the ports of a claim that will run nothing more. The claim goes
// on naming them, for those who want to know what its last attempt had.
func (c ClaimPorts) release(claim *Claim) {
	if len(claim.Ports) > 0 && !claim.portsReleased {
		claim.portsReleased = true
		c.ports.release(claim.ID, claim.PortJob, claim.Ports)
		c.version++
	}
}

// Recheck looks whether something else on the machine has taken the ports of a claim. It
// is called when an attempt is about to start. A port that had no number of its own is
// replaced, which changed reports; for others the error says what is wrong. Ports that
// the machine has bound for an attempt before are the claim's.
func (c ClaimPorts) Recheck(now roost.BootTime, id ClaimID,
	isFree func(roost.ClaimPort) bool) (changed bool, err error) {
	claim := c.claims[id]
	if claim == nil || len(claim.Ports) == 0 {
		return false, nil
	}
	c.ports.updateQuarantines(now)
	s := portSearch{PortTable: c.ports, now: now, job: claim.PortJob, isFree: isFree}
	ports := slices.Clone(claim.Ports)
	for i, p := range ports {
		if p.Listen && claim.portsBound || s.probe(p) {
			continue
		}
		if p.Static != 0 {
			c.version++
			return false, foreignPortError(p)
		}
		if ports[i], err = s.findDynamic(p.PortRequest, ports); err != nil {
			return false, err
		}
		changed = true
	}
	claim.portsBound = true
	if changed {
		c.ports.release(claim.ID, claim.PortJob, claim.Ports)
		c.ports.updateQuarantines(now)
		c.hold(claim, claim.PortJob, ports)
	}
	return changed, nil
}

// checkPorts panics when the books of ports contradict the claims.
func (c invariants) checkPorts() {
	c.ports.checkQuarantine()
	held := 0
	for _, claim := range c.claims.sorted() {
		if claim.portsReleased {
			continue
		}
		for _, p := range claim.Ports {
			held++
			if c.ports.holders[p.Number] != claim.ID {
				panic(fmt.Sprintf("%v has port %d, which claim %d holds", claim, p.Number, c.ports.holders[p.Number]))
			}
			if f, freed := c.ports.freed[p.Number]; freed {
				panic(fmt.Sprintf("%v has port %d, which is in quarantine for %s", claim, p.Number, f.Job))
			}
		}
	}
	if held != len(c.ports.holders) {
		panic(fmt.Sprintf("%d ports have holders, and claims have %d", len(c.ports.holders), held))
	}
}
