package queue

import (
	"fmt"

	"github.com/roost-batch/roost"
)

// Each gang of an array that one leads makes requests of its own, and whoever hands out
// machines looks at every request in every plan. So of an array with very many no more
// are asked for than could start in a moment: the first maxRequestedGangs of those that
// could, and the next when one of these has started.

// maxRequestedGangs is for how many gangs of an array machines are asked at once.
const maxRequestedGangs = 64

// WaitsForEarlierGang reports whether a request asks for nothing yet because enough gangs
// of its array precede it.
func (q *requestIndex) WaitsForEarlierGang(id RequestID) bool {
	r := q.requests[id]
	if r == nil || r.mpiJob == 0 || r.Now {
		return false
	}
	j := q.jobs[r.mpiJob]
	return j != nil && j.waitsForEarlierGang(r.mpiGang)
}

// waitsForEarlierGang reports whether so many whole gangs of the job come before one that
// its turn is yet to come.
func (j *job) waitsForEarlierGang(n int) bool {
	return j.tasksPerIndex() > 1 && n >= maxRequestedGangs && j.gangs.wholeCount.Below(n) >= maxRequestedGangs
}

// earlierGangReason is why a gang waits whose turn is yet to come.
func earlierGangReason() string {
	return fmt.Sprintf("%d others of its array go before it", maxRequestedGangs)
}

// updateGangOrder notes that the turn of a gang may have come or gone. An earlier gang is
// not ready any more, or is again.
func (q *requestIndex) updateGangOrder(j *job, i int, from, to roost.TaskState) {
	if j.tasksPerIndex() == 1 || from != roost.Idle && to != roost.Idle {
		return
	}
	for _, k := range []int{maxRequestedGangs - 1, maxRequestedGangs} {
		if n := j.gangs.wholeCount.Nth(k); n >= 0 {
			for i := n * j.tasksPerIndex(); i < (n+1)*j.tasksPerIndex(); i++ {
				q.markDirty(j.class(i).request)
			}
		}
	}
}
