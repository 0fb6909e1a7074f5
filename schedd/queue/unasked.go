package queue

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/roost-batch/roost"
)

// A job that was submitted while nobody could say whether quotas allow it was taken: an outage of the negotiators keeps no work out. It is asked about
// later, and until then nothing of it counts for its owner's quota. If it is refused it is held, whole, with the refusal for a reason; whoever releases it
// has it asked about again.

// Unasked lists the jobs that somebody is yet to be asked about, oldest first: those with a task that may run.
func (q *Queue) Unasked() []uint64 {
	if len(q.unasked) == 0 {
		return nil
	}
	return slices.DeleteFunc(slices.Sorted(maps.Keys(q.unasked)), func(seq uint64) bool { return !q.jobs[seq].moves() })
}

// moves reports whether a task of the job runs, or may run without another word.
func (j *job) moves() bool {
	if j.counts[roost.Idle]+j.counts[roost.Blocked] > 0 {
		return true
	}
	for i := 0; i < len(j.state) && j.active > 0; i++ {
		if j.state[i].Active() && !j.of(i).held { // else it is to end, and to be held then
			return true
		}
	}
	return false
}

// AskLater is Ask for a job that is in the queue.
func (q *Queue) AskLater(seq uint64) (Payer, Demand, bool) {
	j := q.jobs[seq]
	if j == nil || !q.unasked[seq] {
		return Payer{}, Demand{}, false
	}
	return j.payer(), j.demand(), true
}

// refusal is how the reason begins for which a job is held that was refused after it had been taken.
const refusal = "refused, as it was "

// WasRefused reports whether that is why a job is held.
func WasRefused(reason string) bool { return strings.HasPrefix(reason, refusal) }

// Admit decides that a job is one like any other.
func (q *Queue) Admit(now time.Time, seq uint64) []Event {
	if !q.unasked[seq] {
		return nil
	}
	return []Event{{What: Admitted, Time: now.UnixNano(), Job: seq}}
}

// Overdraw decides that a job is held that would not have been taken, had somebody been asked; why says it with the numbers.
func (q *Queue) Overdraw(now time.Time, seq uint64, why string) []Event {
	j := q.jobs[seq]
	if j == nil || !q.unasked[seq] || !j.moves() {
		return nil
	}
	what := "submitted"
	var waiting []Range // of one that was altered, what runs was allowed before
	for i, s := range j.state {
		if j.altered > 0 && !s.Active() && !s.Final() {
			waiting = appendIndex(waiting, i)
		}
	}
	if j.altered > 0 {
		what = "altered"
		if len(waiting) == 0 {
			return q.Admit(now, seq)
		}
	}
	return []Event{{What: Held, Time: now.UnixNano(), Job: seq, Ranges: waiting, Reason: fmt.Sprintf(
		refusal+"%s while no negotiator could be asked: %s; to try again: roost release %v", what, why, j.id(q.host))}}
}
