package startd

import (
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/boottime"
	"github.com/roost-batch/roost/startd/claim"
	"github.com/roost-batch/roost/startd/slot"
)

// How soon spare starters are made: not while the tasks of claims that were just made
// start, and not at once when one has failed.
const (
	spareDelay      = 50 * time.Millisecond
	spareRetryDelay = time.Minute
)

// spareStarters are starters for claims to come. There are as many as the settings say
// while the machine takes claims, and none while it does not, as when its owner uses it.
type spareStarters struct {
	*machineLoop
	count     int                                  // while the machine takes claims
	all       map[slot.ClaimID]*claim.SpareStarter // nil while one is being made
	leaving   map[slot.ClaimID]bool                // those that are being removed
	nextMake  roost.BootTime                       // when others may be made
	nextRenew roost.BootTime                       // when all are renewed
	closed    bool                                 // the startd ends
}

func newSpareStarters(l *machineLoop) *spareStarters {
	return &spareStarters{
		machineLoop: l, count: l.host.config.SpareStarters(),
		all: make(map[slot.ClaimID]*claim.SpareStarter), leaving: make(map[slot.ClaimID]bool),
	}
}

// update makes what is missing, removes what must not be there, and returns when to call
// it again.
func (s *spareStarters) update(now roost.BootTime) (wake roost.BootTime) {
	wanted := s.count
	if s.closed || !s.table.TakesClaims() {
		wanted = 0
		s.discardAll()
	}
	wake = now + roost.BootTime(time.Hour)
	if len(s.all) < wanted {
		if now < s.nextMake {
			return s.nextMake
		}
		id := s.table.IDs().Reserve()
		s.all[id], s.nextMake = nil, now+roost.BootTime(spareDelay)
		go s.host.claims.MakeSpare(id)
		wake = s.nextMake
	}
	if len(s.all) == 0 {
		return wake
	}
	if now >= s.nextRenew {
		s.nextRenew = now + roost.BootTime(claim.SpareRenewal)
		for _, spare := range s.all {
			if spare != nil {
				spare.RenewLease()
			}
		}
	}
	return min(wake, s.nextRenew)
}

// discardAll removes the spares that are there.
func (s *spareStarters) discardAll() {
	for id, spare := range s.all {
		if spare != nil {
			s.table.IDs().Withdraw(id)
			delete(s.all, id)
			s.leaving[id] = true
			go spare.Discard()
		}
	}
}

// take returns the spare that was made for a claim; nil if there is none.
func (s *spareStarters) take(id slot.ClaimID) *claim.SpareStarter {
	if now := boottime.Now(); s.nextMake < now { // claims that follow each other do not put it off
		s.nextMake = now + roost.BootTime(spareDelay)
	}
	spare := s.all[id]
	delete(s.all, id)
	return spare
}

// onReady offers a spare to the next claim.
func (s *spareStarters) onReady(spare *claim.SpareStarter) {
	// it may have failed meanwhile, or come too late
	if _, wanted := s.all[spare.ID]; wanted && s.table.IDs().Offer(spare.ID) {
		s.all[spare.ID] = spare
		return
	}
	delete(s.all, spare.ID)
	s.leaving[spare.ID] = true
	go spare.Discard()
}

// onFailed takes in that a spare could not be made, or is dead.
func (s *spareStarters) onFailed(e claim.SpareFailedEvent) {
	spare, known := s.all[e.ID]
	if !known {
		return
	}
	s.host.log.Warn("a spare starter was lost", "claim", e.ID, "err", e.Err)
	s.table.IDs().Withdraw(e.ID)
	delete(s.all, e.ID)
	s.nextMake = boottime.Now() + roost.BootTime(spareRetryDelay)
	if spare != nil {
		s.leaving[e.ID] = true
		go spare.Discard()
	}
}

// isGone reports whether nothing of any spare is left.
func (s *spareStarters) isGone() bool { return len(s.all) == 0 && len(s.leaving) == 0 }
