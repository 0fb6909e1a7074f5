package owner

import (
	"cmp"
	"slices"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
)

// Tenant is a claim on the machine, as the books have it.
type Tenant struct {
	ID      uint64      // above 0
	Job     *classad.Ad // of what runs on it, as far as it is known; nil: nothing is
	Began   Instant     // when its present attempt did; another instant is another attempt
	GPUs    int
	Memory  roost.Bytes // in use
	Running bool        // processes of an attempt live, or are about to
	Savable bool        // it can be saved when it has to leave
	Frozen  bool        // of a claim that was here before the startd: its task stands still for the owner's sake
}

// tenant is what the core makes of one.
type tenant struct {
	Tenant
	activity Activity
	since    Instant // of the activity
	claimed  Instant // when the claim was first seen
	left     Instant // when it was told to leave
	still    bool    // its task was told to stand still, and not to go on since
	stopped  Instant // since when
	final    bool    // Vacating: it was told to leave as it stood, and must not run again
	freed    bool    // since then: its GPUs were taken
	shrunk   Instant // since then: when it last gave memory back; 0: not yet
	fresh    bool    // its attempt was not weighed yet
	barred   Instant // Idle: since when nothing could run on it; 0: something could
	retireBy Instant // when it leaves, if it has not ended by then; 0: it does not have to
	struck   Instant // Killing: the last blow
	cause    string  // why it stands still or leaves
}

func (t *tenant) state() State {
	if t.activity >= Vacating {
		return Preempting
	}
	return Claimed
}

func (t *tenant) where() string { return t.state().String() + "/" + t.activity.String() }

// Tenants takes in the claims of the machine, whenever they change.
func (c *Core) Tenants(now Instant, all []Tenant) {
	c.advance(now)
	before := c.tenants
	c.tenants = make([]*tenant, 0, len(all))
	for _, given := range all {
		i, ok := slices.BinarySearchFunc(before, given.ID, byID)
		t := &tenant{claimed: now, since: now, fresh: true}
		if ok {
			t = before[i]
		}
		c.update(t, given)
		if !ok && given.Running && given.Frozen {
			t.still, t.stopped, t.cause = true, now, "it stood still before"
			c.become(t, Suspended, t.cause)
		}
		c.tenants = append(c.tenants, t)
	}
	slices.SortFunc(c.tenants, func(a, b *tenant) int { return cmp.Compare(a.ID, b.ID) })
	c.settle("its claims changed")
}

func byID(t *tenant, id uint64) int { return cmp.Compare(t.ID, id) }

// update folds in what the books say of a claim that is known.
func (c *Core) update(t *tenant, given Tenant) {
	another := given.Running && (!t.Running || given.Began != t.Began)
	ended := t.Running && !given.Running
	t.Tenant = given
	if another {
		t.still, t.freed, t.shrunk, t.fresh = false, false, 0, true
	}
	switch {
	case t.activity >= Vacating:
	case ended && t.activity != Idle:
		t.still = false
		c.become(t, Idle, "its task ended")
	case another && t.activity == Idle:
		c.become(t, Busy, "a task starts")
	case another && t.activity == Suspended:
		c.become(t, Busy, "another task starts")
	}
}
