package slot

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/gpu"
	"github.com/roost-batch/roost/startd/reclaim"
)

// throttlePatience is how long a claim in reclaimed room may get less CPU than it asked
// for. Then it has to go, because it would be better off elsewhere (Borg §6.2).
const throttlePatience = 10 * time.Minute

// MemoryPressure is what the machine itself has left of its memory, whoever has the rest.
// A Total of 0: nobody knows.
type MemoryPressure struct{ Available, Total roost.Bytes }

// reclaimer is the claim table as far as it lends what tasks leave of their resources,
// and takes it back.
type reclaimer struct{ *ClaimTable }

func (c *ClaimTable) reclaimer() reclaimer { return reclaimer{c} }

// AddUsageSamples takes in what each claim's task uses, and lets reservations follow.
// What that means for those in reclaimed room, Todo sees to.
func (c *ClaimTable) AddUsageSamples(now roost.BootTime, use map[ClaimID]reclaim.ResourceAmount, p MemoryPressure) {
	c.now = now
	params := reclaim.ParamsOf(c.opt.Reclaim).ScaledTo(c.opt.SettlingTime)
	for _, claim := range c.claims.sorted() {
		if claim.Inside != 0 || !claim.hasPlacement || !claim.hasLiveAttempt() || !claim.Running || claim.Info.Alone {
			continue
		}
		used := use[claim.ID]
		switch limit := reclaim.AmountOf(claim.Resources); {
		case claim.estimate == nil && c.adoptedStart > 0 && claim.RunningSince <= c.adoptedStart:
			e := reclaim.ResumedEstimate(now, limit, used, params)
			claim.estimate = &e
		case claim.estimate == nil:
			e := reclaim.NewEstimate(now, limit)
			claim.estimate = &e
		}
		claim.estimate.Sample(now, used, params)
		claim.lastUsage = used
		c.reclaimer().setUsageEstimate(claim, claim.estimate.Reserved())
	}
	c.hasUsageSamples = true
	c.reclaimer().grantMemorySlack(p)
	switch short := reclaim.MemoryShortfall(p.Available, p.Total); {
	case short <= 0:
	case c.opt.Reclaim == roost.ReclaimOff:
		c.reclaimer().evictSlackUsers(short, p)
	default:
		c.reclaimer().evictOvercommitted(short, true, c.reclaimer().nonProdUsage(),
			fmt.Sprintf("the machine ran out of memory: %v of %v were left", p.Available, p.Total))
	}
	c.reclaimer().throttleReclaimed(now)
}

// setUsageEstimate notes what is reserved of a claim's placement, and who wants back what
// was lent.
func (c reclaimer) setUsageEstimate(claim *Claim, a reclaim.ResourceAmount) {
	_, before := claim.Placement.UsageEstimate()
	c.free.SetUsageEstimate(&claim.Placement, a.CPU, a.Memory)
	if _, after := claim.Placement.UsageEstimate(); after > before && !claim.Placement.Reclaimed {
		c.setReclaimer(claim)
	}
}

// setReclaimer notes whose claim wants back what was lent.
func (c reclaimer) setReclaimer(claim *Claim) {
	party := claim.party()
	c.lastReclaimer, c.reclaimerParty = claim.ownerLabel(), &party
}

// resetUsageEstimate has all reserved again that a claim has: a task begins, of which
// nobody knows yet what it needs.
func (c reclaimer) resetUsageEstimate(claim *Claim) {
	claim.estimate, claim.lastUsage = nil, reclaim.ResourceAmount{}
	if claim.hasPlacement && claim.Inside == 0 {
		c.setUsageEstimate(claim, reclaim.AmountOf(claim.Resources))
	}
}

// ownerLabel is whom a claim is for, in words.
func (c *Claim) ownerLabel() string {
	what := "a claim"
	if !c.Attempt.Task.Job.IsZero() {
		what = c.Attempt.Task.String()
	}
	return fmt.Sprintf("%s of %s (%v)", what, c.Owner, c.Info.Band)
}

// reclaimUnit gives claims in reclaimed room what has become free, as their own. It ends
// as many of them as necessary for the reservations to be met. First it waits for samples
// of what the tasks of an earlier startd use.
func (c reclaimer) reclaimUnit() {
	var reclaimed []*Claim
	for _, claim := range c.claims {
		if claim.hasPlacement && claim.Placement.Reclaimed {
			reclaimed = append(reclaimed, claim)
		}
	}
	slices.SortFunc(reclaimed, func(a, b *Claim) int { return cmp.Compare(a.ID, b.ID) })
	for _, claim := range reclaimed {
		if claim.endReason == "" && c.free.BackWithFree(&claim.Placement) {
			c.version++
			c.unthrottle(claim)
			c.addEffect(RecordPlacement{claim})
		}
	}
	if len(reclaimed) == 0 || !c.hasUsageSamples {
		return
	}
	for unit := range c.free.Len() {
		if room := c.free.Reclaimable(unit, gpu.BatchClass).Memory; room < 0 {
			c.evictOvercommitted(-room, false, c.reclaimedIn(unit), "its memory was reclaimed by "+c.lastReclaimer)
		}
	}
}

// reclaimedIn are those in reclaimed room of a unit, with what their reservations hold
// there.
func (c reclaimer) reclaimedIn(unit int) (all []reclaim.EvictionCandidate) {
	for _, claim := range c.claims.sorted() {
		if !claim.hasPlacement || !claim.Placement.Reclaimed {
			continue
		}
		t := claim.evictionCandidate()
		for _, part := range claim.Placement.Parts {
			if part.Unit == unit {
				t.Freed += part.Memory - part.ReclaimableMemory
			}
		}
		all = append(all, t)
	}
	return all
}

// nonProdUsage are all that are not production, with what they use.
func (c reclaimer) nonProdUsage() (all []reclaim.EvictionCandidate) {
	for _, claim := range c.claims.sorted() {
		if claim.hasPlacement && !claim.Info.Band.IsProd() {
			t := claim.evictionCandidate()
			t.Freed, t.Excess = claim.lastUsage.Memory, max(claim.lastUsage.Memory-claim.Resources.Memory, 0)
			all = append(all, t)
		}
	}
	return all
}

func (c *Claim) evictionCandidate() reclaim.EvictionCandidate {
	return reclaim.EvictionCandidate{
		ID: uint64(c.ID), Band: c.Info.Band, Reclaimed: c.Placement.Reclaimed, Began: c.RunningSince,
		IsVacating: c.State == Vacating || c.endReason != "",
	}
}

// evictOvercommitted ends claims so that need is got back. At once is for when memory
// itself has run out: else what can be saved is.
func (c reclaimer) evictOvercommitted(need roost.Bytes, atOnce bool, from []reclaim.EvictionCandidate,
	reason string) {
	for _, id := range reclaim.SelectVictims(need, from) {
		claim := c.claims[ClaimID(id)]
		if claim.State == Busy && !atOnce {
			claim.Preemptor = c.reclaimerParty
		}
		c.endWhenIdle(claim, Preempted, atOnce, reason)
	}
}

// throttleReclaimed shares CPU among claims in reclaimed room when it is short. It ends
// those that had too little for too long. What counts is what the others use now, and not
// what is reserved for them: time that nobody uses is lost.
func (c reclaimer) throttleReclaimed(now roost.BootTime) {
	asked, busy := make([]roost.MilliCPU, c.free.Len()), make([]roost.MilliCPU, c.free.Len())
	for _, claim := range c.claims {
		if unit, ok := claim.isThrottleable(); ok {
			cpu, _ := claim.Placement.UsageEstimate()
			asked[unit] += cpu
		} else if claim.hasLiveAttempt() && claim.hasPlacement && len(claim.Placement.Parts) > 0 {
			busy[claim.Placement.Parts[0].Unit] += claim.lastUsage.CPU
		}
	}
	for _, claim := range c.claims.sorted() {
		unit, ok := claim.isThrottleable()
		if !ok {
			continue
		}
		deficit := busy[unit] + asked[unit] - c.free.Unit(unit).CPU
		if deficit <= 0 {
			c.unthrottle(claim)
			continue
		}
		cpu, _ := claim.Placement.UsageEstimate()
		if most := reclaim.ThrottleShares(deficit, asked[unit], cpu); abs(most-claim.CPUCap) > claim.CPUCap/8 {
			claim.CPUCap = most
			c.addEffect(ThrottleCPU{claim})
		}
		if claim.throttledSince == 0 {
			claim.throttledSince = now
		}
		if now-claim.throttledSince >= throttlePatience {
			c.endWhenIdle(claim, Preempted, false,
				fmt.Sprintf("its processor time was wanted back for %v", throttlePatience))
		}
	}
}

// isThrottleable reports whether the claim's processor time can be taken back, and the
// unit that it is of.
func (c *Claim) isThrottleable() (unit int, ok bool) {
	p := &c.Placement
	if !c.hasPlacement || !p.Reclaimed || p.Class != gpu.BatchClass || len(p.Parts) == 0 || c.endReason != "" {
		return 0, false
	}
	return p.Parts[0].Unit, true
}

// unthrottle lets a claim have its processor time again.
func (c reclaimer) unthrottle(claim *Claim) {
	claim.throttledSince = 0
	if claim.CPUCap > 0 {
		claim.CPUCap = 0
		c.addEffect(ThrottleCPU{claim})
	}
}

// IsReclaimableAdStale reports whether reclaimable resources have changed enough for a
// new ad. The threshold is a twentieth of a unit since the last ad.
func (c *ClaimTable) IsReclaimableAdStale() bool {
	const part = 20
	if len(c.advertisedReclaimable) != c.free.Len() {
		return c.free.IsReclaiming()
	}
	for i, shown := range c.advertisedReclaimable {
		unit, room := c.free.Unit(i), c.free.Reclaimable(i, gpu.BatchClass)
		if c.free.IsReclaiming() && (abs(room.CPU-shown.CPU) > unit.CPU/part ||
			abs(room.Memory-shown.Memory) > unit.Memory/part) {
			return true
		}
	}
	return false
}

func abs[T roost.MilliCPU | roost.Bytes](n T) T { return max(n, -n) }

// recordAdvertisedRoom notes what the ad that is being made says may be lent.
func (c reclaimer) recordAdvertisedRoom() {
	c.advertisedReclaimable = c.advertisedReclaimable[:0]
	for i := range c.free.Len() {
		c.advertisedReclaimable = append(c.advertisedReclaimable, c.free.Reclaimable(i, gpu.BatchClass))
	}
}
