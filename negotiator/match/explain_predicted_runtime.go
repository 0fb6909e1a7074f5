package match

import "github.com/roost-batch/roost/negotiator/timeline"

// A task ends by its walltime at the latest, and timelines count with that. A task
// without a walltime may have a prediction from its schedd, by how long similar tasks
// took: it is assumed to end then, which is likely and not certain. A task that outlives
// its prediction gets a little more time, and each time more than before (Tsafrir,
// Etsion, Feitelson: Backfilling using system-generated predictions, IEEE TPDS 18(6),
// 2007, §4.1: otherwise it would seem about to end for as long as it runs). A request
// that has waited for long does not rely on a prediction that was wrong before: see
// findFitWindow.

// overrunSteps are the extensions of a prediction that was too short, in seconds, one
// after the other. The last is repeated.
var overrunSteps = [...]int64{60, 5 * 60, 15 * 60, 30 * 60, 3600, 2 * 3600, 5 * 3600, 10 * 3600, 20 * 3600, 50 * 3600,
	100 * 3600}

// expectedEnd returns when the task of a claim is expected to end, in unix seconds; 0:
// unknown. It is sure if the task has a walltime.
func (c *MachineClaim) expectedEnd(now int64) (at int64, sure bool) {
	if c.WalltimeEnd > 0 || c.PredictedEnd == 0 {
		return c.WalltimeEnd, true
	}
	at = c.PredictedEnd
	for i := 0; at <= now; i++ {
		at += overrunSteps[min(i, len(overrunSteps)-1)]
	}
	return at, false
}

// earliestExpectedEnd returns the earliest result of expectedEnd at any time, in unix
// seconds; 0: unknown.
func (c *MachineClaim) earliestExpectedEnd() int64 {
	if c.WalltimeEnd > 0 {
		return c.WalltimeEnd
	}
	return c.PredictedEnd
}

// basisOf reports what a start on some machines depends on. predicted: tasks end as
// predicted. corrected: some of them have outlived their predictions already.
func (p startExplainer) basisOf(on []tasksOnMachine, start timeline.UnixSeconds) (predicted, corrected bool) {
	for _, one := range on {
		m := p.Machines[one.machine]
		if !m.usesPredictions {
			continue
		}
		for i := range m.Claims {
			c := &m.Claims[i]
			if at, sure := c.expectedEnd(p.now); !sure && !c.PromisedToNext && at <= start {
				predicted, corrected = true, corrected || c.PredictedEnd <= p.now
			}
		}
	}
	return predicted, corrected
}
