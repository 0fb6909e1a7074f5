package slot

import (
	"slices"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/gpu"
)

// The machine's ad says who has it, so that a negotiator can see what an eviction would
// make room for, and what it would cost. A claim runs task after task, each perhaps for a
// second, and an ad for each would drown the collectors: what the list says of tasks may
// be old, by as much as minAdvertisedRuntime for one that is worth a word.

// minAdvertisedRuntime is how long a task has to run before the ad is made anew to name
// it.
const minAdvertisedRuntime = 10 * time.Second

// ClockReading is one instant on both clocks.
type ClockReading struct {
	Now  roost.BootTime
	Wall time.Time
}

func (c ClockReading) unix(at roost.BootTime) int64 { return c.Wall.Add(at - c.Now).Unix() }

// CheckpointInfo says whether a claim's task can be saved when it has to leave. Last is
// when it was last saved; the zero time for never.
type CheckpointInfo struct {
	Possible bool
	Last     time.Time
}

// IsClaimsAdStale reports whether something is to be said of the claims that the last ad
// did not.
func (c *ClaimTable) IsClaimsAdStale(now roost.BootTime, saved func(*Claim) CheckpointInfo) bool {
	for _, claim := range c.claims {
		if claim.isWorthAdvertising(now) &&
			(claim.advertised != claim.Attempt || claim.advertisedCheckpoint != saved(claim)) {
			return true
		}
	}
	return false
}

// HasUnadvertised reports whether IsClaimsAdStale will have something to say in time, if
// nothing else happens.
func (c *ClaimTable) HasUnadvertised() bool {
	for _, claim := range c.claims {
		if claim.Inside == 0 && claim.hasLiveAttempt() && claim.Running && claim.advertised != claim.Attempt {
			return true
		}
	}
	return false
}

// isWorthAdvertising reports whether the claim's task has run for long enough to be told
// of.
func (c *Claim) isWorthAdvertising(now roost.BootTime) bool {
	return c.Inside == 0 && c.hasLiveAttempt() && c.Running && now-c.RunningSince >= minAdvertisedRuntime
}

// DescribeClaims writes the claims that hold something, or take over what others do, into
// the machine's ad.
func (c *ClaimTable) DescribeClaims(ad *classad.Ad, clock ClockReading, saved func(*Claim) CheckpointInfo) {
	c.reclaimer().recordAdvertisedRoom()
	var list []classad.Value
	for _, claim := range c.claims.sorted() {
		if claim.hasPlacement && claim.Inside == 0 || len(claim.victims) > 0 {
			list = append(list, claim.advertise(clock, saved))
		}
	}
	if len(list) > 0 {
		ad.SetValue(roost.AttrClaims, classad.ListValue(list...))
	}
}

// claimAdState is all on which the ad of a claim depends.
type claimAdState struct {
	owner          string
	info           ClaimInfo
	resources      roost.Resources
	waits          bool
	leaving, taken bool
	reclaimed      bool
	running        bool
	attempt        roost.AttemptID
	attemptInfo    AttemptInfo
	since          int64
	checkpoint     bool
	savedAt        int64
}

// printedClaimAd is the ad of a claim as it was printed last.
type printedClaimAd struct {
	state  claimAdState
	parts  []gpu.UnitPart
	shares []gpu.DeviceShare
	value  classad.Value
}

// advertise is describe for a claim that is described often. It makes the ad anew only if
// it has changed.
func (c *Claim) advertise(clock ClockReading, saved func(*Claim) CheckpointInfo) classad.Value {
	placement := &c.Placement
	if !c.hasPlacement {
		placement = &c.victimResources
	}
	state := claimAdState{owner: c.Owner, info: c.Info, resources: c.Resources, waits: !c.hasPlacement,
		leaving: c.endReason != "", taken: c.preemptor != nil, reclaimed: placement.Reclaimed}
	checkpoint := CheckpointInfo{}
	if c.hasLiveAttempt() && c.Running {
		checkpoint = saved(c)
		state.running, state.attempt, state.attemptInfo = true, c.Attempt, c.AttemptInfo
		state.since, state.checkpoint = clock.unix(c.RunningSince), checkpoint.Possible
		if !checkpoint.Last.IsZero() {
			state.savedAt = checkpoint.Last.Unix()
		}
	}
	p := &c.printed
	if p.value.Kind() == classad.AdValue && p.state == state && slices.Equal(p.parts, placement.Parts) &&
		slices.Equal(p.shares, placement.Shares) {
		c.advertised, c.advertisedCheckpoint = state.attempt, checkpoint
		return p.value
	}
	*p = printedClaimAd{state, slices.Clone(placement.Parts), slices.Clone(placement.Shares),
		classad.PrintedAd(c.describe(clock, saved))}
	return p.value
}

// describe returns what the machine's ad says of the claim, and notes what that was.
func (c *Claim) describe(clock ClockReading, saved func(*Claim) CheckpointInfo) *classad.Ad {
	ad := classad.New()
	ad.SetInt(roost.AttrClaimID, int64(c.ID))
	ad.SetString(roost.AttrOwner, c.Owner)
	if c.Info.Group != "" {
		ad.SetString(roost.AttrClaimGroup, c.Info.Group)
	}
	ad.SetString(roost.AttrBand, c.Info.Band.String())
	if c.Class != gpu.BatchClass {
		ad.SetString(roost.AttrAppClass, c.Class.String())
	}
	describe(ad, c.Resources, roost.AttrCpus, roost.AttrMemory, roost.AttrDisk, roost.AttrGpus)
	gpu.DescribeIORates(ad, c.Resources.IO, c.Resources.IO, roost.AttrDiskIO, roost.AttrNetwork)
	if c.hasPlacement {
		c.Placement.Describe(ad)
	} else {
		ad.SetBool(roost.AttrWaits, true)
		c.victimResources.Describe(ad)
	}
	if c.Info.Limits != "" {
		ad.SetString(roost.AttrLimits, c.Info.Limits)
	}
	if c.Info.Alone {
		ad.SetBool(roost.AttrExclusive, true)
	}
	if c.Info.Queue != "" {
		ad.SetString(roost.AttrQueue, c.Info.Queue)
	}
	if c.Info.Rank != 0 {
		ad.SetReal(roost.AttrRank, c.Info.Rank)
	}
	if c.endReason != "" {
		ad.SetBool(roost.AttrLeaving, true)
	}
	if c.preemptor != nil {
		ad.SetBool(roost.AttrTaken, true)
	}
	c.advertised, c.advertisedCheckpoint = roost.AttemptID{}, CheckpointInfo{}
	if c.hasLiveAttempt() && c.Running {
		c.advertised, c.advertisedCheckpoint = c.Attempt, saved(c)
		c.describeTask(ad, clock)
	}
	return ad
}

func (c *Claim) describeTask(ad *classad.Ad, clock ClockReading) {
	ad.SetString(roost.AttrJob, c.Attempt.Task.String())
	ad.SetInt(roost.AttrSince, clock.unix(c.RunningSince))
	if c.Priority != 0 {
		ad.SetInt(roost.AttrPriority, int64(c.Priority))
	}
	if c.Attempt.Attempt > 1 {
		ad.SetInt(roost.AttrClaimAttempt, int64(c.Attempt.Attempt))
	}
	if c.Walltime > 0 {
		ad.SetInt(roost.AttrEnds, clock.unix(c.RunningSince+c.Walltime))
	}
	if c.Expected > 0 {
		ad.SetInt(roost.AttrExpected, clock.unix(c.RunningSince+c.Expected))
	}
	if c.NotRestartable {
		ad.SetBool(roost.AttrOnce, true)
	}
	if c.advertisedCheckpoint.Possible {
		ad.SetBool(roost.AttrCheckpointable, true)
	}
	if last := c.advertisedCheckpoint.Last; !last.IsZero() {
		ad.SetInt(roost.AttrSaved, last.Unix())
	}
}
