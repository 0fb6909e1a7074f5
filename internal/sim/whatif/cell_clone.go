package whatif

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/negotiator/cellstate"
	"github.com/roost-batch/roost/negotiator/fairshare"
	"github.com/roost-batch/roost/negotiator/ledger"
	"github.com/roost-batch/roost/negotiator/match"
)

// cloneCell returns a copy of a checkpoint that can be modified. Its machines and classes
// are unknown to every matcher, and its ledger is a copy.
func cloneCell(of *cellstate.CellCheckpoint) (*cellstate.CellCheckpoint, error) {
	c := *of
	var err error
	if c.Ledger, err = ledger.Load(of.Ledger.Save()); err != nil {
		return nil, err
	}
	c.Machines = make([]*match.Machine, len(of.Machines))
	for i, m := range of.Machines {
		c.Machines[i] = m.ReplaceClaims(m.Claims, m.Preemptors, m.ClaimsUnknown)
	}
	c.Requests = make([]*cellstate.PendingRequest, len(of.Requests))
	for i, a := range of.Requests {
		if c.Requests[i], err = copyAsk(a); err != nil {
			return nil, err
		}
	}
	c.Pending, c.UsageByGrants, c.ClaimHolders = maps.Clone(of.Pending), maps.Clone(of.UsageByGrants),
		maps.Clone(of.ClaimHolders)
	c.LimitsUsed, c.LimitsGranted = maps.Clone(of.LimitsUsed), maps.Clone(of.LimitsGranted)
	c.Drains, c.Evicted, c.ChargedSubmitters = slices.Clone(of.Drains), slices.Clone(of.Evicted),
		slices.Clone(of.ChargedSubmitters)
	c.UsageByClaims = func(who fairshare.Submitter) roost.Resources { return c.ClaimHolders[who] }
	c.ChargedCores = slices.Values(slices.SortedFunc(maps.Keys(c.ClaimHolders), fairshare.Submitter.Compare))
	return &c, nil
}

// copyAsk returns a copy of a request with a class that no matcher knows.
func copyAsk(a *cellstate.PendingRequest) (*cellstate.PendingRequest, error) {
	b := *a
	var err error
	if b.Class, err = match.NewClass(a.AdText, a.Submitter, a.Band, a.Class.Resources); err != nil {
		return nil, fmt.Errorf("request %d of schedd %s: %w", a.Key.ID, a.Key.Schedd, err)
	}
	return &b, nil
}

// requestIndex finds the request that a claim's task belongs to, if it is known. Schedds
// report the request of each job ([cellstate.JobRow]). The job of a task that has just
// begun is not in a machine ad yet; the task counts as one of the only request of its
// shape, if there is just one.
type requestIndex struct {
	byKey   map[match.RequestKey]*cellstate.PendingRequest
	jobs    map[string]uint64                        // by job: the id of its request
	byShape map[claimShape]*cellstate.PendingRequest // nil if several requests have the shape
}

// claimShape is what a claim has in common with its request.
type claimShape struct {
	fairshare.Submitter
	roost.PriorityBand
	roost.Resources
	queue string
}

func newIndex(c *cellstate.CellCheckpoint) requestIndex {
	x := requestIndex{map[match.RequestKey]*cellstate.PendingRequest{}, make(map[string]uint64, len(c.Jobs)),
		map[claimShape]*cellstate.PendingRequest{}}
	for _, a := range c.Requests {
		x.byKey[a.Key] = a
		like := claimShape{a.Submitter, a.Band, a.Class.Resources, a.Queue}
		like.GPUMemory = 0 // a claim's ad has it by device
		if _, several := x.byShape[like]; several {
			x.byShape[like] = nil
		} else {
			x.byShape[like] = a
		}
	}
	for i := range c.Jobs {
		x.jobs[c.Jobs[i].ID] = c.Jobs[i].Request
	}
	return x
}

func (x requestIndex) findAsk(claim *match.MachineClaim) *cellstate.PendingRequest {
	job := claim.JobName()
	if job == "" {
		return x.byShape[claimShape{claim.Submitter, claim.Band, claim.Resources, claim.Queue}]
	}
	request := x.jobs[job]
	_, schedd, _ := strings.Cut(job, ".")
	if a := x.byKey[match.RequestKey{Schedd: schedd, ID: request}]; request != 0 && a != nil &&
		a.Submitter == claim.Submitter {
		return a
	}
	return nil
}
