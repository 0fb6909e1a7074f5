package startd

import (
	"context"
	"time"

	"github.com/roost-batch/roost/startd/slot"
)

// How long the stages of a farewell may take. Together they are less than a master waits.
const (
	lastTasks   = 2 * time.Second        // until the last task has ended, after the notice that tasks get
	lastRecords = 500 * time.Millisecond // until the schedds have recorded their ends
	lastStarter = 2 * time.Second        // until the starters have ended
	lastSave    = 40 * time.Second       // instead of lastTasks, while checkpoints are taken
	lastImages  = 15 * time.Second       // instead of lastRecords, while schedds fetch them
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
	began time.Time // the stage
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
	l.notice = l.m.own.StopNotice
	f.stage, f.until, f.began = ending, time.NewTimer(l.notice+lastTasks), time.Now()
	l.core.Drained("the machine is shutting down")
}

// advance enters the next stage if the work of this one is done, or its time is up. It reports whether it has.
func (f *farewell) advance(l *loop, up bool) bool {
	up = up && !f.waits(l)
	switch {
	case f.stage == ending && (up || l.core.Running() == 0):
		f.stage, f.began = recording, time.Now()
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

// waits reports whether a stage is given more time, for the work that checkpoints keep.
func (f *farewell) waits(l *loop) bool {
	switch {
	case f.stage == ending && l.m.leaving.Load() > 0 && time.Since(f.began) < lastSave:
		f.until.Reset(lastTasks)
	case f.stage == recording && l.unfetched() && time.Since(f.began) < lastImages:
		f.until.Reset(lastRecords)
	default:
		return false
	}
	return true
}

// unfetched reports whether a schedd that can be reached has not yet fetched the last checkpoint of an attempt that has ended.
func (l *loop) unfetched() bool {
	for _, s := range l.sessions {
		for _, c := range l.core.Of(s.schedd) {
			if c.State == slot.Exited && l.exits[c.ID].GetUnkept() != nil {
				return true
			}
		}
	}
	return false
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
