package negotiation

import (
	"math/bits"
	"slices"
	"time"

	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/schedd/queue"
)

// startErrors compares when tasks start with when the leader had expected that. Of each
// request the first estimate counts until one of its tasks starts: it looked farthest
// ahead. What is compared goes back to the start of this schedd.
type startErrors struct {
	expected map[queue.RequestID]startForecast
	sums     map[string]*wire.StartErrors // by certainty
}

// startForecast is an estimate of the leader.
type startForecast struct {
	start     time.Time
	certainty string
}

// maxForecasts bounds the estimates that are remembered.
const maxForecasts = 10_000

// certainties are the words of the leader for what an estimate is based on.
var certainties = [...]string{"walltime", "prediction", "rate"}

// note remembers the estimate of an explanation, if it is the first of its request. A
// start that is due now is no estimate.
func (s *startErrors) note(id queue.RequestID, e *wire.Explanation, now time.Time) {
	start := time.Unix(e.GetStart(), 0)
	_, known := s.expected[id]
	if known || len(s.expected) >= maxForecasts || e.GetStart() <= 0 || start.Sub(now) < time.Second ||
		!slices.Contains(certainties[:], e.GetCertainty()) {
		return
	}
	if s.expected == nil {
		s.expected, s.sums = map[queue.RequestID]startForecast{}, map[string]*wire.StartErrors{}
	}
	s.expected[id] = startForecast{start, e.GetCertainty()}
}

// compare takes in that a task of a request starts now. It reports the certainty of the
// estimate and how far off it was, or false if there was none.
func (s *startErrors) compare(id queue.RequestID, now time.Time) (certainty string, off time.Duration, ok bool) {
	f, ok := s.expected[id]
	if !ok {
		return "", 0, false
	}
	delete(s.expected, id)
	sum := s.sums[f.certainty]
	if sum == nil {
		sum = &wire.StartErrors{Certainty: f.certainty, Starts: make([]uint64, errorBuckets)}
		s.sums[f.certainty] = sum
	}
	off = now.Sub(f.start)
	if off > 0 {
		sum.Late++
	}
	off = off.Abs()
	sum.Starts[errorBucket(off)]++
	return f.certainty, off, true
}

// forget drops the estimate of a request of which nothing waits any more.
func (s *startErrors) forget(id queue.RequestID) { delete(s.expected, id) }

// errorBuckets is the number of classes of errors. Bucket i has those of at most 2^i
// seconds; the last one has longer ones, too.
const errorBuckets = 24

func errorBucket(off time.Duration) int {
	seconds := uint64(max(off+time.Second-1, 0) / time.Second) // rounded up
	if seconds <= 1 {
		return 0
	}
	return min(bits.Len64(seconds-1), errorBuckets-1)
}

// StartErrors returns how far off the leader's estimates of starts were, by certainty,
// the surest first.
func (l *LeaderConn) StartErrors() (all []*wire.StartErrors) {
	for _, certainty := range certainties {
		if sum := l.starts.sums[certainty]; sum != nil {
			all = append(all, &wire.StartErrors{Certainty: sum.Certainty, Starts: slices.Clone(sum.Starts),
				Late: sum.Late})
		}
	}
	return all
}

// NoteStart takes in an event that is about to be applied. Of a task that is assigned it
// reports how far off the estimate of its start was, if there was one.
func (l *LeaderConn) NoteStart(e *queue.JobEvent) (certainty string, off time.Duration, ok bool) {
	if e.Type != queue.Assigned {
		return "", 0, false
	}
	a, ok := l.queue.AttemptAccount(e.Job, e.Index)
	if !ok {
		return "", 0, false
	}
	return l.starts.compare(a.Request, time.Unix(0, e.Time))
}
