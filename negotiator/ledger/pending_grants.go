package ledger

import (
	"fmt"
	"iter"
	"slices"
	"time"
)

// How long grants stay pending, and how many may.
const (
	// PendingGrantTTL is the lifetime of most pending grants: after it the schedd has
	// claimed the grant or never will.
	PendingGrantTTL = 10 * time.Second

	// limitedGrantTTL is the lifetime of pending grants with concurrency limits, which
	// belong to no machine, so that no startd refuses a late claim. The leader removes
	// such a grant earlier once it knows the outcome. The lifetime is as long as a schedd
	// may be disconnected from its tasks.
	limitedGrantTTL = 40 * time.Minute

	maxPendingGrants = 1 << 20 // for each of the two lists
)

// PendingGrant is a grant whose outcome is not known yet, with the time of its entry.
type PendingGrant struct {
	At    int64 // unix nanoseconds
	Epoch uint64
	Grant RecordedGrant
}

// PendingGrants lists the grants that a schedd may still claim, oldest first, those with
// concurrency limits after the others.
func (l *Ledger) PendingGrants() iter.Seq[PendingGrant] {
	return func(yield func(PendingGrant) bool) {
		for _, list := range [...][]PendingGrant{l.pendingGrants, l.limitedGrants} {
			for _, f := range list {
				if !yield(f) {
					return
				}
			}
		}
	}
}

func (l pendingGrantTable) pendingListOf(g *RecordedGrant) *[]PendingGrant {
	if g.ClaimBy != 0 {
		return &l.limitedGrants
	}
	return &l.pendingGrants
}

// addPendingGrant adds a pending grant. A grant with concurrency limits is split into its
// units, as the outcome of each is reported by itself.
func (l pendingGrantTable) addPendingGrant(g RecordedGrant) {
	g.Units = max(g.Units, 1)
	l.lastGrant = max(l.lastGrant, g.ID+uint64(g.Units)-1)
	list, units := l.pendingListOf(&g), 1
	if g.ClaimBy != 0 {
		units, g.Units = g.Units, 1
	}
	for range units {
		*list = append(*list, PendingGrant{l.now, l.epoch, g})
		g.ID++
	}
	if extra := len(*list) - maxPendingGrants; extra > 0 {
		*list = append([]PendingGrant(nil), (*list)[extra:]...)
	}
}

// resolveGrants removes the pending grants with concurrency limits whose outcome is
// known.
func (l pendingGrantTable) resolveGrants(ended []uint64) {
	if len(ended) == 0 || len(l.limitedGrants) == 0 {
		return
	}
	ended = slices.Sorted(slices.Values(ended))
	l.limitedGrants = slices.DeleteFunc(l.limitedGrants, func(f PendingGrant) bool {
		_, found := slices.BinarySearch(ended, f.Grant.ID)
		return found
	})
}

// DropPendingGrants removes all pending grants. A caller that restores a saved ledger has
// seen the outcome of them.
func (l *Ledger) DropPendingGrants() { l.pendingGrants, l.limitedGrants = nil, nil }

// prepareNewLeader restarts the lifetime of all pending grants, as the new leader has
// another clock. A grant that was pending at the old leader's last entry may be so still,
// whatever the two clocks show.
func (l pendingGrantTable) prepareNewLeader(at int64) {
	for _, list := range [...][]PendingGrant{l.pendingGrants, l.limitedGrants} {
		for i := range list {
			list[i].At = max(l.now, at)
		}
	}
}

// rewindPendingGrants adjusts the pending grants to a clock that is set back.
func (l pendingGrantTable) rewindPendingGrants(at int64) {
	for _, list := range [...][]PendingGrant{l.pendingGrants, l.limitedGrants} {
		for i := range list {
			list[i].At = min(list[i].At, at)
		}
	}
}

func (l pendingGrantTable) dropExpiredGrants() {
	l.pendingGrants = dropSince(l.pendingGrants, l.now-int64(PendingGrantTTL))
	l.limitedGrants = dropSince(l.limitedGrants, l.now-int64(limitedGrantTTL))
}

// dropSince removes the grants that have been pending since then or longer.
func dropSince(list []PendingGrant, since int64) []PendingGrant {
	over := 0
	for over < len(list) && list[over].At <= since {
		over++
	}
	clear(list[:over])
	return list[over:]
}

func (l pendingGrantTable) checkPendingGrants(list []PendingGrant, life time.Duration) {
	for i, f := range list {
		if f.At > l.now || f.At <= l.now-int64(life) || i > 0 && f.At < list[i-1].At ||
			f.Grant.ID+uint64(f.Grant.Units)-1 > l.lastGrant {
			panic(fmt.Sprintf("ledger: grant %d in flight since %d at %d, the last was %d", f.Grant.ID, f.At, l.now,
				l.lastGrant))
		}
	}
}
