package suspect

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/roost-batch/roost"
)

// Avoidance is a machine that one submitter's jobs are to be kept from: what has failed there is that one's alone.
type Avoidance struct {
	Machine string
	Submitter
	Until  time.Time
	Reason string
}

type aversion struct {
	machine string
	Submitter
}

// avoidance is how long a machine is avoided.
type avoidance struct {
	until  time.Time
	last   time.Duration
	reason string
}

// avoidedBy says which submitters are to avoid a machine from now on: a whole submit node on the evidence of two of its owners, or else one of these.
func (b *Book) avoidedBy(now time.Time, name string, against *evidence, pool Pool) (list []Avoidance) {
	for _, who := range slices.SortedFunc(maps.Keys(against.of), func(x, y Submitter) int {
		return cmp.Or(cmp.Compare(x.Node, y.Node), cmp.Compare(x.Owner, y.Owner))
	}) {
		e := against.of[who]
		if !e.suffices() || who.Owner == "" && len(e.owners) < 2 || b.avoids(now, name, who) || b.avoided[aversion{name, Submitter{Node: who.Node}}].holds(now) {
			continue
		}
		if n := b.avoiding(now, who); n >= max(1, pool.Machines/DrainPart) || pool.Machines-pool.Drained-n < 2 || len(b.avoided) >= mostPairs {
			continue
		}
		key := aversion{name, who}
		a := b.avoided[key]
		if a == nil {
			a = &avoidance{}
			b.avoided[key] = a
		}
		a.last = min(max(2*a.last, roost.FirstApart), roost.LongestApart)
		a.until, a.reason = now.Add(a.last), e.text()
		list = append(list, Avoidance{name, who, a.until, a.reason})
	}
	return list
}

func (a *avoidance) holds(now time.Time) bool { return a != nil && now.Before(a.until) }

func (b *Book) avoids(now time.Time, machine string, who Submitter) bool {
	return b.avoided[aversion{machine, who}].holds(now)
}

// avoiding is how many machines a submitter avoids.
func (b *Book) avoiding(now time.Time, who Submitter) (n int) {
	for key, a := range b.avoided {
		if key.Submitter == who && a.holds(now) {
			n++
		}
	}
	return n
}

// Avoided lists what submitters avoid now, by machine.
func (b *Book) Avoided(now time.Time) (list []Avoidance) {
	for key, a := range b.avoided {
		if a.holds(now) {
			list = append(list, Avoidance{key.machine, key.Submitter, a.until, a.reason})
		}
	}
	slices.SortFunc(list, func(x, y Avoidance) int {
		return cmp.Or(cmp.Compare(x.Machine, y.Machine), cmp.Compare(x.Node, y.Node), cmp.Compare(x.Owner, y.Owner))
	})
	return list
}
