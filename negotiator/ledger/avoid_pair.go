package ledger

import (
	"cmp"
	"maps"
	"slices"
	"time"
)

// AvoidPair is a task and a machine that keep failing together. The negotiator keeps them
// apart until a time.
type AvoidPair struct {
	Task    string    `json:"task"` // the task ID, as in "12[3].host"
	Machine string    `json:"machine"`
	Until   time.Time `json:"until"`
	Reason  string    `json:"reason"`
}

type avoidPairKey struct{ task, machine string }

func (p AvoidPair) key() avoidPairKey { return avoidPairKey{p.Task, p.Machine} }

// addAvoidPair records a pair and replaces its earlier record. An Until in the past
// removes the pair.
func (l *Ledger) addAvoidPair(p AvoidPair) {
	p.Until = timeOfNanos(unixNanos(p.Until))
	if unixNanos(p.Until) <= l.now {
		delete(l.avoidPairs, p.key())
		return
	}
	l.avoidPairs[p.key()] = p
	if len(l.avoidPairs) > maxAvoidPairs {
		delete(l.avoidPairs, l.firstExpiring().key())
	}
	l.avoidPairsDue = unixNanos(l.firstExpiring().Until)
}

// firstExpiring returns the pair that expires first; names break ties.
func (l *Ledger) firstExpiring() (first AvoidPair) {
	for _, p := range l.avoidPairs {
		if first.Until.IsZero() || cmp.Or(p.Until.Compare(first.Until), p.compare(first)) < 0 {
			first = p
		}
	}
	return first
}

// dropExpiredPairs removes the expired pairs. It scans them only once the first has
// expired.
func (l *Ledger) dropExpiredPairs() {
	if len(l.avoidPairs) == 0 || l.now < l.avoidPairsDue {
		return
	}
	for key, p := range l.avoidPairs {
		if unixNanos(p.Until) <= l.now {
			delete(l.avoidPairs, key)
		}
	}
	if len(l.avoidPairs) > 0 {
		l.avoidPairsDue = unixNanos(l.firstExpiring().Until)
	}
}

func (p AvoidPair) compare(o AvoidPair) int {
	return cmp.Or(cmp.Compare(p.Task, o.Task), cmp.Compare(p.Machine, o.Machine))
}

// AvoidPairs lists the pairs that are kept apart, by task, then by machine.
func (l *Ledger) AvoidPairs() []AvoidPair {
	return slices.SortedFunc(maps.Values(l.avoidPairs), AvoidPair.compare)
}

// IsAvoidPair reports whether a task and a machine are kept apart now, and why.
func (l *Ledger) IsAvoidPair(task, machine string) (reason string, found bool) {
	p, found := l.avoidPairs[avoidPairKey{task, machine}]
	return p.Reason, found
}
