package ledger

import (
	"fmt"
	"iter"
	"slices"
	"time"
)

// How long grants count as being on their way, and how many may be.
const (
	// FlightLife is that of most: after this its schedd has claimed, or never will.
	FlightLife = 10 * time.Second

	// Licences are of no machine, so nobody refuses a claim that comes later. One with licences stays until the leader knows what has become of it, or for
	// so long as a schedd may be away from its tasks.
	licensedLife = 40 * time.Minute

	maxFlights = 1 << 20 // of either kind
)

// Flight is a grant on its way, since the entry of that time.
type Flight struct {
	At    int64 // unix nanoseconds
	Epoch uint64
	Grant Grant
}

// Flights lists the grants that may still be acted upon, oldest first, those with licences behind the others.
func (l *Ledger) Flights() iter.Seq[Flight] {
	return func(yield func(Flight) bool) {
		for _, list := range [...][]Flight{l.flights, l.licensed} {
			for _, f := range list {
				if !yield(f) {
					return
				}
			}
		}
	}
}

func (l *Ledger) listOf(g *Grant) *[]Flight {
	if g.ClaimBy != 0 {
		return &l.licensed
	}
	return &l.flights
}

// fly puts a grant on its way. What has become of licences is told of each unit alone.
func (l *Ledger) fly(g Grant) {
	g.Units = max(g.Units, 1)
	l.last = max(l.last, g.ID+uint64(g.Units)-1)
	list, units := l.listOf(&g), 1
	if g.ClaimBy != 0 {
		units, g.Units = g.Units, 1
	}
	for range units {
		*list = append(*list, Flight{l.now, l.epoch, g})
		g.ID++
	}
	if extra := len(*list) - maxFlights; extra > 0 {
		*list = append([]Flight(nil), (*list)[extra:]...)
	}
}

// land drops grants with licences that are on their way no more.
func (l *Ledger) land(ended []uint64) {
	if len(ended) == 0 || len(l.licensed) == 0 {
		return
	}
	ended = slices.Sorted(slices.Values(ended))
	l.licensed = slices.DeleteFunc(l.licensed, func(f Flight) bool {
		_, found := slices.BinarySearch(ended, f.Grant.ID)
		return found
	})
}

// Ground drops all grants that are on their way: who goes on from a ledger that was written down has seen what has become of them.
func (l *Ledger) Ground() { l.flights, l.licensed = nil, nil }

// handOver prepares for a leader with another clock: what was on its way when the old one spoke last may be so still, whatever the two clocks say, so
// that its life begins anew.
func (l *Ledger) handOver(at int64) {
	for _, list := range [...][]Flight{l.flights, l.licensed} {
		for i := range list {
			list[i].At = max(l.now, at)
		}
	}
}

// rewindFlights prepares for a clock that is put back.
func (l *Ledger) rewindFlights(at int64) {
	for _, list := range [...][]Flight{l.flights, l.licensed} {
		for i := range list {
			list[i].At = min(list[i].At, at)
		}
	}
}

func (l *Ledger) dropFlights() {
	l.flights = after(l.flights, l.now-int64(FlightLife))
	l.licensed = after(l.licensed, l.now-int64(licensedLife))
}

// after drops what is on its way since then or longer.
func after(list []Flight, since int64) []Flight {
	over := 0
	for over < len(list) && list[over].At <= since {
		over++
	}
	clear(list[:over])
	return list[over:]
}

func (l *Ledger) checkFlights(list []Flight, life time.Duration) {
	for i, f := range list {
		if f.At > l.now || f.At <= l.now-int64(life) || i > 0 && f.At < list[i-1].At || f.Grant.ID+uint64(f.Grant.Units)-1 > l.last {
			panic(fmt.Sprintf("ledger: grant %d in flight since %d at %d, the last was %d", f.Grant.ID, f.At, l.now, l.last))
		}
	}
}
