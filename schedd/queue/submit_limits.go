package queue

import (
	"fmt"

	"github.com/roost-batch/roost"
)

// openTaskCounts counts the tasks that are not final, and bounds them.
type openTaskCounts struct {
	tasks      int
	openByUser map[uint32]int // by uid; only users who have any
}

// Parts of the bound on all open tasks. The last tenth is for users who have few, so that
// the users who have many cannot keep everybody else out.
const (
	reservedShare = 10  // one in so many of all open tasks is reserved for users with few
	fewTasksShare = 100 // a user has few tasks who has at most one in so many
)

// OpenTaskCount counts the tasks that are not final.
func (q *openTaskCounts) OpenTaskCount() int { return q.tasks }

// countOpen counts n more tasks of a job that are not final.
func (q *openTaskCounts) countOpen(j *job, n int) {
	q.tasks += n
	if q.openByUser[j.submission.uid] += n; q.openByUser[j.submission.uid] == 0 {
		delete(q.openByUser, j.submission.uid)
	}
}

// OpenTasks counts the tasks of a user that are not final.
func (q *openTaskCounts) OpenTasks(uid uint32) int { return q.openByUser[uid] }

// checkOpenLimit refuses n more tasks of a user where the queue has no room for them.
// Three bounds hold: MaxQueued on the tasks of all users, MaxPerUser on those of one, and
// nine tenths of MaxQueued on the tasks of all for a user who has more than a hundredth
// of it. Whoever may touch everybody's jobs is held to the first alone.
func (q *openTaskCounts) checkOpenLimit(who CallerIdentity, n int, limits SubmitLimits) error {
	total, own := q.tasks+n, q.openByUser[who.UID]+n
	switch most := limits.MaxQueued; {
	case limits.MaxPerUser > 0 && own > limits.MaxPerUser && !who.Admin:
		return fmt.Errorf("%w: %d of your tasks are queued, these would make %d, and this schedd takes %d of one "+
			"user; wait until some have ended, or submit fewer at once",
			roost.Exhausted, own-n, own, limits.MaxPerUser)
	case most == 0:
	case total > most:
		return fmt.Errorf("%w: %d tasks of all users are queued, these would make %d, and this schedd takes %d; wait "+
			"until some have ended", roost.Exhausted, q.tasks, total, most)
	case total > most-most/reservedShare && !who.Admin && own > max(most/fewTasksShare, 1):
		return fmt.Errorf("%w: %d tasks of all users are queued, these would make %d, and the last %d of the %d that "+
			"this schedd takes are for users who have at most %d; you would have %d: wait until some have ended",
			roost.Exhausted, q.tasks, total, most/reservedShare, most, max(most/fewTasksShare, 1), own)
	}
	return nil
}
