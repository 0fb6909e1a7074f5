package queue

import (
	"fmt"

	"github.com/roost-batch/roost"
)

// Each gang of an array that one leads makes requests of its own, and whoever hands out machines looks at every request in every plan. So of an array with very
// many no more are asked for than could start in a moment: the first maxAhead of those that could, and the next when one of these has started.

// maxAhead is for how many gangs of an array machines are asked at once.
const maxAhead = 64

// Behind reports whether nothing is to be asked for a request yet, since so many gangs of its array go before it.
func (q *Queue) Behind(id RequestID) bool {
	r := q.requests[id]
	if r == nil || r.led == 0 || r.Now {
		return false
	}
	j := q.jobs[r.led]
	return j != nil && j.behind(r.subjob)
}

// behind reports whether so many whole gangs of the job come before one that its turn is yet to come.
func (j *job) behind(n int) bool {
	return j.stride() > 1 && n >= maxAhead && j.gangs.whole.below(n) >= maxAhead
}

// behindReason is why a gang waits whose turn is yet to come.
func behindReason() string { return fmt.Sprintf("%d others of its array go before it", maxAhead) }

// advance notes that the turn of a gang may have come, or gone, because one before it is not ready any more, or is again.
func (q *Queue) advance(j *job, i int, from, to roost.TaskState) {
	if j.stride() == 1 || from != roost.Idle && to != roost.Idle {
		return
	}
	for _, k := range []int{maxAhead - 1, maxAhead} {
		if n := j.gangs.whole.nth(k); n >= 0 {
			for i := n * j.stride(); i < (n+1)*j.stride(); i++ {
				q.touch(j.class(i).request)
			}
		}
	}
}
