package suspect

import (
	"fmt"
	"time"

	"github.com/roost-batch/roost"
)

type pair struct{ task, machine string }

// trouble is how often a task has failed on a machine.
type trouble struct {
	times int
	at    time.Time
	until time.Time // kept apart; zero: not
}

// Apart is a task that is to be kept from a machine.
type Apart struct {
	Task, Machine string
	Until         time.Time
	Reason        string
}

// pairUp counts how often a task has failed on a machine.
func (b *Book) pairUp(now time.Time, o *Outcome) (apart Apart, ok bool) {
	key := pair{o.Task, o.Machine}
	if o.Verdict == Good {
		delete(b.pairs, key)
		return Apart{}, false
	}
	t := b.pairs[key]
	if t == nil {
		if len(b.pairs) >= mostPairs {
			return Apart{}, false
		}
		t = &trouble{}
		b.pairs[key] = t
	}
	t.times++
	t.at = now
	length := roost.KeptApart(t.times)
	if length == 0 {
		return Apart{}, false
	}
	t.until = now.Add(length)
	reason := fmt.Sprintf("it has failed there %d times", t.times)
	if o.Reason != "" {
		reason += ", the last time: " + o.Reason
	}
	return Apart{o.Task, o.Machine, t.until, reason}, true
}
