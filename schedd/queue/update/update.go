package update

import (
	"fmt"
	"slices"
	"time"

	"github.com/roost-batch/roost"
)

// Update is what is on record of the newest update of a job. What its tasks do is not in
// it: that comes as facts. Times are unix nanoseconds.
type Update struct {
	State State
	From  uint32 // the revision to which it can be undone; 0: there is none
	To    uint32
	Begun int64
	Moved int64 // when it came into its state
	// the clock of its progress began to run then; 0: it stands still, and had run for
	// Spent
	ClockFrom int64
	Spent     time.Duration
	Promoted  bool  // its canaries were accepted, or it has none
	Pulsed    int64 // when it was last approved from outside
	Failed    []int // tasks that have failed in it, ascending
	Forgiven  int   // how many of these its user has accepted
	Disrupted int   // running tasks that it has stopped; those of an undo do not count
	Restart   bool  // it replaces tasks by the same revision (roost restart)
	// revisions from which To differs in CPU, memory and requirements alone: their tasks
	// stay where they are and become larger or smaller, if they can
	Alike  []uint32
	Tasks  []Range
	Reason string // why it is in its state; empty: as it should
}

// Target is the revision that tasks get.
func (u *Update) Target() uint32 {
	if u.State.isUndo() {
		return u.From
	}
	return u.To
}

// Resizes reports whether a task of a revision gets the target where it is. That is so if
// only its size and its requirements differ.
func (u *Update) Resizes(revision uint32) bool {
	target := u.Target()
	alike := func(r uint32) bool { return r == u.To || slices.Contains(u.Alike, r) }
	return len(u.Alike) > 0 && revision != target && alike(revision) && alike(target)
}

// AlikeAfter lists the revisions from which a new one differs in size or requirements
// alone. It does so
// from the given one, which tasks get now.
func (u *Update) AlikeAfter(revision uint32) []uint32 {
	if u.State.IsActive() && !u.State.isUndo() && u.To == revision {
		return append(slices.Clone(u.Alike), revision)
	}
	return []uint32{revision}
}

// includes reports whether the update concerns a task. An undo concerns all of them.
func (u *Update) includes(i int) bool {
	p := Policy{Tasks: u.Tasks}
	return u.State.isUndo() || p.includes(i)
}

// hasFailed reports whether a task is one of those that have failed.
func (u *Update) hasFailed(i int) bool {
	_, found := slices.BinarySearch(u.Failed, i)
	return found
}

// Begin returns the update of a job to a new revision. One that goes on is superseded:
// its tasks go straight to the newest revision, and an undo goes back to where it began.
func Begin(before Update, from, to uint32, p *Policy, now int64) Update {
	if before.State.IsActive() || before.State == Aborted || before.State == Partial {
		from = before.From
	}
	u := Update{State: Rolling, From: from, To: to, Begun: now, Moved: now, ClockFrom: now, Promoted: p.Canary == 0,
		Tasks: p.Tasks}
	if p.Pulse > 0 {
		u.move(WaitingPulse, "it needs a pulse before it begins", now)
	}
	return u
}

// move brings the update into another state. The clock of its progress runs in those in
// which tasks are replaced.
func (u *Update) move(to State, reason string, now int64) {
	if !slices.Contains(nextStates(u.State), to) {
		panic(fmt.Sprintf("update: from %v to %v", u.State, to))
	}
	if u.State.moves() && !to.moves() {
		u.Spent, u.ClockFrom = time.Duration(now-u.ClockFrom), 0
	}
	if !u.State.moves() && to.moves() {
		u.ClockFrom, u.Spent = now-int64(u.Spent), 0
	}
	if to == Closed { // what it came to is all that there is now
		u.From, u.To = 0, u.Target()
	}
	u.State, u.Reason, u.Moved = to, reason, now
}

// beginUndo has the tasks go back.
func (u *Update) beginUndo(reason string, now int64) {
	u.move(Undoing, reason, now)
	u.ClockFrom, u.Failed, u.Forgiven = now, nil, 0
}

// pausedByUser is the reason of an update that nothing but a user has stopped.
const pausedByUser = "its user has paused it"

// resume goes on with a paused update. After a failure it has its time again, and what
// has failed until then is accepted.
func (u *Update) resume(to State, now int64) {
	if u.Reason != pausedByUser {
		u.Spent, u.Forgiven = 0, len(u.Failed)
	}
	u.move(to, "", now)
}

// Command is what a user wants of an update.
type Command uint8

// The commands.
const (
	Pause Command = iota + 1
	Resume
	Undo
	Promote
	Abort
	Close
	Pulse
)

var commandNames = [...]string{Pause: "pause", Resume: "resume", Undo: "undo", Promote: "promote", Abort: "abort",
	Close: "close", Pulse: "pulse"}

// String returns the word of the command line.
func (c Command) String() string { return commandNames[c] }

// CommandNames lists the words of all commands.
func CommandNames() []string { return slices.Clone(commandNames[1:]) }

// ParseCommand reads the word of the command line.
func ParseCommand(s string) (Command, bool) {
	i := slices.Index(commandNames[1:], s)
	return Command(i + 1), i >= 0
}

// After returns what the update becomes by a command. That it is so already is no error.
// Mixed says that tasks of both revisions are there.
func (u Update) After(c Command, mixed bool, now int64) (Update, error) {
	refuse := func(why string) (Update, error) {
		return u, fmt.Errorf("%w: the update is %v: %s", roost.Conflict, u.State, why)
	}
	u.Failed = slices.Clone(u.Failed)
	if u.State == None || u.State == Closed {
		return refuse("the job has no open update; roost update FILE begins one")
	}
	switch c {
	case Pause:
		switch u.State {
		case Rolling, WaitingPulse, WaitingPromote:
			u.move(Paused, pausedByUser, now)
		case Undoing:
			u.move(UndoPaused, pausedByUser, now)
		case Paused, UndoPaused:
		default:
			return refuse("it has ended")
		}
	case Resume:
		switch u.State {
		case Paused:
			u.resume(Rolling, now)
		case UndoPaused:
			u.resume(Undoing, now)
		case Rolling, Undoing:
		case WaitingPromote:
			return refuse("its canaries wait for --promote")
		case WaitingPulse:
			return refuse("it waits for --pulse")
		default:
			return refuse("it has ended")
		}
	case Undo:
		switch {
		case u.State.isUndo():
		case u.Restart || u.From == 0:
			return refuse("there is no older revision to go back to")
		default:
			u.beginUndo("its user has undone it", now)
		}
	case Promote:
		if u.State != WaitingPromote {
			return refuse("no canaries wait to be promoted")
		}
		u.Promoted = true
		u.move(Rolling, "", now)
	case Abort:
		if !u.State.IsActive() {
			return refuse("it has ended")
		}
		u.move(Aborted, "its user has given it up", now)
	case Close:
		if u.State.IsActive() || mixed {
			return refuse("tasks of two revisions are there; undo or finish it first")
		}
		u.move(Closed, "", now)
	case Pulse:
		if !u.State.IsActive() { // whoever sends pulses need not know that it has ended
			return u, nil
		}
		if u.Pulsed = now; u.State == WaitingPulse {
			u.move(Rolling, "", now)
		}
	}
	return u, nil
}
