package policy

import "time"

const (
	shortTouchLimit   = time.Minute // a presence below this was somebody who wiped the table
	presentAfterInput = time.Minute // after an input the owner counts as there (HTCondor's KeyboardBusy)
)

// userPresence follows the person at the machine. One that comes back before the machine
// was lent again has never left: so short touches that follow each other closely are a
// person that reads, and not a row of short touches.
type userPresence struct{ beganAt, lastInput BootTime }

// addInput notes that he was there at that instant. Away is after which time without him
// the machine is lent.
func (p *userPresence) addInput(at, away BootTime) {
	if at <= p.lastInput {
		return
	}
	if at-p.lastInput >= away {
		p.beganAt = at
	}
	p.lastInput = at
}

// wasShortTouch reports whether his last visit was but a touch.
func (p *userPresence) wasShortTouch() bool { return p.lastInput-p.beganAt < shortTouchLimit }

// assumeLongVisit makes of an input before which nothing is known the end of a long
// visit.
func (p *userPresence) assumeLongVisit(at BootTime) { p.beganAt, p.lastInput = at-shortTouchLimit, at }
