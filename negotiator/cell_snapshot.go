package negotiator

import (
	"maps"
	"time"

	"github.com/roost-batch/roost/negotiator/cellstate"
	"github.com/roost-batch/roost/negotiator/fairshare"
	"github.com/roost-batch/roost/negotiator/ledger"
	"github.com/roost-batch/roost/negotiator/match"
)

// pendingRequestsOf returns requests in the form that a plan uses.
func pendingRequestsOf(all []*scheddRequest) []*cellstate.PendingRequest {
	list := make([]*cellstate.PendingRequest, len(all))
	for i, r := range all {
		list[i] = &r.PendingRequest
	}
	return list
}

// cellState returns the present cell without its requests.
func (c *leaderState) cellState(now time.Time) *cellstate.CellState {
	c.recentEvictions.dropOld(now)
	c.recentStarts.dropOld(now)
	p := &cellstate.CellState{
		Now: now, Policy: &c.policy, Machines: c.sorted, Pending: c.pendingGrants(), Drains: c.drains,
		KnownSchedds: func(name string) bool {
			return c.schedds[name].knowsRunning()
		},
		LimitsUsed: c.limitUse, LimitsGranted: c.grants().grantedLimitUse(), Prod: c.prodHeld,
		UsageByClaims: c.claimedBySubmitter, UsageByGrants: c.grantedToSubmitter(),
		ChargedCores: maps.Keys(c.chargedCores), Evicted: c.recentEvictions, RecentStarts: c.recentStarts.list,
	}
	if c.policy.HasRunLimits {
		c.countRunning(p)
	}
	if c.policy.LowersOverQuota {
		p.QuotaExcess = func(l *ledger.Ledger, who fairshare.Submitter) float64 {
			return c.admission().quotaExcess(now, l, who)
		}
	}
	return p
}

// pendingGrants returns the grants that do not show in machine ads yet, by machine.
func (c *leaderState) pendingGrants() map[string][]match.PendingGrant {
	all := make(map[string][]match.PendingGrant, len(c.pendingByMachine))
	for name, list := range c.pendingByMachine {
		pendingGrants := make([]match.PendingGrant, 0, len(list))
		for _, p := range list {
			if !p.overdue {
				pendingGrants = append(pendingGrants, p.resources)
			}
		}
		if len(pendingGrants) > 0 {
			all[name] = pendingGrants
		}
	}
	return all
}

// countRunning adds the running tasks to a cell state.
func (c *leaderState) countRunning(p *cellstate.CellState) {
	for _, s := range c.schedds {
		for _, r := range s.requests {
			r.RunningCount = s.limitCounting(r)
			p.Requests = append(p.Requests, &r.PendingRequest)
		}
		p.LastRunning = append(p.LastRunning, s.lastRunning...)
	}
	for name := range c.usageBySchedd {
		p.UnknownClaims = p.UnknownClaims || !c.schedds[name].knowsRunning()
	}
}

// rememberRunning stores what runs of a schedd whose session ends. If the schedd has not
// reported all of its requests in this session, only new grants are added to the earlier
// state.
func (s *scheddState) rememberRunning() {
	if s.sendQueue == nil || !s.sentAllRequests && s.lastRunning == nil {
		return
	}
	if s.sentAllRequests {
		s.lastRunning = []cellstate.RunningTasks{}
	}
	for _, r := range s.requests {
		s.lastRunning = append(s.lastRunning, r.RunningTasks(s.limitCounting(r)))
	}
	s.lastRunning = cellstate.MergeRunning(s.lastRunning)
}

// limitCounting returns how many claims of a request count as running, beside those of
// the last session. Until the schedd has reported all requests, it is only what was
// granted since.
func (s *scheddState) limitCounting(r *scheddRequest) int {
	if !s.sentAllRequests {
		return len(r.unseenGrants)
	}
	return r.Claims + len(r.unseenGrants)
}

// knowsRunning reports whether the running tasks of a schedd are known from the schedd.
func (s *scheddState) knowsRunning() bool {
	return s != nil && (s.sentAllRequests || s.lastRunning != nil)
}
