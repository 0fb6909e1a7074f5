package slot

import (
	"fmt"
	"time"

	"github.com/roost-batch/roost"
)

// scheddSession is the present conversation with a schedd.
type scheddSession struct {
	id          uint64         // 0: it has ended
	endedAt     roost.BootTime // if so
	started     int64          // 0: of the queue of the cell
	incarnation uint64
	fence       attemptFence
	sentMarks   []sentMark // by number, those that may be heard of yet
}

// sentMark is a number that the startd sends to a schedd, and when. A schedd repeats it
// later to show that it sent a message after it had received the number.
type sentMark struct {
	number uint64
	sentAt roost.BootTime
}

// sessionTable are the conversations with schedds, by their names. It remembers those of
// schedds that have gone.
type sessionTable map[string]*scheddSession

// find returns the conversation with a schedd, and whether there was one before.
func (t sessionTable) find(schedd string) (s *scheddSession, known bool) {
	if s = t[schedd]; s != nil {
		return s, true
	}
	s = &scheddSession{fence: newAttemptFence()}
	t[schedd] = s
	return s, false
}

// current returns the present session of a schedd.
func (t sessionTable) current(schedd string) (id uint64, ok bool) {
	s := t[schedd]
	if s == nil {
		return 0, false
	}
	return s.id, s.id != 0
}

// has reports whether there is a session with a schedd now.
func (t sessionTable) has(schedd string) bool {
	_, ok := t.current(schedd)
	return ok
}

// isCurrent reports whether that is the present session of a schedd.
func (t sessionTable) isCurrent(schedd string, id uint64) bool {
	s := t[schedd]
	return s != nil && s.id == id && id != 0
}

// maxSentMarks bounds how many of them are remembered. A schedd hears of each renewal in
// turn.
const maxSentMarks = 16

// sentTime is when a schedd sent something, at the latest: so long after it had heard a
// word. It may have sent it later, by the time that the word was on its way.
func (s *scheddSession) sentTime(now roost.BootTime, heard uint64, since time.Duration) roost.BootTime {
	last := 0
	for i, w := range s.sentMarks {
		if w.number <= heard {
			last = i
		}
	}
	s.sentMarks = append(s.sentMarks[:0], s.sentMarks[last:]...)
	return min(now, s.sentMarks[0].sentAt+max(since, 0))
}

// addSentMark notes that a word is being said, and returns its number.
func (s *scheddSession) addSentMark(now roost.BootTime) uint64 {
	w := sentMark{s.sentMarks[len(s.sentMarks)-1].number + 1, now}
	if len(s.sentMarks) == maxSentMarks {
		s.sentMarks = s.sentMarks[:maxSentMarks-1]
	}
	s.sentMarks = append(s.sentMarks, w)
	return w.number
}

// Connected begins a session of a schedd and ends the one before. Numbers of sessions are
// the caller's, above 0 and never used twice. The error is roost.Stale when a newer
// session of that schedd was here already. A schedd that lost its disk counts
// incarnations anew, but started later. That of the cell's queue says 0 instead, as its
// leaders are on several machines whose clocks differ: the incarnation, which begins with
// the term of raft, decides. The first word of a session, number 0, is what it
// is welcomed with, now.
func (c *ClaimTable) Connected(now roost.BootTime, id uint64, schedd string, started int64, incarnation uint64) error {
	s, known := c.sessions.find(schedd)
	if known && !s.isSucceededBy(now, started, incarnation) {
		return fmt.Errorf("session %d of %s: %w: session %d was here before", incarnation, schedd, roost.Stale,
			s.incarnation)
	}
	if s.id != 0 {
		c.addEffect(CloseSession{s.id})
	}
	s.id, s.started, s.incarnation, s.sentMarks = id, started, incarnation, []sentMark{{0, now}}
	for _, claim := range c.claims.ofSchedd(schedd) {
		claim.releaseAt = 0
	}
	return nil
}

// recoveryTime is after what silence a leader of a lower term is believed. Its cell has
// lost its newest members, and was recovered without them. A leader that was replaced
// ends its sessions within seconds.
const recoveryTime = time.Minute

// isSucceededBy reports whether a session that begins now is newer.
func (s *scheddSession) isSucceededBy(now roost.BootTime, started int64, incarnation uint64) bool {
	if incarnation > s.incarnation {
		return true
	}
	if started == 0 {
		return s.id == 0 && now-s.endedAt >= recoveryTime
	}
	return started > s.started
}

// Disconnected notes that a session has broken. The claims live on by their leases; those
// on which nothing runs for a moment only.
func (c *ClaimTable) Disconnected(now roost.BootTime, id uint64, schedd string) {
	if !c.sessions.isCurrent(schedd, id) {
		return
	}
	c.now, c.sessions[schedd].id, c.sessions[schedd].endedAt = now, 0, now
	for _, claim := range c.claims.ofSchedd(schedd) {
		c.leases().shortenLease(claim)
	}
}

// orphanLease is how long a claim on which nothing runs waits for its schedd, of which
// nothing is heard. A schedd forgets claims when it cannot reach their node, and may have
// no reason to come back: what it asked for while the node stood still, or what has ended
// after it was given up, would be kept from others for a whole lease. What it comes back
// for, it does so within seconds.
const orphanLease = 15 * time.Second

// shortenLease shortens the lease of a claim if its schedd may have forgotten it. The
// next renewal restores the lease. A claim whose attempt has ended releases its resources
// but retains its lease and its exit, for which an absent schedd may come back.
func (c leases) shortenLease(claim *Claim) {
	switch {
	case claim.State == Exited:
		claim.releaseAt = c.now + orphanLease
	case claim.State == Idle || claim.State == Creating || claim.State == Waiting && !claim.hasQueuedAttempt():
		claim.Lease = min(claim.Lease, c.now+orphanLease)
	}
	c.nextDeadline = min(c.nextDeadline, claim.nextDeadline(c.opt.ExitRetention))
}

// Session returns the present session of a schedd.
func (c *ClaimTable) Session(schedd string) (id uint64, ok bool) {
	return c.sessions.current(schedd)
}

// ClaimsOf returns the claims of a schedd, by their ids.
func (c *ClaimTable) ClaimsOf(schedd string) []*Claim { return c.claims.ofSchedd(schedd) }

// attemptFenceSize bounds how many tasks of a schedd are remembered. Inside a session
// messages keep their order, and older sessions are not heard, so an old attempt can only
// come from a schedd that is broken; that would show at once, not after thousands of
// other tasks.
const attemptFenceSize = 4096

// taskKey is a task without its host: a fence belongs to one schedd.
type taskKey struct {
	job   uint64
	index int
}

// attemptFence remembers the highest attempts of the tasks that were seen last.
type attemptFence struct {
	last  map[taskKey]roost.AttemptNumber
	order []taskKey // a ring once it is full
	next  int
}

func newAttemptFence() attemptFence { return attemptFence{last: make(map[taskKey]roost.AttemptNumber)} }

// advance reports whether the attempt is higher than the last one of its task, and
// remembers it.
func (f *attemptFence) advance(a roost.AttemptID) bool {
	key := taskKey{a.Task.Job.Seq, a.Task.Index}
	last, known := f.last[key]
	if a.Attempt <= last {
		return false
	}
	f.last[key] = a.Attempt
	switch {
	case known:
	case len(f.order) < attemptFenceSize:
		f.order = append(f.order, key)
	default:
		delete(f.last, f.order[f.next])
		f.order[f.next] = key
		f.next = (f.next + 1) % attemptFenceSize
	}
	return true
}
