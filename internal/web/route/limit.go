package route

import (
	"fmt"
	"net/http"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// classLimit are the bounds of a class. Zero fields bound nothing.
type classLimit struct {
	perSecond rate.Limit
	burst     int
	atOnce    int // requests under way of one caller
	ofAll     int // requests under way of all callers
}

// limitOf returns the bounds of a class.
func limitOf(c LimitClass) classLimit {
	switch c {
	case Reads:
		return classLimit{perSecond: 20, burst: 60, atOnce: 32, ofAll: 512}
	case Writes:
		return classLimit{perSecond: 5, burst: 20, atOnce: 8, ofAll: 128}
	case Expensive:
		return classLimit{perSecond: 5, burst: 10, atOnce: 2, ofAll: 8}
	case Logins:
		return classLimit{perSecond: rate.Every(12 * time.Second), burst: 5, atOnce: 4, ofAll: 32}
	case Simulations:
		return classLimit{perSecond: 1, burst: 5, atOnce: 1, ofAll: 2}
	case Files:
		return classLimit{perSecond: 100, burst: 200, atOnce: 64, ofAll: 512}
	case Streams:
		return classLimit{perSecond: 2, burst: 20, atOnce: 8, ofAll: 1024}
	case Terminals:
		return classLimit{perSecond: 2, burst: 20, atOnce: 8, ofAll: 128}
	}
	return classLimit{}
}

// maxCallers bounds the callers that a limiter remembers. One more makes it forget those
// whose last request is long ago.
const maxCallers = 10_000

// limiter counts the requests of each caller in each class.
type limiter struct {
	mu    sync.Mutex
	of    map[limitKey]*callerCount
	total map[LimitClass]int // under way
	now   func() time.Time
}

type limitKey struct {
	class  LimitClass
	caller string
}

type callerCount struct {
	bucket *rate.Limiter
	active int
	last   time.Time
}

func newLimiter() *limiter {
	return &limiter{of: map[limitKey]*callerCount{}, total: map[LimitClass]int{}, now: time.Now}
}

// begin counts a request, or returns a problem that says when to try again. done ends a
// counted request.
func (l *limiter) begin(class LimitClass, caller string) (done func(), p *Problem) {
	bounds, now := limitOf(class), l.now()
	l.mu.Lock()
	defer l.mu.Unlock()
	key := limitKey{class, caller}
	c := l.of[key]
	if c == nil {
		l.forget(now)
		c = &callerCount{bucket: rate.NewLimiter(bounds.perSecond, bounds.burst)}
		l.of[key] = c
	}
	c.last = now
	switch {
	case bounds.ofAll > 0 && l.total[class] >= bounds.ofAll:
		return nil, limited("the server is busy with such requests of all users", 2)
	case bounds.atOnce > 0 && c.active >= bounds.atOnce:
		return nil, limited(fmt.Sprintf("%d such requests of yours are under way", c.active), 1)
	}
	take := c.bucket.ReserveN(now, 1)
	if wait := take.DelayFrom(now); wait > 0 {
		take.CancelAt(now)
		return nil, limited("too many requests in a short time", int(wait/time.Second)+1)
	}
	c.active++
	l.total[class]++
	return sync.OnceFunc(func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		c.active--
		l.total[class]--
	}), nil
}

// forget makes room for another caller. An idle caller's bucket is full again, so
// forgetting it gives nothing away.
func (l *limiter) forget(now time.Time) {
	if len(l.of) < maxCallers {
		return
	}
	for key, c := range l.of {
		if c.active == 0 && now.Sub(c.last) > 2*time.Minute {
			delete(l.of, key)
		}
	}
	for key, c := range l.of {
		if len(l.of) < maxCallers {
			return
		}
		if c.active == 0 {
			delete(l.of, key)
		}
	}
}

func limited(detail string, after int) *Problem {
	p := NewProblem(http.StatusTooManyRequests, detail, "wait, and ask less often; the API has a stream of changes")
	p.Kind, p.Type, p.RetryAfter = "exhausted", problemType("exhausted"), after
	return p
}
