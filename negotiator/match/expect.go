package match

import "github.com/roost-batch/roost/negotiator/forecast"

// What runs is over by its walltime at the latest, and that is what is counted with. Where there is none, its schedd may have said how long tasks like it
// took: it is taken to be over then, which is likely and not certain. One that has outlived that gets a little more, and each time more than the last (Tsafrir,
// Etsion, Feitelson: Backfilling using system-generated predictions, IEEE TPDS 18(6), 2007, §4.1: otherwise it would seem to be about to end for as long as
// it runs). A request that has waited for long does not trust in what was wrong before: see findHold.

// corrections are by how much a prediction that was too short is put off, in seconds, one after the other; the last again and again.
var corrections = [...]int64{60, 5 * 60, 15 * 60, 30 * 60, 3600, 2 * 3600, 5 * 3600, 10 * 3600, 20 * 3600, 50 * 3600, 100 * 3600}

// over is when the task of a claim is taken to be over, in unix seconds; 0: nobody knows. It is sure where it has a walltime.
func (c *Claim) over(now int64) (at int64, sure bool) {
	if c.Ends > 0 || c.Expected == 0 {
		return c.Ends, true
	}
	at = c.Expected
	for i := 0; at <= now; i++ {
		at += corrections[min(i, len(corrections)-1)]
	}
	return at, false
}

// firstOver is the earliest that a task of a claim may be taken to be over, whenever that is asked; 0: nobody knows.
func (c *Claim) firstOver() int64 {
	if c.Ends > 0 {
		return c.Ends
	}
	return c.Expected
}

// trust says what a start on some machines rests on: that tasks take as long as those like them did, and that some which did not will end after all.
func (p *plan) trust(on []portion, start forecast.Seconds) (predicted, corrected bool) {
	for _, one := range on {
		m := p.Machines[one.at]
		if !m.guessed {
			continue
		}
		for i := range m.Claims {
			c := &m.Claims[i]
			if at, sure := c.over(p.now); !sure && !c.Taken && at <= start {
				predicted, corrected = true, corrected || c.Expected <= p.now
			}
		}
	}
	return predicted, corrected
}
