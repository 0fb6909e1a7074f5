package peers

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/singleflight"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/wire"
)

// poolWaits is what the tasks of all other schedds wait for. Naively each reader would
// ask every schedd; so what was answered serves all readers for a while.
type poolWaits struct {
	calls singleflight.Group
	mu    sync.Mutex
	last  *PoolWaits
}

// PoolWaits is what tasks of several schedds wait for.
type PoolWaits struct {
	*wire.WaitSummary
	Schedds int      // whose tasks are in it
	Silent  []string // schedds whose tasks are not
	at      time.Time
}

// Bounds of questions about waiting tasks.
const (
	maxWaitsAge   = 2 * time.Second
	maxWaitsCalls = 64 // at once
	// the most kinds of reasons of a schedd, and bytes of each; the rest count as other
	maxReasons     = 64
	maxReasonBytes = 32
	otherReason    = "other"
	// the most kinds of estimates of starts, and classes of their errors
	maxCertainties  = 8
	maxErrorClasses = 64
)

// PoolWaits returns what the tasks of all other schedds wait for, as it was a moment ago.
// Nobody changes what it returns.
func (n *Peers) PoolWaits() *PoolWaits {
	n.waits.mu.Lock()
	last := n.waits.last
	n.waits.mu.Unlock()
	if last != nil && time.Since(last.at) < maxWaitsAge {
		return last
	}
	// the first caller's context would end the call for all
	found, _, _ := n.waits.calls.Do("", func() (any, error) {
		ctx, cancel := context.WithTimeout(context.Background(), 2*peerTimeout)
		defer cancel()
		p := n.askWaits(ctx)
		n.waits.mu.Lock()
		defer n.waits.mu.Unlock()
		n.waits.last = p
		return p, nil
	})
	return found.(*PoolWaits)
}

// askWaits asks all other schedds.
func (n *Peers) askWaits(ctx context.Context) *PoolWaits {
	p := &PoolWaits{WaitSummary: &wire.WaitSummary{}}
	var mu sync.Mutex
	var group errgroup.Group
	group.SetLimit(maxWaitsCalls)
	for _, name := range n.peerNames() {
		group.Go(func() error {
			var reply *wire.WaitSummary
			err := n.callPeerWithin(ctx, name,
				func(ctx context.Context, client wire.NeighbourClient, _ func()) (err error) {
					reply, err = client.Waits(ctx, &wire.WaitsRequest{})
					return err
				})
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				p.Silent = append(p.Silent, name)
				return nil
			}
			p.Schedds++
			AddWaits(p.WaitSummary, n.ownWaits(name, reply))
			return nil
		})
	}
	group.Wait()
	slices.Sort(p.Silent)
	p.at = time.Now()
	return p
}

// ownWaits returns what a schedd may say: of its own jobs, in the words of bands, and of
// few reasons.
func (n *Peers) ownWaits(name string, from *wire.WaitSummary) *wire.WaitSummary {
	out := &wire.WaitSummary{QueuedTasks: from.GetQueuedTasks(), RunningTasks: from.GetRunningTasks()}
	for _, e := range from.GetStartErrors()[:min(len(from.GetStartErrors()), maxCertainties)] {
		if len(e.GetCertainty()) <= maxReasonBytes && len(e.GetStarts()) <= maxErrorClasses {
			out.StartErrors = append(out.StartErrors, e)
		}
	}
	for i, w := range from.GetWaiting() {
		reason := w.GetReason()
		if i >= maxReasons-1 || len(reason) > maxReasonBytes {
			reason = otherReason
		}
		out.Waiting = append(out.Waiting, &wire.WaitReasonCount{Reason: reason, Tasks: w.GetTasks()})
	}
	for _, w := range from.GetOldest() {
		if host, _ := n.RemoteHost(w.GetId()); host == name && slices.Contains(roost.BandNames(), w.GetBand()) {
			out.Oldest = append(out.Oldest, w)
		}
	}
	return out
}

// AddWaits adds what the tasks of one more schedd wait for. The reasons are by frequency,
// and of each band the oldest wait stays, the highest band first.
func AddWaits(to, more *wire.WaitSummary) {
	to.QueuedTasks += more.GetQueuedTasks()
	to.RunningTasks += more.GetRunningTasks()
	for _, e := range more.GetStartErrors() {
		addStartErrors(to, e)
	}
	tasks := map[string]uint64{}
	for _, w := range slices.Concat(to.Waiting, more.GetWaiting()) {
		tasks[w.GetReason()] += w.GetTasks()
	}
	oldest := map[string]*wire.OldestWait{}
	for _, w := range slices.Concat(to.Oldest, more.GetOldest()) {
		if at := oldest[w.GetBand()]; at == nil || w.GetSince() < at.GetSince() {
			oldest[w.GetBand()] = w
		}
	}
	to.Waiting, to.Oldest = nil, nil
	for reason, n := range tasks {
		to.Waiting = append(to.Waiting, &wire.WaitReasonCount{Reason: reason, Tasks: n})
	}
	slices.SortFunc(to.Waiting, func(a, b *wire.WaitReasonCount) int {
		return cmp.Or(cmp.Compare(b.Tasks, a.Tasks), cmp.Compare(a.Reason, b.Reason))
	})
	if len(to.Waiting) > maxReasons { // so that a list of many schedds stays short
		rest := &wire.WaitReasonCount{Reason: otherReason}
		for _, w := range to.Waiting[maxReasons-1:] {
			rest.Tasks += w.GetTasks()
		}
		to.Waiting = append(to.Waiting[:maxReasons-1], rest)
	}
	for _, band := range slices.Backward(roost.BandNames()) {
		if w := oldest[band]; w != nil {
			to.Oldest = append(to.Oldest, w)
		}
	}
}

// addStartErrors adds how far off the estimates of one more schedd were.
func addStartErrors(to *wire.WaitSummary, e *wire.StartErrors) {
	i := slices.IndexFunc(to.StartErrors, func(s *wire.StartErrors) bool {
		return s.GetCertainty() == e.GetCertainty()
	})
	if i < 0 {
		if len(to.StartErrors) >= maxCertainties {
			return
		}
		i, to.StartErrors = len(to.StartErrors), append(to.StartErrors, &wire.StartErrors{Certainty: e.GetCertainty()})
	}
	sum := to.StartErrors[i]
	sum.Late += e.GetLate()
	for k, n := range e.GetStarts() {
		if k == len(sum.Starts) {
			sum.Starts = append(sum.Starts, 0)
		}
		sum.Starts[k] += n
	}
}
