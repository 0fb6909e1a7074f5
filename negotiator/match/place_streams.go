package match

import (
	"cmp"
	"math"
	"slices"

	"github.com/roost-batch/roost/gpu"
)

// Stream requests of a band are placed before its batch requests, the oldest first, and
// take no turns (HRM §4.3.1 and §4.5). With turns each of several services would get a
// part of what it needs, and none could work. So the first gets all that it asks for, if
// there is room, then the next. A job's tasks are one gang, placed whole or not at all.
// Quotas and limits apply, and what streams get counts for fair share, so batch requests
// of the same users wait longer. A stream request without room does not block others; the
// daemon decides how long it may wait.

// placeStreams places the stream requests of one band.
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
