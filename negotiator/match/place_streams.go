package match

import (
	"cmp"
	"math"
	"slices"

	"github.com/roost-batch/roost/gpu"
)

// Stream requests of a band come before its batch, the first come first, and take no
// turns (HRM §4.3.1 and §4.5). Turns would give each of several services a part of what
// it needs, with which none can do anything; so the first gets all that it asks for, if
// that is there, then the next. A job's tasks are one gang, placed whole or not at all.
// Quotas and limits hold, and what they get counts for fair share: it is their users'
// batch that waits for it. Whoever finds no room holds up nobody: for how long it may
// wait is the daemon's to say.

// placeStreams places what the stream requests of one band want.
func (p *negotiationCycle) placeStreams(wants []*requestState) {
	var streams []*requestState
	for _, w := range wants {
		if w.Class.AppClass == gpu.StreamClass && w.unitsLeft > 0 && !w.noFit {
			streams = append(streams, w)
		}
	}
	slices.SortFunc(streams, func(a, b *requestState) int {
		return cmp.Or(cmp.Compare(a.Oldest, b.Oldest), a.Key.Compare(b.Key))
	})
	for _, w := range streams {
		p.placeTurn([]*requestState{w}, math.Inf(1))
	}
}
