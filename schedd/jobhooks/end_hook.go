package jobhooks

import (
	"context"
	"sync"
	"time"

	"github.com/roost-batch/roost/internal/spool"
)

// maxPending bounds the ends that wait for their program.
const maxPending = 100_000

// endWaits is how long an end waits before its program is run again that has failed.
var endWaits = [...]time.Duration{5 * time.Second, 30 * time.Second, 3 * time.Minute}

// queuedEnd is an end whose program was not run yet, or has failed.
type queuedEnd struct {
	entry *spool.Entry[Ended]
	tries int       // that have failed
	due   time.Time // for the next try
}

// EnqueueEnds writes ends of attempts to disk. Their programs are run after the caller
// calls deliver, when the events are on disk. Only one goroutine may call it.
func (r *Runner) EnqueueEnds(ends []Ended) (deliver func()) {
	r.mu.Lock()
	room := max(maxPending-r.pending, 0)
	r.mu.Unlock()
	if room < len(ends) {
		r.log.Error("the end hook is not fast enough, and is not run for some attempts",
			"dropped", len(ends)-room, "first", ends[room].Task, "waiting", maxPending)
		ends = ends[:room]
	}
	if len(ends) == 0 {
		return func() {}
	}
	all, err := r.spool.Write(ends)
	if err != nil {
		r.log.Error("the end hook is not run for some attempts", "count", len(ends), "first", ends[0].Task, "err", err)
		return func() {}
	}
	return func() {
		r.mu.Lock()
		r.pending += len(all)
		for _, e := range all {
			r.arrived = append(r.arrived, &queuedEnd{entry: e})
		}
		r.mu.Unlock()
		r.wakeRun()
	}
}

func (r *Runner) wakeRun() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// Run runs the programs at ends until ctx ends. Those that run then are killed, and run
// again after a restart.
func (r *Runner) Run(ctx context.Context) {
	if !r.HasEnd() {
		return
	}
	var running sync.WaitGroup
	defer running.Wait()
	for {
		select {
		case r.ending <- struct{}{}:
		case <-ctx.Done():
			return
		}
		e := r.nextEnd(ctx)
		if e == nil {
			return
		}
		running.Go(func() {
			defer func() { <-r.ending }()
			r.runEnd(ctx, e)
		})
	}
}

// nextEnd waits for an end that is due; nil if ctx has ended.
func (r *Runner) nextEnd(ctx context.Context) *queuedEnd {
	for ctx.Err() == nil {
		e, wait := r.takeDue(time.Now())
		if e != nil {
			return e
		}
		timer := time.NewTimer(wait)
		select {
		case <-r.wake:
		case <-timer.C:
		case <-ctx.Done():
		}
		timer.Stop()
	}
	return nil
}

// takeDue takes the next end that is due, or says how long to wait for one. Each list of
// retries is in the order of due, because the waits in it are equal.
func (r *Runner) takeDue(now time.Time) (e *queuedEnd, wait time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	wait = time.Hour
	for i := range r.retries {
		list := &r.retries[i]
		if len(*list) == 0 {
			continue
		}
		if until := (*list)[0].due.Sub(now); until > 0 {
			wait = min(wait, until)
			continue
		}
		e, *list = (*list)[0], (*list)[1:]
		return e, 0
	}
	if len(r.arrived) > 0 {
		e, r.arrived = r.arrived[0], r.arrived[1:]
	}
	return e, wait
}

// runEnd runs the program for one end.
func (r *Runner) runEnd(ctx context.Context, e *queuedEnd) {
	end := &e.entry.Value
	out, err := r.run(ctx, r.settings.End, eventEnd, end.Task, endInput{r.head(eventEnd), end})
	if err != nil && ctx.Err() != nil {
		return // the schedd ends: it is in the spool
	}
	if err != nil && e.tries < len(endWaits) {
		r.log.Warn("the end hook has failed and is run again", "task", end.Task, "attempt", end.Attempt.Attempt,
			"err", err, "said", shown(out))
		list := &r.retries[e.tries]
		r.mu.Lock()
		e.due = time.Now().Add(endWaits[e.tries])
		e.tries++
		*list = append(*list, e)
		r.mu.Unlock()
		r.wakeRun()
		return
	}
	if err != nil {
		r.log.Error("the end hook has failed too often and is not run again", "task", end.Task, "attempt",
			end.Attempt.Attempt, "err", err, "said", shown(out))
	}
	e.entry.Delivered()
	r.mu.Lock()
	r.pending--
	r.mu.Unlock()
}
