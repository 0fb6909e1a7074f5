package accountant

import (
	"context"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/roost-batch/roost/internal/accounting"
	"github.com/roost-batch/roost/internal/accounting/query"
	"github.com/roost-batch/roost/internal/wire"
)

// The bounds of a listing of live attempts for users.
const (
	liveAge     = 10 * time.Second // so old it may be
	liveTimeout = 5 * time.Second  // so long a schedd may take
)

// liveCache has the live attempts of the pool for a moment. A thousand scripts that ask
// at once cost each schedd one listing.
type liveCache struct {
	list func(ctx context.Context, ask *wire.FeedRunning, most time.Duration) ([]accounting.AttemptRecord, []*liveError)

	calls singleflight.Group
	mu    sync.Mutex
	last  map[string]*query.LiveAttempts // by kind
}

// get returns the live attempts, and the jobs with tasks that wait if wanted. Nobody
// changes what it returns.
func (c *liveCache) get(waiting bool) *query.LiveAttempts {
	kind := "running"
	if waiting {
		kind = "waiting"
	}
	c.mu.Lock()
	last := c.last[kind]
	c.mu.Unlock()
	if last != nil {
		return last
	}
	// the first caller's context would end the call for all
	found, _, _ := c.calls.Do(kind, func() (any, error) {
		l := &query.LiveAttempts{At: accounting.MillisOf(time.Now())}
		ctx, cancel := context.WithTimeout(context.Background(), 4*liveTimeout)
		defer cancel()
		var failed []*liveError
		l.Records, failed = c.list(ctx, &wire.FeedRunning{Progress: true, Waiting: waiting},
			liveTimeout)
		for _, e := range failed {
			l.Missing = append(l.Missing, e.Error())
		}
		c.put(kind, l)
		return l, nil
	})
	return found.(*query.LiveAttempts)
}

// put stores a listing, which is forgotten when it is too old.
func (c *liveCache) put(kind string, l *query.LiveAttempts) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.last == nil {
		c.last = map[string]*query.LiveAttempts{}
	}
	c.last[kind] = l
	time.AfterFunc(liveAge, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.last[kind] == l {
			delete(c.last, kind)
		}
	})
}
