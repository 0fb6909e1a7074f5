package ledger

import (
	"fmt"
	"iter"
	"slices"
	"time"
)

// How long grants count as being on their way, and how many may be.
const (
	// PendingGrantTTL is that of most: after this its schedd has claimed, or never will.
	PendingGrantTTL = 10 * time.Second

	// Licences are of no machine, so nobody refuses a claim that comes later. One with
	// licences stays until the leader knows what has become of it, or for so long as a
	// schedd may be away from its tasks.
	limitedGrantTTL = 40 * time.Minute

	maxPendingGrants = 1 << 20 // of either kind
)

// PendingGrant is a grant on its way, since the entry of that time.
type PendingGrant struct {
	At    int64 // unix nanoseconds
	Epoch uint64
	Grant RecordedGrant
}

// PendingGrants lists the grants that may still be acted upon, oldest first, those with
// licences behind the others.
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

func (l *Ledger) pendingListOf(g *RecordedGrant) *[]PendingGrant {
	if g.ClaimBy != 0 {
		return &l.limitedGrants
	}
	return &l.pendingGrants
}

// addPendingGrant puts a grant on its way. What has become of licences is told of each
// unit alone.
func (l *Ledger) addPendingGrant(g RecordedGrant) {
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

// resolveGrants drops grants with licences that are on their way no more.
func (l *Ledger) resolveGrants(ended []uint64) {
	if len(ended) == 0 || len(l.limitedGrants) == 0 {
		return
	}
	ended = slices.Sorted(slices.Values(ended))
	l.limitedGrants = slices.DeleteFunc(l.limitedGrants, func(f PendingGrant) bool {
		_, found := slices.BinarySearch(ended, f.Grant.ID)
		return found
	})
}

// DropPendingGrants drops all grants that are on their way: who goes on from a ledger
// that was written down has seen what has become of them.
func (l *Ledger) DropPendingGrants() { l.pendingGrants, l.limitedGrants = nil, nil }

// prepareNewLeader prepares for a leader with another clock: what was on its way when the
// old one spoke last may be so still, whatever the two clocks say, so that its life
// begins anew.
func (l *Ledger) prepareNewLeader(at int64) {
	for _, list := range [...][]PendingGrant{l.pendingGrants, l.limitedGrants} {
		for i := range list {
			list[i].At = max(l.now, at)
		}
	}
}

// rewindPendingGrants prepares for a clock that is put back.
func (l *Ledger) rewindPendingGrants(at int64) {
	for _, list := range [...][]PendingGrant{l.pendingGrants, l.limitedGrants} {
		for i := range list {
			list[i].At = min(list[i].At, at)
		}
	}
}

func (l *Ledger) dropExpiredGrants() {
	l.pendingGrants = dropSince(l.pendingGrants, l.now-int64(PendingGrantTTL))
	l.limitedGrants = dropSince(l.limitedGrants, l.now-int64(limitedGrantTTL))
}

// dropSince drops what is on its way since then or longer.
func dropSince(list []PendingGrant, since int64) []PendingGrant {
	over := 0
	for over < len(list) && list[over].At <= since {
		over++
	}
	clear(list[:over])
	return list[over:]
}

func (l *Ledger) checkPendingGrants(list []PendingGrant, life time.Duration) {
	for i, f := range list {
		if f.At > l.now || f.At <= l.now-int64(life) || i > 0 && f.At < list[i-1].At ||
			f.Grant.ID+uint64(f.Grant.Units)-1 > l.lastGrant {
			panic(fmt.Sprintf("ledger: grant %d in flight since %d at %d, the last was %d", f.Grant.ID, f.At, l.now,
				l.lastGrant))
		}
	}
}
