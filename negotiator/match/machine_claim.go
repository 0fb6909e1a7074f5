package match

import (
	"fmt"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/gpu"
	"github.com/roost-batch/roost/negotiator/fairshare"
)

// MachineClaim is what a machine's ad says of one claim that holds a part of it. Times
// are unix seconds by the machine's clock.
type MachineClaim struct {
	ID        uint64 // never used again by the machine
	Submitter fairshare.Submitter
	Band      roost.PriorityBand
	Resources roost.Resources
	// by unit and device, with the appclass; without Parts and Shares if the machine does
	// not describe units
	Placement      gpu.Placement
	TaskStarted    int64   // unix seconds: when its running task started; 0: none runs, or it has only just begun
	WalltimeEnd    int64   // unix seconds: when the walltime of the task ends; 0: unknown
	PredictedEnd   int64   // unix seconds: when the task is likely to end, by similar tasks; 0: unknown
	Rank           float64 // the machine's Rank of the claim when it was granted
	NotRerunnable  bool    // the task is not run again if it is interrupted without a checkpoint
	Checkpointable bool    // the task can be checkpointed when it has to leave
	LastCheckpoint int64   // unix seconds: when its last checkpoint was taken; 0: never
	Job            string  // task id, "12[3].host"
	Priority       int32   // of its job, as its schedd says
	Attempt        int64   // number of the task's attempt; 0: unknown
	Limits         string  // the concurrency limits that it counts against
	Queue          string  // the queue of its job
	Vacating       bool    // it is already leaving
	PromisedToNext bool    // a claim that waits on the machine will get its resources
}

// AppClass returns the class of the claim's tasks.
func (c *MachineClaim) AppClass() gpu.AppClass { return c.Placement.Class }

// maxClaims bounds the claims that are read from one ad.
const maxClaims = 1 << 16

// readClaims reads the claims of the machine. If the list is invalid, or holds more than
// the machine has given away, the claims are unknown: what they hold is not free and
// cannot be preempted.
func (m *Machine) readClaims() {
	if _, ok := m.Ad.Lookup(roost.AttrClaims); !ok {
		return
	}
	m.Claims, m.Preemptors, m.ClaimsUnknown = claimsOf(m.Ad)
	if m.ClaimsUnknown == nil && !m.coversClaims(m.Claims) {
		m.ClaimsUnknown = fmt.Errorf("%s: %w: they hold more than the machine has given away", roost.AttrClaims,
			roost.Invalid)
	}
	if m.ClaimsUnknown != nil {
		m.Claims, m.Preemptors = nil, nil
	}
	m.Ad.Delete(roost.AttrClaims) // no Requirements refer to it, and as an ad it takes much memory
}

func claimsOf(ad *classad.Ad) (claims, preemptors []MachineClaim, err error) {
	list, ok := ad.Eval(roost.AttrClaims, nil).Elements(nil)
	if !ok || len(list) > maxClaims {
		return nil, nil, fmt.Errorf("%s: %w: it is no list of claims", roost.AttrClaims, roost.Invalid)
	}
	claims = make([]MachineClaim, 0, len(list))
	seen := make(map[uint64]bool, len(list))
	for i, v := range list {
		one, ok := v.Ad()
		if !ok {
			return nil, nil, fmt.Errorf("%s: place %d: %w: it is no ad", roost.AttrClaims, i, roost.Invalid)
		}
		var c MachineClaim
		if err := c.readAd(one); err != nil {
			return nil, nil, fmt.Errorf("%s: place %d: %w", roost.AttrClaims, i, err)
		}
		if seen[c.ID] {
			return nil, nil, fmt.Errorf("%s: place %d: %w: claim %d is listed twice", roost.AttrClaims, i,
				roost.Invalid, c.ID)
		}
		seen[c.ID] = true
		if waits, _ := one.Bool(roost.AttrWaits); waits {
			preemptors = append(preemptors, c)
		} else {
			claims = append(claims, c)
		}
	}
	return claims, preemptors, nil
}

func (c *MachineClaim) readAd(ad *classad.Ad) (err error) {
	id, ok := ad.Int(roost.AttrClaimID)
	if !ok || id <= 0 {
		return fmt.Errorf("%s: %w: it is no number of a claim", roost.AttrClaimID, roost.Invalid)
	}
	c.ID = uint64(id)
	if c.Submitter.Owner = stringAttr(ad, roost.AttrOwner); c.Submitter.Owner == "" {
		return fmt.Errorf("claim %d: %w: it has no owner", id, roost.Invalid)
	}
	c.Submitter.Group = stringAttr(ad, roost.AttrClaimGroup)
	band, _ := ad.Str(roost.AttrBand)
	if c.Band, err = roost.ParsePriorityBand(band); err != nil {
		return fmt.Errorf("claim %d: %w: %w", id, roost.Invalid, err)
	}
	app, _ := ad.Str(roost.AttrAppClass)
	class, err := gpu.ParseClass(app)
	if err != nil {
		return fmt.Errorf("claim %d: %w", id, err)
	}
	c.Resources = resourcesOf(ad, roost.AttrCpus, roost.AttrMemory, roost.AttrDisk, roost.AttrGpus)
	c.Resources.IO = gpu.IORatesOf(ad, roost.AttrDiskIO, roost.AttrNetwork)
	if c.Placement, err = gpu.ReadPlacement(ad, class, c.Resources.Disk); err != nil {
		return fmt.Errorf("claim %d: %w", id, err)
	}
	c.Placement.IO = c.Resources.IO
	c.TaskStarted, c.WalltimeEnd, c.LastCheckpoint = unixTimeAttr(ad, roost.AttrSince),
		unixTimeAttr(ad, roost.AttrEnds), unixTimeAttr(ad, roost.AttrSaved)
	c.PredictedEnd = unixTimeAttr(ad, roost.AttrExpected)
	c.Rank, _ = ad.Real(roost.AttrRank)
	c.NotRerunnable, _ = ad.Bool(roost.AttrOnce)
	c.Checkpointable, _ = ad.Bool(roost.AttrCheckpointable)
	c.Vacating, _ = ad.Bool(roost.AttrLeaving)
	c.PromisedToNext, _ = ad.Bool(roost.AttrTaken)
	c.Job = stringAttr(ad, roost.AttrJob)
	priority, _ := ad.Int(roost.AttrPriority)
	c.Priority = int32(min(max(priority, roost.MinPriority), roost.MaxPriority))
	c.Attempt, _ = ad.Int(roost.AttrClaimAttempt)
	c.Limits, c.Queue = stringAttr(ad, roost.AttrLimits), stringAttr(ad, roost.AttrQueue)
	return nil
}

// unixTimeAttr returns an attribute that is a time, or 0 if it is missing or out of
// range.
func unixTimeAttr(ad *classad.Ad, name string) int64 {
	if n, ok := ad.Int(name); ok && n > 0 && n < 1<<40 {
		return n
	}
	return 0
}

// coversClaims reports whether the resources in use are enough for the claims.
func (m *Machine) coversClaims(claims []MachineClaim) bool {
	if m.units != nil {
		all := make([]gpu.Placement, len(claims))
		for i := range claims {
			all[i] = claims[i].Placement
		}
		return m.units.CanReturnAll(all)
	}
	sum := m.Free
	for i := range claims {
		sum = sum.Add(claims[i].Resources)
	}
	return sum.FitsIn(m.Total)
}
