package startd

import (
	"slices"

	"golang.org/x/sys/unix"
)

// kick sends all processes of an attempt a signal. One that is not started yet gets it then: its owner sees it in state R.
func (h *hand) kick(a *attempt, signal unix.Signal) {
	switch {
	case h.starter == nil:
	case !a.waits():
		h.starter.SignalAll(a.ref, signal)
	case !slices.Contains(a.owed, signal):
		a.owed = append(a.owed, signal)
	}
}

// payOwed sends an attempt that was started what it was to get then.
func (h *hand) payOwed(a *attempt) {
	for _, signal := range a.owed {
		h.starter.SignalAll(a.ref, signal)
	}
	a.owed = nil
}
