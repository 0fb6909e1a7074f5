package lend

import (
	"fmt"
	"strings"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/plant"
	"github.com/roost-batch/roost/startd/owner"
	"github.com/roost-batch/roost/startd/slot"
)

// Hands do to what is on claims what is decided here, without waiting for it.
type Hands interface {
	// All lists those that there are by the ids of their claims, those of claims that are no more included.
	All() []slot.ClaimID
	// Present reports whether there is somebody who does it, for a claim.
	Present(id slot.ClaimID) bool
	// Hold has a claim stand still from now on, or with an empty reason lets it go on. Said again it does no harm.
	Hold(id slot.ClaimID, why string)
	// GoOn lets a claim go on that stood still, and tells it so.
	GoOn(id slot.ClaimID)
	// Suspended is for the schedd of a claim: its task stands still, or with an empty reason does no more.
	Suspended(c *slot.Claim, why string)
	// Shrink has a claim that stands still give memory back.
	Shrink(id slot.ClaimID)
	// Kill kills what is left of a claim, past its starter.
	Kill(id slot.ClaimID)
	// Measured is what the task on a claim uses, and whether it can be saved.
	Measured(c *slot.Claim) (memory roost.Bytes, savable bool)
	// Note is for the log: an owner.Moved or an owner.Complain.
	Note(o owner.Order)
}

// Lender is what a startd knows of the owner of its machine. Its loop calls it.
type Lender struct {
	Owner *owner.Core

	name    string // the machine's
	books   *slot.Core
	hands   Hands
	wake    slot.Instant            // when the owner's core wants to be asked again
	stale   bool                    // claims have changed since it was told of them
	fresh   bool                    // the guard has spoken since it was asked, or is lost
	synced  bool                    // what an earlier start, or the guard, has left standing was looked at
	still   map[slot.ClaimID]string // claims that stand still, and why
	struck  map[slot.ClaimID]bool   // claims that were told to end at once
	version uint64                  // of the owner's core that was advertised
	why     string                  // no claims are given; empty: they are
}

// New begins to follow the owner of a machine of that name. The claims of an earlier start are adopted before anything is attended to.
func New(name string, o *owner.Core, books *slot.Core, hands Hands) *Lender {
	return &Lender{Owner: o, name: name, books: books, hands: hands, still: map[slot.ClaimID]string{}, struck: map[slot.ClaimID]bool{}, stale: true}
}

// Signed takes in what the guard sees. Froze says that it has stopped claims of ours itself: they are looked at as those that an earlier start has left.
func (l *Lender) Signed(now slot.Instant, wall time.Time, s owner.Signs, froze bool) {
	if froze {
		l.synced = false
	}
	l.fresh = true
	l.Owner.Observe(now, wall, s)
}

// GuardLost notes that the guard is not heard of.
func (l *Lender) GuardLost(now slot.Instant) {
	if plant.Is(plant.Trusting) {
		return
	}
	l.Owner.GuardLost(now)
	l.fresh = true
}

// Ruled takes in the owner's own file, or why it cannot be read.
func (l *Lender) Ruled(now slot.Instant, r owner.Rules, err error) {
	l.Owner.SetRules(now, r, err)
	l.wake = 0 // it is asked what follows
}

// Performed is told of each effect of the books.
func (l *Lender) Performed(effect slot.Effect) {
	switch effect.(type) {
	case slot.Make, slot.Place, slot.Start, slot.TellStarted, slot.TellExited, slot.Dismiss:
		l.stale = true
	}
}

// Stale reports whether claims have changed since the last Attend, so that there is to be another one.
func (l *Lender) Stale() bool { return l.stale }

// Why says why a claim is to stand still; empty when it is not.
func (l *Lender) Why(id slot.ClaimID) string { return l.still[id] }

// Still is the claims that are to stand still, in no order.
func (l *Lender) Still() map[slot.ClaimID]string { return l.still }

// NotLent says why no claims are given; empty when they are.
func (l *Lender) NotLent() string { return l.why }

// Describe writes into the machine's ad whose it is now, and News reports whether that is something else than was written last.
func (l *Lender) Describe(ad *classad.Ad) {
	l.Owner.Describe(ad)
	l.version = l.Owner.Version()
}

// News reports whether the machine's ad is to be made anew.
func (l *Lender) News() bool { return l.Owner.Version() != l.version }

// Accepts says why the policy of the machine does not take a job; nil when it does. Whether it takes any the books know. The error is of kind roost.Conflict.
func (l *Lender) Accepts(job *classad.Ad) error {
	if job == nil {
		job = classad.New()
	}
	if willing, _ := l.Owner.Willing(); !willing {
		return nil
	}
	if ok, why := l.Owner.Accepts(job); !ok {
		return fmt.Errorf("%w: %s", roost.Conflict, why)
	}
	return nil
}

// ofOwner says in words that mean something elsewhere why the machine is not lent.
func (l *Lender) ofOwner(why string) string {
	const active = "its owner is active"
	switch rest, ok := strings.CutPrefix(why, active); {
	case why == "":
		return ""
	case ok:
		return "the owner of " + l.name + " is back" + rest
	}
	return l.name + " is not lent: " + why
}
