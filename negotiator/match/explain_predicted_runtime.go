package match

import "github.com/roost-batch/roost/negotiator/timeline"

// What runs is over by its walltime at the latest, and that is what is counted with.
// Where there is none, its schedd may have said how long tasks like it took: it is taken
// to be over then, which is likely and not certain. One that has outlived that gets a
// little more, and each time more than the last (Tsafrir, Etsion, Feitelson: Backfilling
// using system-generated predictions, IEEE TPDS 18(6), 2007, §4.1: otherwise it would
// seem to be about to end for as long as it runs). A request that has waited for long
// does not trust in what was wrong before: see findFitWindow.

// overrunSteps are by how much a prediction that was too short is put off, in seconds,
// one after the other; the last again and again.
var overrunSteps = [...]int64{60, 5 * 60, 15 * 60, 30 * 60, 3600, 2 * 3600, 5 * 3600, 10 * 3600, 20 * 3600, 50 * 3600,
	100 * 3600}

// expectedEnd is when the task of a claim is taken to be over, in unix seconds; 0: nobody
// knows. It is sure where it has a walltime.
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

// earliestExpectedEnd is the earliest that a task of a claim may be taken to be over,
// whenever that is asked; 0: nobody knows.
func (c *MachineClaim) earliestExpectedEnd() int64 {
	if c.WalltimeEnd > 0 {
		return c.WalltimeEnd
	}
	return c.PredictedEnd
}

// basisOf says what a start on some machines rests on: that tasks take as long as those
// like them did, and that some which did not will end after all.
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
