package policy

import (
	"time"

	"github.com/roost-batch/roost"
)

const (
	shortTouchLimit = time.Minute // a shorter presence counts as accidental input
	// time after an input for which the owner counts as present (HTCondor's KeyboardBusy)
	presentAfterInput = time.Minute
)

// userPresence tracks the person at the machine. A person who returns before the machine
// is available again counts as never having left: so short touches in quick succession
// are one long presence of a person who reads.
type userPresence struct{ beganAt, lastInput roost.BootTime }

// addInput records an input. Away is the time without input after which the machine is
// available.
func (p *userPresence) addInput(at, away roost.BootTime) {
	if at <= p.lastInput {
		return
	}
	if at-p.lastInput >= away {
		p.beganAt = at
	}
	p.lastInput = at
}

// wasShortTouch reports whether the last presence was only a short touch.
func (p *userPresence) wasShortTouch() bool { return p.lastInput-p.beganAt < shortTouchLimit }

// assumeLongVisit treats the first known input as the end of a long presence.
func (p *userPresence) assumeLongVisit(at roost.BootTime) {
	p.beganAt, p.lastInput = at-shortTouchLimit, at
}
