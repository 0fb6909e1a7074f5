package lend

import (
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/plant"
	"github.com/roost-batch/roost/startd/owner"
	"github.com/roost-batch/roost/startd/slot"
)

// Did is what was done when the owner's policy was asked.
type Did struct {
	Asked  bool // it was: the rest is false if not
	Told   bool // the guard had spoken, or was lost, since it was asked before
	Froze  bool // claims are to stand still that ran
	Stops  bool // likewise, or what was left standing was looked at: it is to be seen to that all stands still that has to
	Orders bool // there were any
	News   bool // the machine is lent and was not, or the other way, or for another reason
}

// Attend asks whether tasks have to stand still, or go, if something has changed by which that could be decided. It returns when to be called again at the latest.
func (l *Lender) Attend(now slot.Instant) (did Did, wake slot.Instant) {
	if !l.stale && !l.fresh && now < l.wake {
		return did, l.wake
	}
	if l.stale {
		l.Owner.Tenants(now, l.tenants())
	}
	var orders []owner.Order
	orders, l.wake = l.Owner.Todo(now)
	did = Did{Asked: true, Told: l.fresh, Orders: len(orders) > 0}
	l.stale, l.fresh = false, false
	did.Froze = l.obey(now, orders)
	did.Stops = did.Froze
	if did.Told && !l.synced {
		l.synced = true
		l.sync()
		did.Stops = true
	}
	willing, why := l.Owner.Willing()
	if willing {
		why = ""
	}
	did.News = why != l.why
	l.why = why
	l.books.Lend(l.ofOwner(why))
	if l.ownerActive() || !l.synced { // until the guard has been heard, somebody may be there
		l.books.HandBack(l.ofOwner(why))
	}
	return did, l.wake
}

// ownerActive reports whether the machine is its owner's at this moment, and not only not lent yet.
func (l *Lender) ownerActive() bool {
	ad := classad.New()
	l.Owner.Describe(ad)
	busy, _ := ad.Bool(roost.AttrOwnerBusy)
	return busy
}

// sync makes all claims as they are wanted to be, whatever earlier starts and the guard did with them.
func (l *Lender) sync() {
	for _, id := range l.hands.All() {
		why := l.still[id]
		if plant.Is(plant.Restless) {
			why = ""
		}
		l.hands.Hold(id, why)
	}
}

// tenants are the claims in the owner's words.
func (l *Lender) tenants() []owner.Tenant {
	all := l.books.All()
	to := make([]owner.Tenant, 0, len(all))
	for _, c := range all {
		if !c.Holds() {
			continue
		}
		t := owner.Tenant{ID: uint64(c.ID), Began: c.Began, GPUs: int(c.Resources.GPUs), Running: c.State == slot.Busy || c.State == slot.Vacating}
		if t.Running {
			t.Job = jobAd(c)
		}
		t.Memory, t.Savable = l.hands.Measured(c)
		to = append(to, t)
	}
	for id := range l.still {
		if _, ok := l.books.Claim(id); !ok {
			delete(l.still, id)
		}
	}
	for id := range l.struck {
		if _, ok := l.books.Claim(id); !ok {
			delete(l.struck, id)
		}
	}
	return to
}

// jobAd is what the machine knows of the job on a claim: startd/owner knows the names.
func jobAd(c *slot.Claim) *classad.Ad {
	ad := classad.New()
	ad.SetString(roost.AttrOwner, c.Owner)
	ad.SetString(roost.AttrGroup, c.About.Group)
	ad.SetString(roost.AttrBand, c.About.Band.String())
	ad.SetString(roost.AttrAppClass, c.Class.String())
	ad.SetString(roost.AttrJob, c.Attempt.Task.String())
	ad.SetInt(roost.AttrRequestMemory, int64(c.Resources.Memory/roost.MiB))
	ad.SetReal(roost.AttrRequestCpus, c.Resources.CPU.Cores())
	ad.SetInt(roost.AttrRequestGpus, int64(c.Resources.GPUs))
	if c.Walltime > 0 {
		ad.SetInt(roost.AttrWalltime, int64(c.Walltime/time.Second))
	}
	return ad
}
