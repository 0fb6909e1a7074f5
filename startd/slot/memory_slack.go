package slot

import (
	"fmt"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/startd/reclaim"
)

// Memory slack is memory that a task uses beyond its request while the machine has it
// idle (Borg §6.2). A job has to ask for it, and the node's settings bound it. It is
// never in place of a limit: the limit is raised by what is granted now, and grants
// follow what is idle. When memory runs out, those that use slack leave first.

// idleReserve is which part of the machine's memory is never granted as slack. It is well
// above what reclaim.MemoryShortfall takes for a shortage.
const idleReserve = 10

// slackSteps is into how many steps the slack of a claim is divided. So not every sample
// changes a limit.
const slackSteps = 16

// grantMemorySlack divides idle memory among the claims that may use it.
func (c reclaimer) grantMemorySlack(p MemoryPressure) {
	claims := c.slackClaims()
	if len(claims) == 0 || p.Total <= 0 {
		return
	}
	idle := max(p.Available-p.Total/idleReserve, 0) / roost.Bytes(len(claims))
	for _, claim := range claims {
		if want := claim.wantedSlack(idle, c.opt.MemorySlack); want != claim.MemorySlack {
			claim.MemorySlack = want
			c.addEffect(SetMemorySlack{claim})
		}
	}
}

// slackClaims are the claims that may use memory beyond their requests.
func (c reclaimer) slackClaims() (all []*Claim) {
	if c.opt.MemorySlack <= 0 {
		return nil
	}
	for _, claim := range c.claims.sorted() {
		if claim.Info.MemorySlack && !claim.Info.Band.IsProd() && claim.Inside == 0 && claim.hasPlacement &&
			claim.hasLiveAttempt() && claim.Running && !claim.Info.Alone {
			all = append(all, claim)
		}
	}
	return all
}

// wantedSlack returns how much a claim may use beyond its request. It is what it does
// use, and its part of what is idle, in whole steps. It does not exceed the node's
// percentage of the request.
func (c *Claim) wantedSlack(idle roost.Bytes, percent int) roost.Bytes {
	most := c.Resources.Memory * roost.Bytes(percent) / 100
	step := max(most/slackSteps, roost.MiB)
	used := max(c.lastUsage.Memory-c.Resources.Memory, 0)
	want := min(used+idle, most)
	if want < most {
		want = want / step * step
	}
	if want < used { // it is never taken away what it has
		want = min((used+step-1)/step*step, most)
	}
	return want
}

// evictSlackUsers has claims leave that use memory beyond their requests. The largest
// excess is first.
func (c reclaimer) evictSlackUsers(short roost.Bytes, p MemoryPressure) {
	var all []reclaim.EvictionCandidate
	for _, t := range c.nonProdUsage() {
		if t.Excess > 0 || t.IsVacating {
			all = append(all, t)
		}
	}
	c.evictOvercommitted(short, true, all, fmt.Sprintf("the machine ran out of memory (%v of %v were left), and it "+
		"used more than it asked for", p.Available, p.Total))
}
