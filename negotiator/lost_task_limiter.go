package negotiator

import (
	"fmt"
	"time"

	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/negotiator/ledger"
)

// When many nodes are lost at once, which a switch or a power circuit can do, all their
// tasks want to start elsewhere at the same moment, and many of the nodes come back a
// minute later. So such tasks are given machines at a limited rate (Borg §4), the cell's
// setting lost_replacements; all others go on as ever.

// maxLostTokens is how much of a minute's tasks may start at once.
const maxLostTokens = 10 * time.Second

// lostTaskLimiter is how many tasks of lost nodes may start now: as many as time has
// brought and nobody has taken.
type lostTaskLimiter struct {
	tokens     float64
	refilledAt time.Time
	perMinute  float64 // a minute
}

// refillTokens brings them up to date.
func (l *lostTaskLimiter) refillTokens(now time.Time, rate float64) {
	burst := max(rate*maxLostTokens.Minutes(), 1)
	if l.refilledAt.IsZero() {
		l.tokens = burst
	} else if d := now.Sub(l.refilledAt); d > 0 {
		l.tokens = min(l.tokens+rate*d.Minutes(), burst)
	}
	l.refilledAt, l.perMinute = now, rate
}

// timeToNext is after how long one more may start.
func (l *lostTaskLimiter) timeToNext() time.Duration {
	return time.Duration((1-min(l.tokens, 1))/l.perMinute*float64(time.Minute)).Round(time.Millisecond) +
		time.Millisecond
}

// refillLostTasks asks the log for the rate.
func (c *leaderState) refillLostTasks(now time.Time) (room int) {
	c.ledgerStore.view(func(l *ledger.Ledger) {
		c.lostTasks.refillTokens(now, max(l.SettingNumber(ledger.SettingLostTaskRate), 1))
	})
	return max(int(c.lostTasks.tokens), 0)
}

// limitLostTasks lets a request want no more tasks of lost nodes than there is room for,
// and takes that off the room.
func (c *leaderState) limitLostTasks(now time.Time, r *scheddRequest, room *int) {
	lost := min(r.lostTasks, r.Wanted)
	r.newTasks = r.Wanted - lost
	may := min(lost, *room)
	*room -= may
	if may == lost {
		return
	}
	r.Wanted -= lost - may
	c.setNextSweep(now.Add(c.lostTasks.timeToNext()))
	if r.Wanted == 0 {
		c.sendTo(r, &wire.Explanation{Summary: fmt.Sprintf(
			"%d tasks have lost their nodes; of all such tasks %.0f a minute are started elsewhere (setting %s)", lost,
			c.lostTasks.perMinute, ledger.SettingLostTaskRate)})
	}
}

// countLostGranted notes that a request that has tasks of lost nodes was granted a unit.
func (c *leaderState) countLostGranted(r *scheddRequest) {
	if r.newTasks > 0 {
		r.newTasks--
	} else if r.lostTasks > 0 {
		r.lostTasks--
		c.lostTasks.tokens--
	}
}
