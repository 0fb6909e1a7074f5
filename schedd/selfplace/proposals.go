package selfplace

import (
	"maps"
	"slices"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/negotiator/fairshare"
	"github.com/roost-batch/roost/negotiator/match"
)

// maxProposals bounds the proposals for one request at once: the leader grants no more
// before it gets an answer.
const maxProposals = 4096

// RequestUpdate is the description of a request that the schedd is about to send to the
// leader.
type RequestUpdate struct {
	ID                  uint64
	Owner, Group        string
	Band                roost.PriorityBand
	Priority            int32
	Oldest              int64
	Wanted, NoWait      int
	Resources           roost.Resources
	Ad                  string // empty: unchanged
	Gang                int
	Reservation         string
	Walltime, Predicted time.Duration
	Removed             bool
}

// requestState is what the copy knows of one request.
type requestState struct {
	match.Request
	adText string
	band   roost.PriorityBand
	class  *match.RequestClass // nil: the request is invalid, which the leader reports
	avoid  map[string]time.Time
}

// Propose applies the updates and proposes where to place the units of each request. The
// result has one element for each update.
func (c *CellCopy) Propose(now time.Time, updates []RequestUpdate) [][]match.SelfPlacement {
	out := make([][]match.SelfPlacement, len(updates))
	c.dropExpired(now)
	s := &match.Snapshot{Now: now, Preemption: match.PreemptionPolicy{HasBudgets: true}} // it evicts nothing
	// by request ID: the index of its last update
	at := map[uint64]int{}
	for i := range updates {
		u := &updates[i]
		delete(c.proposed, u.ID)
		delete(at, u.ID)
		if r := c.updateRequest(u); r != nil && c.synced && u.Wanted > 0 && u.Gang < 2 && u.Reservation == "" &&
			isProposable(r.class) {
			at[u.ID] = i
		}
	}
	for _, id := range sortedKeys(at) {
		r := c.requests[id]
		r.Avoid = r.avoidedMachines(now)
		s.Requests = append(s.Requests, &r.Request)
	}
	if len(s.Requests) == 0 {
		return out
	}
	s.Machines, s.Pending = c.sortedMachines(), c.pendingResources()
	for _, g := range c.matcher.Plan(s).Grants {
		i := at[g.Request.Key.ID]
		if len(out[i]) == maxProposals {
			continue
		}
		out[i] = append(out[i], match.SelfPlacement{Machine: g.Machine.Name, Units: g.Units, Waiting: g.Waiting})
		c.proposed[g.Request.Key.ID] = append(c.proposed[g.Request.Key.ID], &pendingGrant{
			machine: g.Machine.Name, units: g.Units, until: now.Add(proposalLifetime),
			PendingGrant: match.PendingGrant{
				Request: g.Request.Key, Resources: g.Request.Class.Resources, Class: g.Request.Class.AppClass,
				MayReclaim: !g.Request.Band.IsProd(), Waiting: g.Waiting, Unit: g.Unit,
				Ports: g.Request.Class.StaticPorts,
			},
		})
	}
	return out
}

// updateRequest applies an update. It returns nil if the request is gone or its ad is
// unknown.
func (c *CellCopy) updateRequest(u *RequestUpdate) *requestState {
	if u.Removed {
		delete(c.requests, u.ID)
		return nil
	}
	r := c.requests[u.ID]
	if r == nil {
		if u.Ad == "" {
			return nil // its ad was sent before there was a copy
		}
		r = &requestState{avoid: map[string]time.Time{}}
		c.requests[u.ID] = r
	}
	if u.Ad != "" || r.class == nil || r.class.Resources != u.Resources {
		r.setClass(u)
	}
	r.Key, r.Band, r.band = match.RequestKey{ID: u.ID}, u.Band, u.Band
	r.Priority, r.Oldest, r.Wanted, r.NoQueue = u.Priority, u.Oldest, u.Wanted, min(u.NoWait, u.Wanted)
	r.Walltime, r.PredictedRuntime = u.Walltime, u.Predicted
	return r
}

// setClass rebuilds the class of a request. Without a Rank of its own it prefers its
// schedd's part of the cell.
func (r *requestState) setClass(u *RequestUpdate) {
	if u.Ad != "" {
		r.adText = u.Ad
	}
	r.Submitter = fairshare.Submitter{Group: u.Group, Owner: u.Owner}
	class, err := match.NewClass(r.adText, r.Submitter, u.Band, u.Resources)
	if err == nil {
		if _, ranked := class.Ad.Lookup(roost.AttrRank); !ranked {
			err = class.Ad.SetExpr(roost.AttrRank, "TARGET."+partAttribute)
		}
	}
	if err != nil {
		class = nil
	}
	r.class, r.Class = class, class
}

// avoidedMachines lists the machines that refused the request lately.
func (r *requestState) avoidedMachines(now time.Time) map[string]string {
	maps.DeleteFunc(r.avoid, func(_ string, until time.Time) bool { return !now.Before(until) })
	if len(r.avoid) == 0 {
		return nil
	}
	names := make(map[string]string, len(r.avoid))
	for name := range r.avoid {
		names[name] = "it refused"
	}
	return names
}

// sortedMachines returns the machines sorted by name.
func (c *CellCopy) sortedMachines() []*match.Machine {
	if c.sorted == nil {
		c.sorted = make([]*match.Machine, 0, len(c.machines))
		for _, name := range slices.Sorted(maps.Keys(c.machines)) {
			c.sorted = append(c.sorted, c.machines[name])
		}
	}
	return c.sorted
}

func sortedKeys[V any](m map[uint64]V) []uint64 { return slices.Sorted(maps.Keys(m)) }
