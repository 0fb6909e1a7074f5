package ledger

import (
	"cmp"
	"maps"
	"slices"
	"time"
)

// Pair is a task and a machine that keep failing together: they are kept apart until a time.
type Pair struct {
	Task    string    `json:"task"` // as in "12[3].host"
	Machine string    `json:"machine"`
	Until   time.Time `json:"until"`
	Reason  string    `json:"reason"`
}

type pairKey struct{ task, machine string }

func (p Pair) key() pairKey { return pairKey{p.Task, p.Machine} }

// keepApart notes a pair, in place of what was known of it. Until in the past lets the two together again.
func (l *Ledger) keepApart(p Pair) {
	p.Until = instant(nanos(p.Until))
	if nanos(p.Until) <= l.now {
		delete(l.pairs, p.key())
		return
	}
	l.pairs[p.key()] = p
	if len(l.pairs) > maxPairs {
		delete(l.pairs, l.firstOver().key())
	}
	l.pairsDue = nanos(l.firstOver().Until)
}

// firstOver is the pair that is over first; that of two which comes first by its names.
func (l *Ledger) firstOver() (first Pair) {
	for _, p := range l.pairs {
		if first.Until.IsZero() || cmp.Or(p.Until.Compare(first.Until), p.compare(first)) < 0 {
			first = p
		}
	}
	return first
}

// dropPairs forgets those that are over. It looks at them only when the first of them is.
func (l *Ledger) dropPairs() {
	if len(l.pairs) == 0 || l.now < l.pairsDue {
		return
	}
	for key, p := range l.pairs {
		if nanos(p.Until) <= l.now {
			delete(l.pairs, key)
		}
	}
	if len(l.pairs) > 0 {
		l.pairsDue = nanos(l.firstOver().Until)
	}
}

func (p Pair) compare(o Pair) int {
	return cmp.Or(cmp.Compare(p.Task, o.Task), cmp.Compare(p.Machine, o.Machine))
}

// Pairs lists the tasks and machines that are kept apart, by task, then by machine.
func (l *Ledger) Pairs() []Pair {
	return slices.SortedFunc(maps.Values(l.pairs), Pair.compare)
}

// Apart reports whether a task and a machine are kept apart now, and why.
func (l *Ledger) Apart(task, machine string) (reason string, apart bool) {
	p, apart := l.pairs[pairKey{task, machine}]
	return p.Reason, apart
}
