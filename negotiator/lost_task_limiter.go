package negotiator

import (
	"fmt"
	"time"

	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/negotiator/ledger"
)

// A failed switch or power circuit can disconnect many nodes at once. All their tasks
// then want to start elsewhere at the same moment, and many of the nodes come back a
// minute later. So the rate of such tasks is limited (Borg §4) by the setting
// lost_replacements; other tasks are not affected.

// maxLostTokens is the burst of the limiter, as a time at its rate.
const maxLostTokens = 10 * time.Second

// lostTaskLimiter is a token bucket for the tasks of lost nodes.
type lostTaskLimiter struct {
	tokens     float64
	refilledAt time.Time
	perMinute  float64 // rate
}

// refillTokens adds the tokens of the time since the last refill.
func (l *lostTaskLimiter) refillTokens(now time.Time, rate float64) {
	burst := max(rate*maxLostTokens.Minutes(), 1)
	if l.refilledAt.IsZero() {
		l.tokens = burst
	} else if d := now.Sub(l.refilledAt); d > 0 {
		l.tokens = min(l.tokens+rate*d.Minutes(), burst)
	}
	l.refilledAt, l.perMinute = now, rate
}

// timeToNext returns how long it takes until one more task may start.
func (l *lostTaskLimiter) timeToNext() time.Duration {
	return time.Duration((1-min(l.tokens, 1))/l.perMinute*float64(time.Minute)).Round(time.Millisecond) +
		time.Millisecond
}

// refillLostTasks refills the tokens at the rate in the ledger, and returns how many
// tasks may start.
func (c *leaderState) refillLostTasks(now time.Time) (room int) {
	c.ledgerStore.view(func(l *ledger.Ledger) {
		c.lostTasks.refillTokens(now, max(l.SettingNumber(ledger.SettingLostTaskRate), 1))
	})
	return max(int(c.lostTasks.tokens), 0)
}

// limitLostTasks limits the lost tasks that a request wants to the room, and takes them
// from it.
func (c *leaderState) limitLostTasks(now time.Time, r *scheddRequest, room *int) {
	lost := min(r.lostTasks, r.Wanted)
	r.newTasks = r.Wanted - lost
	may := min(lost, *room)
	*room -= may
	if may == lost {
		return
	}
	r.Wanted -= lost - may
	c.grants().setNextSweep(now.Add(c.lostTasks.timeToNext()))
	if r.Wanted == 0 {
		c.sendTo(r, &wire.Explanation{Summary: fmt.Sprintf(
			"%d tasks have lost their nodes; of all such tasks %.0f a minute are started elsewhere (setting %s)", lost,
			c.lostTasks.perMinute, ledger.SettingLostTaskRate)})
	}
}

// countLostGranted counts a granted task of a request that has lost tasks.
func (c *leaderState) countLostGranted(r *scheddRequest) {
	if r.newTasks > 0 {
		r.newTasks--
	} else if r.lostTasks > 0 {
		r.lostTasks--
		c.lostTasks.tokens--
	}
}
