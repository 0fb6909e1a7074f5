package queue

import "time"

// How long a task will take nobody knows better than its user, and users say far too
// much: those before it tell more. The mean of the last two that ended is what it is
// taken to need, no more than its walltime (Tsafrir, Etsion, Feitelson: Backfilling using
// system-generated predictions, IEEE TPDS 18(6), 2007, §3): the last two of its own
// request, or, where it says a walltime that bounds the harm, of its user. It is what
// others may start beside it for; what runs already is taken to need its whole walltime,
// and if it has none what was predicted when it was started, which its machine tells.
// After a restart predictions begin anew.

// runtimePredictor predicts how long attempts take.
type runtimePredictor struct {
	runtimesByUser map[uint32]*lastRuntimes // by uid
}

// lastRuntimes are the lengths of the last two attempts that ended by themselves.
type lastRuntimes struct{ last, before time.Duration }

func (r *lastRuntimes) addRuntime(d time.Duration) { r.last, r.before = max(d, time.Second), r.last }

// meanRuntime is what the next one will take; false while there were not two.
func (r *lastRuntimes) meanRuntime() (time.Duration, bool) {
	return (r.last + r.before) / 2, r.before > 0
}

// recordRuntime notes how long an attempt took that ended by itself.
func (q *runtimePredictor) recordRuntime(j *job, i int, wall int64) {
	d := time.Duration(wall)
	j.class(i).request.runtimes.addRuntime(d)
	of := q.runtimesByUser[j.submission.uid]
	if of == nil {
		of = &lastRuntimes{}
		q.runtimesByUser[j.submission.uid] = of
	}
	of.addRuntime(d)
}

// predictedRuntime is how long a task of a request is expected to take; 0 where nobody
// knows.
func (q *runtimePredictor) predictedRuntime(r *Request) time.Duration {
	mean, ok := r.runtimes.meanRuntime()
	if of := q.runtimesByUser[r.UID]; !ok && of != nil && r.Walltime > 0 {
		mean, ok = of.meanRuntime()
	}
	switch {
	case !ok:
		return 0
	case r.Walltime > 0:
		return min(mean, r.Walltime)
	}
	return mean
}
