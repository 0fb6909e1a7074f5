package startd

import (
	"context"
	"time"

	"github.com/roost-batch/roost/startd/claim"
	"github.com/roost-batch/roost/startd/slot"
)

// How long the stages of a farewell may take. Together they are less than a master waits.
const (
	taskExitTimeout    = 2 * time.Second        // until the last task has ended, after the notice that tasks get
	exitRecordTimeout  = 500 * time.Millisecond // until the schedds have recorded their ends
	starterExitTimeout = 2 * time.Second        // until the starters have ended
	imageFetchTimeout  = 15 * time.Second       // instead of exitRecordTimeout, while schedds fetch them
)

// shutdownPhase is how far a farewell has come.
type shutdownPhase uint8

const (
	serving          shutdownPhase = iota
	stoppingTasks                  // the tasks end
	awaitingRecords                // their schedds record that
	stoppingStarters               // the starters go
	stopped
)

// shutdownSequence is the end of a startd's service, stage after stage. Each ends as soon
// as its work is done, or when its time is up.
type shutdownSequence struct {
	phase        shutdownPhase
	deadline     *time.Timer
	phaseStarted time.Time // the stage
}

// wakeups is ready when something is to be done that no news tells.
func (f *shutdownSequence) wakeups(ctx context.Context) (begin <-chan struct{}, up <-chan time.Time) {
	switch f.phase {
	case serving:
		return ctx.Done(), nil
	case stopped:
		return nil, nil
	}
	return nil, f.deadline.C
}

// begin vacates everything.
func (f *shutdownSequence) begin(l *machineLoop) {
	l.maxNotice = l.host.config.StopNotice
	f.phase, f.deadline, f.phaseStarted = stoppingTasks, time.NewTimer(l.maxNotice+taskExitTimeout), time.Now()
	l.table.Drain("the machine is shutting down")
	l.spares.closed = true
}

// advance enters the next stage if the work of this one is done, or its time is up. It
// reports whether it has.
func (f *shutdownSequence) advance(l *machineLoop, up bool) bool {
	up = up && !f.extendsPhase(l)
	switch {
	case f.phase == stoppingTasks && (up || l.table.Running() == 0):
		f.phase, f.phaseStarted = awaitingRecords, time.Now()
		f.deadline.Reset(exitRecordTimeout)
	case f.phase == awaitingRecords && (up || !l.hasUnrecordedExits()):
		f.phase = stoppingStarters
		f.deadline.Reset(starterExitTimeout)
		for _, h := range l.runners {
			h.Send(claim.DetachCmd{}) // of no effect on those that were dismissed
		}
	case f.phase == stoppingStarters && (up || len(l.runners) == 0 && l.spares.isGone()):
		if up {
			l.host.log.Error("starters are left", "claims", len(l.runners))
		}
		f.phase = stopped
		f.deadline.Stop()
	default:
		return false
	}
	return true
}

// extendsPhase reports whether a stage is given more time, for the work that checkpoints
// keep.
func (f *shutdownSequence) extendsPhase(l *machineLoop) bool {
	switch {
	case f.phase == stoppingTasks && l.host.claims.SavingAttempts() > 0 &&
		time.Since(f.phaseStarted) < claim.ShutdownTime:
		f.deadline.Reset(taskExitTimeout)
	case f.phase == awaitingRecords && l.hasUnfetchedImages() && time.Since(f.phaseStarted) < imageFetchTimeout:
		f.deadline.Reset(exitRecordTimeout)
	default:
		return false
	}
	return true
}

// hasUnfetchedImages reports whether a connected schedd still has to fetch an ended
// attempt's last checkpoint.
func (l *machineLoop) hasUnfetchedImages() bool {
	for _, s := range l.sessions {
		for _, c := range l.table.ClaimsOf(s.schedd) {
			if c.State == slot.Exited && l.exits[c.ID].GetUnkept() != nil {
				return true
			}
		}
	}
	return false
}

// hasUnrecordedExits reports whether a schedd that can be reached has not yet recorded
// the end of an attempt.
func (l *machineLoop) hasUnrecordedExits() bool {
	for _, s := range l.sessions {
		for _, c := range l.table.ClaimsOf(s.schedd) {
			if c.State == slot.Exited {
				return true
			}
		}
	}
	return false
}
