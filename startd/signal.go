package startd

import (
	"slices"

	"golang.org/x/sys/unix"
)

// signalAttempt sends all processes of an attempt a signal. One that is not started yet
// gets it then: its owner sees it in state R.
func (h *claimRunner) signalAttempt(a *claimAttempt, signal unix.Signal) {
	switch {
	case h.starter == nil:
	case !a.awaitsInput():
		h.starter.SignalAll(a.ref, signal)
	case !slices.Contains(a.pendingSignals, signal):
		a.pendingSignals = append(a.pendingSignals, signal)
	}
}

// sendPendingSignals sends an attempt that was started what it was to get then.
func (h *claimRunner) sendPendingSignals(a *claimAttempt) {
	for _, signal := range a.pendingSignals {
		h.starter.SignalAll(a.ref, signal)
	}
	a.pendingSignals = nil
}
