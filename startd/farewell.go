package startd

import (
	"context"
	"time"

	"github.com/roost-batch/roost/startd/slot"
)

// How long the stages of a farewell may take. Together they are less than a master waits.
const (
	lastNotice  = 2 * time.Second        // of the notice that tasks get
	lastTasks   = 4 * time.Second        // until the last task has ended
	lastRecords = 500 * time.Millisecond // until the schedds have recorded their ends
	lastStarter = 2 * time.Second        // until the starters have ended
)

// stage is how far a farewell has come.
type stage uint8

const (
	serving   stage = iota
	ending          // the tasks end
	recording       // their schedds record that
	leaving         // the starters go
	left
)

// farewell is the end of a startd's service, stage after stage. Each ends as soon as its work is done, or when its time is up.
type farewell struct {
	stage stage
	until *time.Timer
}

// cue is ready when something is to be done that no news tells.
func (f *farewell) cue(ctx context.Context) (begin <-chan struct{}, up <-chan time.Time) {
	switch f.stage {
	case serving:
		return ctx.Done(), nil
	case left:
		return nil, nil
	}
	return nil, f.until.C
}

// begin vacates everything.
func (f *farewell) begin(l *loop) {
	f.stage, f.until = ending, time.NewTimer(lastTasks)
	l.notice = lastNotice
	l.core.Drained("the machine is shutting down")
}

// advance enters the next stage if the work of this one is done, or its time is up. It reports whether it has.
func (f *farewell) advance(l *loop, up bool) bool {
	switch {
	case f.stage == ending && (up || l.core.Running() == 0):
		f.stage = recording
		f.until.Reset(lastRecords)
	case f.stage == recording && (up || !l.awaited()):
		f.stage = leaving
		f.until.Reset(lastStarter)
		for _, h := range l.hands {
			h.box.put(leave{}) // of no effect on those that were dismissed
		}
	case f.stage == leaving && (up || len(l.hands) == 0):
		if up {
			l.m.log.Error("starters are left", "claims", len(l.hands))
		}
		f.stage = left
		f.until.Stop()
	default:
		return false
	}
	return true
}

// awaited reports whether a schedd that can be reached has not yet recorded the end of an attempt.
func (l *loop) awaited() bool {
	for _, s := range l.sessions {
		for _, c := range l.core.Of(s.schedd) {
			if c.State == slot.Exited {
				return true
			}
		}
	}
	return false
}
