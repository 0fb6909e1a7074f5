package slot

import (
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/gpu"
)

// The machine's ad says who has it, so that a negotiator can see what an eviction would make room for, and what it would cost. A claim runs task after
// task, each perhaps for a second, and an ad for each would drown the collectors: what the list says of tasks may be old, by as much as showAfter for one
// that is worth a word.

// showAfter is how long a task has to run before the ad is made anew to name it.
const showAfter = 10 * time.Second

// Clock is one instant on both clocks.
type Clock struct {
	Now  Instant
	Wall time.Time
}

func (c Clock) unix(at Instant) int64 { return c.Wall.Add(at - c.Now).Unix() }

// Saved says whether the task on a claim can be saved when it has to leave, and when it last was; the zero time for never.
type Saved struct {
	Can  bool
	Last time.Time
}

// ClaimsNews reports whether something is to be said of the claims that the last ad did not.
func (c *Core) ClaimsNews(now Instant, saved func(*Claim) Saved) bool {
	for _, claim := range c.claims {
		if claim.worth(now) && (claim.shown != claim.Attempt || claim.shownSaved != saved(claim)) {
			return true
		}
	}
	return false
}

// Untold reports whether ClaimsNews will have something to say in time, if nothing else happens.
func (c *Core) Untold() bool {
	for _, claim := range c.claims {
		if claim.live() && claim.Running && claim.shown != claim.Attempt {
			return true
		}
	}
	return false
}

// worth reports whether the claim's task has run for long enough to be told of.
func (c *Claim) worth(now Instant) bool { return c.live() && c.Running && now-c.Began >= showAfter }

// DescribeClaims writes the claims that hold something, or take over what others do, into the machine's ad.
func (c *Core) DescribeClaims(ad *classad.Ad, clock Clock, saved func(*Claim) Saved) {
	c.showRoom()
	var list []classad.Value
	for _, claim := range c.sorted() {
		if claim.holds || len(claim.victims) > 0 {
			list = append(list, classad.AdOf(c.describeClaim(claim, clock, saved)))
		}
	}
	if len(list) > 0 {
		ad.SetValue(roost.AttrClaims, classad.ListValue(list...))
	}
}

func (c *Core) describeClaim(claim *Claim, clock Clock, saved func(*Claim) Saved) *classad.Ad {
	ad := classad.New()
	ad.SetInt(roost.AttrClaimID, int64(claim.ID))
	ad.SetString(roost.AttrOwner, claim.Owner)
	if claim.About.Group != "" {
		ad.SetString(roost.AttrClaimGroup, claim.About.Group)
	}
	ad.SetString(roost.AttrBand, claim.About.Band.String())
	if claim.Class != gpu.Batch {
		ad.SetString(roost.AttrAppClass, claim.Class.String())
	}
	describe(ad, claim.Resources, roost.AttrCpus, roost.AttrMemory, roost.AttrDisk, roost.AttrGpus)
	if claim.holds {
		claim.Placement.Describe(ad)
	} else {
		ad.SetBool(roost.AttrWaits, true)
		claim.later.Describe(ad)
	}
	if claim.About.Limits != "" {
		ad.SetString(roost.AttrLimits, claim.About.Limits)
	}
	if claim.About.Alone {
		ad.SetBool(roost.AttrExclusive, true)
	}
	if claim.About.Queue != "" {
		ad.SetString(roost.AttrQueue, claim.About.Queue)
	}
	if claim.About.Rank != 0 {
		ad.SetReal(roost.AttrRank, claim.About.Rank)
	}
	if claim.ending != "" {
		ad.SetBool(roost.AttrLeaving, true)
	}
	if claim.heir != nil {
		ad.SetBool(roost.AttrTaken, true)
	}
	claim.shown, claim.shownSaved = roost.AttemptID{}, Saved{}
	if claim.live() && claim.Running {
		claim.shown, claim.shownSaved = claim.Attempt, saved(claim)
		c.describeTask(ad, claim, clock)
	}
	return ad
}

func (c *Core) describeTask(ad *classad.Ad, claim *Claim, clock Clock) {
	ad.SetString(roost.AttrJob, claim.Attempt.Task.String())
	ad.SetInt(roost.AttrSince, clock.unix(claim.Began))
	if claim.Walltime > 0 {
		ad.SetInt(roost.AttrEnds, clock.unix(claim.Began+claim.Walltime))
	}
	if claim.Expected > 0 {
		ad.SetInt(roost.AttrExpected, clock.unix(claim.Began+claim.Expected))
	}
	if claim.Once {
		ad.SetBool(roost.AttrOnce, true)
	}
	if claim.shownSaved.Can {
		ad.SetBool(roost.AttrSavable, true)
	}
	if last := claim.shownSaved.Last; !last.IsZero() {
		ad.SetInt(roost.AttrSaved, last.Unix())
	}
}
