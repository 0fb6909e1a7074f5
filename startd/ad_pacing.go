package startd

import (
	"time"

	"github.com/roost-batch/roost"
)

// The naive way makes the machine's ad anew at each change. An ad has all claims, so a
// thousand tasks that start one after the other cost a thousand times a thousand. So a
// change is advertised at once only if the last ad was long enough ago, and otherwise
// together with those that follow it.
const (
	adPause    = 9                      // as often what the last ad took: a tenth of the time at most goes into ads
	maxAdPause = 200 * time.Millisecond // by which the name of a task may come later
)

// adPacing spaces the ads of a machine.
type adPacing struct {
	madeAt roost.BootTime // when the last ad was made
	took   time.Duration  // to make it
}

// due returns when the next ad may be made.
func (p adPacing) due() roost.BootTime { return p.madeAt + min(adPause*p.took, maxAdPause) }

// isAdStale reports whether something has changed by which others decide.
func isAdStale(l *machineLoop) bool {
	return l.table.Version() != l.advertisedVersion || l.endpointsStale ||
		l.ownerState != nil && l.ownerState.IsAdStale()
}

// nextAdSequence returns the sequence of the first ad that shows the machine as it is. If
// the last one does not, that is the next one.
func nextAdSequence(l *machineLoop) uint64 {
	if isAdStale(l) {
		return l.sequence + 1
	}
	return l.sequence
}
