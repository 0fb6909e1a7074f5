package claim

import (
	"slices"

	"golang.org/x/sys/unix"
)

// signalAttempt sends all processes of an attempt a signal. One that is not started yet
// gets it then: its owner sees it in state R.
func (h *Runner) signalAttempt(a *Attempt, signal unix.Signal) {
	switch {
	case h.starter == nil:
	case !a.AwaitsInput():
		h.starter.SignalAll(a.ref, signal)
	case !slices.Contains(a.pendingSignals, signal):
		a.pendingSignals = append(a.pendingSignals, signal)
	}
}

// sendPendingSignals sends an attempt that was started what it was to get then.
func (h *Runner) sendPendingSignals(a *Attempt) {
	for _, signal := range a.pendingSignals {
		h.starter.SignalAll(a.ref, signal)
	}
	a.pendingSignals = nil
}
