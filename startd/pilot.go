package startd

import (
	"context"
	"sync/atomic"
	"time"
)

// pilotTick is how often a pilot looks whether it has to end.
const pilotTick = time.Second

// pilotLife decides when a pilot ends. An allocation costs as long as it lasts.
type pilotLife struct {
	idle, firstIdle time.Duration // 0: it does not end for that
	until           time.Time     // zero: nobody knows
	since           time.Time     // since when it has no claims
	busyOnce        bool          // it has had one
}

// endReason returns why a pilot ends now, "" where it does not. The last claim may have
// come and gone since the call before.
func (p *pilotLife) endReason(now time.Time, claims int, lastClaim time.Time) string {
	switch {
	case claims > 0:
		p.since, p.busyOnce = now, true
	case lastClaim.After(p.since):
		p.since, p.busyOnce = lastClaim, true
	}
	limit := p.idle
	if !p.busyOnce {
		limit = max(p.idle, p.firstIdle)
	}
	switch {
	case !p.until.IsZero() && !now.Before(p.until):
		return "its allocation ends"
	case p.idle > 0 && now.Sub(p.since) >= limit:
		return "it has had no tasks for " + limit.String()
	}
	return ""
}

// claimTime is when a claim was last made.
type claimTime struct{ at atomic.Int64 }

func (t *claimTime) store(now time.Time) { t.at.Store(now.UnixNano()) }
func (t *claimTime) load() time.Time     { return time.Unix(0, t.at.Load()) }

// watchPilot ends the startd of a pilot when its time has come.
func (m *startdHost) watchPilot(ctx context.Context, end func()) {
	p := m.config.Pilot
	if p == nil {
		return
	}
	life := pilotLife{idle: p.Idle, firstIdle: p.FirstIdle, until: p.Until, since: time.Now()}
	tick := time.NewTicker(pilotTick)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		claims := make(chan int, 1)
		m.postEvent(loopQuery{func(l *machineLoop) { claims <- l.table.Len() }, make(chan struct{})})
		select {
		case n := <-claims:
			if why := life.endReason(time.Now(), n, m.lastClaim.load()); why != "" {
				m.log.Info("the pilot ends", "why", why, "claims", n)
				end()
				return
			}
		case <-m.loopDone:
			return
		}
	}
}
