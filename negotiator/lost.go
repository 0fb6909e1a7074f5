package negotiator

import (
	"fmt"
	"time"

	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/negotiator/ledger"
)

// When many nodes are lost at once, which a switch or a power circuit can do, all their tasks want to start elsewhere at the same moment, and many of
// the nodes come back a minute later. So such tasks are given machines at a limited rate (Borg §4), the cell's setting lost_replacements; all others
// go on as ever.

// lostBurst is how much of a minute's tasks may start at once.
const lostBurst = 10 * time.Second

// replacements is how many tasks of lost nodes may start now: as many as time has brought and nobody has taken.
type replacements struct {
	tokens float64
	at     time.Time
	rate   float64 // a minute
}

// refill brings them up to date.
func (l *replacements) refill(now time.Time, rate float64) {
	burst := max(rate*lostBurst.Minutes(), 1)
	if l.at.IsZero() {
		l.tokens = burst
	} else if d := now.Sub(l.at); d > 0 {
		l.tokens = min(l.tokens+rate*d.Minutes(), burst)
	}
	l.at, l.rate = now, rate
}

// next is after how long one more may start.
func (l *replacements) next() time.Duration {
	return time.Duration((1-min(l.tokens, 1))/l.rate*float64(time.Minute)).Round(time.Millisecond) + time.Millisecond
}

// refillLost asks the log for the rate.
func (c *cell) refillLost(now time.Time) (room int) {
	c.record.look(func(l *ledger.Ledger) { c.lost.refill(now, max(l.Number(ledger.LostReplacements), 1)) })
	return max(int(c.lost.tokens), 0)
}

// ration lets a request want no more tasks of lost nodes than there is room for, and takes that off the room.
func (c *cell) ration(now time.Time, r *request, room *int) {
	lost := min(r.lost, r.Wanted)
	r.fresh = r.Wanted - lost
	may := min(lost, *room)
	*room -= may
	if may == lost {
		return
	}
	r.Wanted -= lost - may
	c.sweepBy(now.Add(c.lost.next()))
	if r.Wanted == 0 {
		c.send(r, &wire.Explanation{Summary: fmt.Sprintf(
			"%d tasks have lost their nodes; of all such tasks %.0f a minute are started elsewhere (setting %s)", lost, c.lost.rate, ledger.LostReplacements)})
	}
}

// replaced notes that a request that has tasks of lost nodes was granted a unit.
func (c *cell) replaced(r *request) {
	if r.fresh > 0 {
		r.fresh--
	} else if r.lost > 0 {
		r.lost--
		c.lost.tokens--
	}
}
