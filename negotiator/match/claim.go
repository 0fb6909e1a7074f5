package match

import (
	"fmt"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/gpu"
	"github.com/roost-batch/roost/negotiator/share"
)

// Claim is what a machine's ad says of one claim that holds a part of it. Times are unix seconds by the machine's clock.
type Claim struct {
	ID         uint64 // the machine never uses one again
	Submitter  share.Submitter
	Band       roost.Band
	Resources  roost.Resources
	Placement  gpu.Placement // by unit and device, and its class; without Parts and Shares on a machine that says nothing of units
	Since      int64         // when the task that runs on it started; 0: none does, or one that has only just begun
	Ends       int64         // when that is ended for its walltime; 0: nobody knows
	Expected   int64         // when it is likely to be over, as tasks like it were; 0: nobody knows
	Rank       float64       // the machine's, of it, when it was given
	Once       bool          // it is not run again if it is interrupted and nothing of it was saved
	Checkpoint bool          // that can be saved when it has to leave
	Saved      int64         // when it was last saved; 0: never
	Job        string        // "12[3].host"
	Limits     string        // the concurrency limits that it counts for
	Queue      string        // that its job is in
	Leaving    bool          // it goes already
	Taken      bool          // what it holds is promised to a claim that waits for it on the machine
}

// App is the class of the claim's tasks.
func (c *Claim) App() gpu.Class { return c.Placement.Class }

// maxClaims bounds what is read of one ad.
const maxClaims = 1 << 16

// readClaims notes who has the machine. Of one whose list makes no sense, or says more than the machine has given away, nobody's claims are known:
// what they hold is not free, and is not made free.
func (m *Machine) readClaims() {
	if _, ok := m.Ad.Lookup(roost.AttrClaims); !ok {
		return
	}
	m.Claims, m.Heirs, m.Unclear = claimsOf(m.Ad)
	if m.Unclear == nil && !m.holds(m.Claims) {
		m.Unclear = fmt.Errorf("%s: %w: they hold more than the machine has given away", roost.AttrClaims, roost.Invalid)
	}
	if m.Unclear != nil {
		m.Claims, m.Heirs = nil, nil
	}
	m.Ad.Delete(roost.AttrClaims) // nobody's requirements are about it, and as an ad it takes a lot of memory
}

func claimsOf(ad *classad.Ad) (claims, heirs []Claim, err error) {
	list, ok := ad.Eval(roost.AttrClaims, nil).Elements(nil)
	if !ok || len(list) > maxClaims {
		return nil, nil, fmt.Errorf("%s: %w: it is no list of claims", roost.AttrClaims, roost.Invalid)
	}
	claims = make([]Claim, 0, len(list))
	seen := make(map[uint64]bool, len(list))
	for i, v := range list {
		one, ok := v.Ad()
		if !ok {
			return nil, nil, fmt.Errorf("%s: place %d: %w: it is no ad", roost.AttrClaims, i, roost.Invalid)
		}
		var c Claim
		if err := c.read(one); err != nil {
			return nil, nil, fmt.Errorf("%s: place %d: %w", roost.AttrClaims, i, err)
		}
		if seen[c.ID] {
			return nil, nil, fmt.Errorf("%s: place %d: %w: claim %d stands there twice", roost.AttrClaims, i, roost.Invalid, c.ID)
		}
		seen[c.ID] = true
		if waits, _ := one.Bool(roost.AttrWaits); waits {
			heirs = append(heirs, c)
		} else {
			claims = append(claims, c)
		}
	}
	return claims, heirs, nil
}

func (c *Claim) read(ad *classad.Ad) (err error) {
	id, ok := ad.Int(roost.AttrClaimID)
	if !ok || id <= 0 {
		return fmt.Errorf("%s: %w: it is no number of a claim", roost.AttrClaimID, roost.Invalid)
	}
	c.ID = uint64(id)
	if c.Submitter.Owner = kept(ad, roost.AttrOwner); c.Submitter.Owner == "" {
		return fmt.Errorf("claim %d: %w: it has no owner", id, roost.Invalid)
	}
	c.Submitter.Group = kept(ad, roost.AttrClaimGroup)
	band, _ := ad.Str(roost.AttrBand)
	if c.Band, err = roost.ParseBand(band); err != nil {
		return fmt.Errorf("claim %d: %w: %w", id, roost.Invalid, err)
	}
	app, _ := ad.Str(roost.AttrAppClass)
	class, err := gpu.ParseClass(app)
	if err != nil {
		return fmt.Errorf("claim %d: %w", id, err)
	}
	c.Resources = amounts(ad, roost.AttrCpus, roost.AttrMemory, roost.AttrDisk, roost.AttrGpus)
	if c.Placement, err = gpu.ReadPlacement(ad, class, c.Resources.Disk); err != nil {
		return fmt.Errorf("claim %d: %w", id, err)
	}
	c.Since, c.Ends, c.Saved = second(ad, roost.AttrSince), second(ad, roost.AttrEnds), second(ad, roost.AttrSaved)
	c.Expected = second(ad, roost.AttrExpected)
	c.Rank, _ = ad.Real(roost.AttrRank)
	c.Once, _ = ad.Bool(roost.AttrOnce)
	c.Checkpoint, _ = ad.Bool(roost.AttrSavable)
	c.Leaving, _ = ad.Bool(roost.AttrLeaving)
	c.Taken, _ = ad.Bool(roost.AttrTaken)
	c.Job = kept(ad, roost.AttrJob)
	c.Limits, c.Queue = kept(ad, roost.AttrLimits), kept(ad, roost.AttrQueue)
	return nil
}

// second is an attribute that is a time, 0 where it is none that can be counted with.
func second(ad *classad.Ad, name string) int64 {
	if n, ok := ad.Int(name); ok && n > 0 && n < 1<<40 {
		return n
	}
	return 0
}

// holds reports whether so much is taken of the machine that the claims can have it.
func (m *Machine) holds(claims []Claim) bool {
	if m.units != nil {
		all := make([]gpu.Placement, len(claims))
		for i := range claims {
			all[i] = claims[i].Placement
		}
		return m.units.CanGive(all)
	}
	sum := m.Free
	for i := range claims {
		sum = sum.Add(claims[i].Resources)
	}
	return sum.Fits(m.Total)
}
