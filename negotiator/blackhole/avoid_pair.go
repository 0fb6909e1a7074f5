package blackhole

import (
	"fmt"
	"time"

	"github.com/roost-batch/roost"
)

type failurePairKey struct{ task, machine string }

// failureCount counts the failures of a task on a machine.
type failureCount struct {
	count      int
	lastAt     time.Time
	avoidUntil time.Time // end of the avoid pair; zero: none
}

// AvoidPair is a task that must avoid a machine.
type AvoidPair struct {
	Task, Machine string
	Until         time.Time
	Reason        string
}

// countPairFailure counts the failures of a task on a machine.
func (b *Detector) countPairFailure(now time.Time, o *AttemptOutcome) (apart AvoidPair, ok bool) {
	key := failurePairKey{o.Task, o.Machine}
	if o.Verdict == Succeeded {
		delete(b.pairs, key)
		return AvoidPair{}, false
	}
	t := b.pairs[key]
	if t == nil {
		if len(b.pairs) >= maxFailurePairs {
			return AvoidPair{}, false
		}
		t = &failureCount{}
		b.pairs[key] = t
	}
	t.count++
	t.lastAt = now
	length := roost.AvoidDuration(t.count)
	if length == 0 {
		return AvoidPair{}, false
	}
	t.avoidUntil = now.Add(length)
	reason := fmt.Sprintf("it has failed there %d times", t.count)
	if o.Reason != "" {
		reason += ", the last time: " + o.Reason
	}
	return AvoidPair{o.Task, o.Machine, t.avoidUntil, reason}, true
}
