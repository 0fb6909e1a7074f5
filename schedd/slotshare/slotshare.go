// Package slotshare shares a number of slots among users, so that no user's transfers
// wait for ever.
//
// A single user may have all slots. A free slot goes to the user with the fewest, and
// among those to the user whose last grant is the oldest; the transfers of one user are
// served in the order of their requests. If a waiting user has at least two slots fewer
// than another, the other loses one at once, that of the transfer which has had it for
// the shortest time. If the difference is one they take turns: a slot moves after a
// [TurnLength]. A transfer that loses its slot resumes when its user has one again,
// before the user's transfers that have not begun: so a user never has more transfers in
// progress than there are slots.
//
// All times are arguments. Add and Remove report changes, and Todo returns the resulting
// actions.
package slotshare

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"
)

// TurnLength is how long a slot is held while a user waits who has only one fewer.
const TurnLength = 10 * time.Second

// TransferID identifies a transfer.
type TransferID uint64

// SlotChange reports that a transfer gains or loses its slot.
type SlotChange struct {
	Transfer TransferID
	HasSlot  bool
}

// Scheduler decides which transfers have slots. One goroutine owns it.
type Scheduler struct {
	slots     int
	running   int
	owners    map[string]*ownerQueue
	transfers map[TransferID]*transferState
	serial    uint64 // counts grants
}

// transferState is the state of one transfer.
type transferState struct {
	id         TransferID
	owner      *ownerQueue
	hasSlot    bool
	grantedAt  time.Duration // when it got its slot
	firstGrant uint64        // serial of its first grant
}

// ownerQueue contains one user's transfers.
type ownerQueue struct {
	name      string
	running   []*transferState // in the order in which they got their slots
	paused    []*transferState // transfers that lost their slot, in the order in which they began
	waiting   []*transferState
	lastGrant uint64 // serial of the latest grant
}

// New returns a scheduler with that number of slots.
func New(slots int) *Scheduler {
	return &Scheduler{slots: slots, owners: map[string]*ownerQueue{}, transfers: map[TransferID]*transferState{}}
}

// Add adds a transfer of a user, which waits for a slot.
func (s *Scheduler) Add(id TransferID, owner string) {
	if s.transfers[id] != nil {
		panic(fmt.Sprintf("slotshare: transfer %d twice", id))
	}
	o := s.owners[owner]
	if o == nil {
		o = &ownerQueue{name: owner}
		s.owners[owner] = o
	}
	t := &transferState{id: id, owner: o}
	s.transfers[id] = t
	o.waiting = append(o.waiting, t)
}

// Remove removes a transfer, whether it has a slot or not.
func (s *Scheduler) Remove(id TransferID) {
	t := s.transfers[id]
	if t == nil {
		return
	}
	delete(s.transfers, id)
	o := t.owner
	if t.hasSlot {
		s.running--
	}
	for _, list := range []*[]*transferState{&o.running, &o.paused, &o.waiting} {
		if i := slices.Index(*list, t); i >= 0 {
			*list = slices.Delete(*list, i, i+1)
		}
	}
	if len(o.running)+len(o.paused)+len(o.waiting) == 0 {
		delete(s.owners, o.name)
	}
}

// Todo returns the changes that are due now and when to call it again; 0 for never. A
// second call at the same time returns no changes.
func (s *Scheduler) Todo(now time.Duration) (changes []SlotChange, again time.Duration) {
	for {
		next := s.nextOwner()
		if next == nil {
			return changes, 0
		}
		if s.running >= s.slots {
			t, at := s.nextVictim(next, now)
			if t == nil {
				return changes, at
			}
			s.revoke(t)
			changes = append(changes, SlotChange{t.id, false})
		}
		changes = append(changes, SlotChange{s.grant(next, now).id, true})
	}
}

// nextOwner returns the user who gets the next slot, or nil if no one waits.
func (s *Scheduler) nextOwner() (next *ownerQueue) {
	for _, name := range slices.Sorted(maps.Keys(s.owners)) {
		o := s.owners[name]
		if len(o.paused)+len(o.waiting) == 0 {
			continue
		}
		if next == nil || cmp.Or(cmp.Compare(len(o.running), len(next.running)),
			cmp.Compare(o.lastGrant, next.lastGrant)) < 0 {
			next = o
		}
	}
	return next
}

// nextVictim returns the transfer that loses its slot to next now. If there is none, it
// returns nil and the earliest time when there may be one; 0 for never.
func (s *Scheduler) nextVictim(next *ownerQueue, now time.Duration) (t *transferState, at time.Duration) {
	var most *ownerQueue
	for _, name := range slices.Sorted(maps.Keys(s.owners)) {
		o := s.owners[name]
		if o == next || len(o.running) == 0 {
			continue
		}
		if most == nil || cmp.Or(cmp.Compare(len(most.running), len(o.running)),
			cmp.Compare(o.running[0].grantedAt, most.running[0].grantedAt)) < 0 {
			most = o
		}
	}
	switch {
	case most == nil || len(most.running) <= len(next.running):
		return nil, 0
	case len(most.running) > len(next.running)+1:
		return most.running[len(most.running)-1], 0
	}
	if t = most.running[0]; now-t.grantedAt < TurnLength {
		return nil, t.grantedAt + TurnLength
	}
	return t, 0
}

func (s *Scheduler) grant(o *ownerQueue, now time.Duration) *transferState {
	list := &o.paused
	if len(*list) == 0 {
		list = &o.waiting
	}
	t := (*list)[0]
	*list = slices.Delete(*list, 0, 1)
	s.serial++
	t.hasSlot, t.grantedAt, t.firstGrant, o.lastGrant = true, now, cmp.Or(t.firstGrant, s.serial), s.serial
	o.running = append(o.running, t)
	s.running++
	return t
}

func (s *Scheduler) revoke(t *transferState) {
	o := t.owner
	o.running = slices.DeleteFunc(o.running, func(other *transferState) bool { return other == t })
	at, _ := slices.BinarySearchFunc(o.paused, t, func(a, b *transferState) int {
		return cmp.Compare(a.firstGrant, b.firstGrant)
	})
	o.paused = slices.Insert(o.paused, at, t)
	t.hasSlot = false
	s.running--
}

// check panics if the state is inconsistent.
func (s *Scheduler) check() {
	running, all := 0, 0
	for name, o := range s.owners {
		running += len(o.running)
		n := len(o.running) + len(o.paused) + len(o.waiting)
		all += n
		if n == 0 || o.name != name || len(o.running)+len(o.paused) > s.slots {
			panic(fmt.Sprintf("slotshare: %s has %d, %d and %d transfers", name, len(o.running), len(o.paused),
				len(o.waiting)))
		}
		for _, t := range o.running {
			if !t.hasSlot || t.owner != o || s.transfers[t.id] != t {
				panic(fmt.Sprintf("slotshare: transfer %d of %s is not what it was", t.id, name))
			}
		}
	}
	if running != s.running || running > s.slots || all != len(s.transfers) {
		panic(fmt.Sprintf("slotshare: %d of %d run, and %d are counted", running, all, s.running))
	}
}
