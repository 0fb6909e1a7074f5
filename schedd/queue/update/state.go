package update

import "fmt"

// State is where an update is.
type State uint8

// The states. Their numbers stand in logs on disk and mean nothing else.
const (
	None           State = iota // the job was never updated
	Rolling                     // tasks are replaced
	Paused                      // its user, or a failure, has stopped it for now
	WaitingPulse                // it needs approval from outside, which is overdue
	WaitingPromote              // its canaries work, and it waits for its user
	Undoing                     // tasks go back to the old revision
	UndoPaused                  // and wait
	Undone                      // all are back
	Aborted                     // it was given up; each task stays what it is
	Partial                     // it has stopped as many tasks as it may, and the rest stay old
	Done                        // all tasks are new
	Closed                      // the old revision is forgotten
)

var stateNames = [...]string{None: "none", Rolling: "rolling", Paused: "paused", WaitingPulse: "waiting-pulse",
	WaitingPromote: "waiting-promote", Undoing: "undoing", UndoPaused: "undo-paused", Undone: "undone",
	Aborted: "aborted", Partial: "partial", Done: "done", Closed: "closed"}

// String returns the word that users read.
func (s State) String() string {
	if int(s) < len(stateNames) {
		return stateNames[s]
	}
	return fmt.Sprintf("state(%d)", uint8(s))
}

// IsActive reports whether an update goes on, or will when what it waits for has come.
func (s State) IsActive() bool { return s >= Rolling && s <= UndoPaused }

// isUndo reports whether tasks go back.
func (s State) isUndo() bool { return s == Undoing || s == UndoPaused || s == Undone }

// moves reports whether tasks are being replaced now.
func (s State) moves() bool { return s == Rolling || s == Undoing }

// nextStates are the legal moves.
func nextStates(s State) []State {
	switch s {
	case Rolling:
		return []State{Paused, WaitingPulse, WaitingPromote, Undoing, Aborted, Partial, Done}
	case Paused, WaitingPulse, WaitingPromote:
		return []State{Rolling, Paused, WaitingPulse, WaitingPromote, Undoing, Aborted, Done}
	case Undoing:
		return []State{UndoPaused, Undone, Aborted}
	case UndoPaused:
		return []State{Undoing, Aborted, Undone}
	case Done, Partial, Aborted:
		return []State{Undoing, Closed}
	case Undone:
		return []State{Closed}
	case None, Closed:
	}
	return nil
}
