package slot

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/roost-batch/roost"
)

// session is the present conversation with a schedd.
type session struct {
	id          uint64 // 0: it has ended
	started     int64
	incarnation uint64
	fence       fence
	words       []word // by number, those that may be heard of yet
}

// word is something that a schedd is told, by which it can say later when it sent what it sends: after it had heard that.
type word struct {
	number uint64
	said   Instant
}

// keptWords bounds how many of them are remembered. A schedd hears of each renewal in turn.
const keptWords = 16

// sent is when a schedd sent something, at the latest: so long after it had heard a word. It may have sent it later, by the time that the word was
// on its way.
func (s *session) sent(now Instant, heard uint64, since time.Duration) Instant {
	last := 0
	for i, w := range s.words {
		if w.number <= heard {
			last = i
		}
	}
	s.words = append(s.words[:0], s.words[last:]...)
	return min(now, s.words[0].said+max(since, 0))
}

// say notes that a word is being said, and returns its number.
func (s *session) say(now Instant) uint64 {
	w := word{s.words[len(s.words)-1].number + 1, now}
	if len(s.words) == keptWords {
		s.words = s.words[:keptWords-1]
	}
	s.words = append(s.words, w)
	return w.number
}

// Connected begins a session of a schedd and ends the one before. Numbers of sessions are the caller's, above 0 and never used twice. The error
// is roost.Stale when a newer session of that schedd was here already. A schedd that lost its disk counts incarnations anew, but started
// later. The first word of a session, number 0, is what it is welcomed with, now.
func (c *Core) Connected(now Instant, id uint64, schedd string, started int64, incarnation uint64) error {
	s := c.sessions[schedd]
	if s == nil {
		s = &session{fence: newFence()}
		c.sessions[schedd] = s
	} else if incarnation <= s.incarnation && started <= s.started {
		return fmt.Errorf("session %d of %s: %w: session %d was here before", incarnation, schedd, roost.Stale, s.incarnation)
	}
	if s.id != 0 {
		c.emit(Hang{s.id})
	}
	s.id, s.started, s.incarnation, s.words = id, started, incarnation, []word{{0, now}}
	for _, claim := range c.of(schedd) {
		claim.vacant = 0
	}
	return nil
}

// Disconnected notes that a session has broken. The claims live on by their leases; those on which nothing runs for a moment only.
func (c *Core) Disconnected(now Instant, id uint64, schedd string) {
	if !c.current(schedd, id) {
		return
	}
	c.now, c.sessions[schedd].id = now, 0
	for _, claim := range c.of(schedd) {
		c.orphan(claim)
	}
}

// orphaned is how long a claim on which nothing runs waits for its schedd, of which nothing is heard. A schedd forgets claims when it cannot reach their
// node, and may have no reason to come back: what it asked for while the node stood still, or what has ended after it was given up, would be kept from
// others for a whole lease. What it comes back for, it does so within seconds.
const orphaned = 15 * time.Second

// orphan shortens the lease of a claim if its schedd may have forgotten it; the next renewal makes it as long as it was. One whose attempt has ended keeps its
// lease and the news, for which a schedd may come back that was away, and gives back what it holds.
func (c *Core) orphan(claim *Claim) {
	switch {
	case claim.State == Exited:
		claim.vacant = c.now + orphaned
	case claim.State == Idle || claim.State == Making || claim.State == Waiting && !claim.queued():
		claim.Lease = min(claim.Lease, c.now+orphaned)
	}
	c.wake = min(c.wake, claim.due(c.opt.KeepExits))
}

// Session returns the present session of a schedd.
func (c *Core) Session(schedd string) (id uint64, ok bool) {
	s := c.sessions[schedd]
	if s == nil {
		return 0, false
	}
	return s.id, s.id != 0
}

// Of returns the claims of a schedd, by their ids.
func (c *Core) Of(schedd string) []*Claim { return c.of(schedd) }

func (c *Core) of(schedd string) []*Claim {
	var all []*Claim
	for _, id := range slices.Sorted(maps.Keys(c.claims)) {
		if claim := c.claims[id]; claim.Schedd == schedd {
			all = append(all, claim)
		}
	}
	return all
}

// heard reports whether there is a session with a schedd now.
func (c *Core) heard(schedd string) bool {
	_, ok := c.Session(schedd)
	return ok
}

func (c *Core) current(schedd string, id uint64) bool {
	s := c.sessions[schedd]
	return s != nil && s.id == id && id != 0
}

// fenceSize bounds how many tasks of a schedd are remembered. Inside a session messages keep their order, and older sessions are not heard, so
// an old attempt can only come from a schedd that is broken; that would show at once, not after thousands of other tasks.
const fenceSize = 4096

// fenced is a task without its host: a fence belongs to one schedd.
type fenced struct {
	job   uint64
	index int
}

// fence remembers the highest attempts of the tasks that were seen last.
type fence struct {
	last  map[fenced]roost.Attempt
	order []fenced // a ring once it is full
	next  int
}

func newFence() fence { return fence{last: make(map[fenced]roost.Attempt)} }

// pass reports whether the attempt is higher than the last one of its task, and remembers it.
func (f *fence) pass(a roost.AttemptID) bool {
	key := fenced{a.Task.Job.Seq, a.Task.Index}
	last, known := f.last[key]
	if a.Attempt <= last {
		return false
	}
	f.last[key] = a.Attempt
	switch {
	case known:
	case len(f.order) < fenceSize:
		f.order = append(f.order, key)
	default:
		delete(f.last, f.order[f.next])
		f.order[f.next] = key
		f.next = (f.next + 1) % fenceSize
	}
	return true
}
