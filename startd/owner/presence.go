package owner

import "time"

const (
	shortTouch = time.Minute // a presence below this was somebody who wiped the table
	present    = time.Minute // after an input the owner counts as there (HTCondor's KeyboardBusy)
)

// presence follows the person at the machine. One that comes back before the machine was lent again has never left: so short touches that follow each other
// closely are a person that reads, and not a row of short touches.
type presence struct{ begin, last Instant }

// touched notes that he was there at that instant. Away is after which time without him the machine is lent.
func (p *presence) touched(at, away Instant) {
	if at <= p.last {
		return
	}
	if at-p.last >= away {
		p.begin = at
	}
	p.last = at
}

// short reports whether his last visit was but a touch.
func (p *presence) short() bool { return p.last-p.begin < shortTouch }

// unknown makes of an input before which nothing is known the end of a long visit.
func (p *presence) unknown(at Instant) { p.begin, p.last = at-shortTouch, at }
