package sim

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/cellhistory"
	"github.com/roost-batch/roost/internal/document"
	"github.com/roost-batch/roost/negotiator/cellstate"
	"github.com/roost-batch/roost/negotiator/fairshare"
	"github.com/roost-batch/roost/negotiator/ledger"
	"github.com/roost-batch/roost/negotiator/match"
)

// Bounds on what is said of a past cell.
const (
	maxPastRequests = 200 // each is held against all machines
	maxPastJobs     = 10
)

// describePast returns what a cell was like at a checkpoint: its machines, shares, and
// why tasks waited. The reasons are those of the plan that the leader would have made
// then.
func describePast(of *cellstate.CellCheckpoint) *cellhistory.PastCell {
	out := &cellhistory.PastCell{Version: document.Version, At: of.Now.UTC(), Leader: of.Leader,
		Program: of.RoostVersion, Nodes: pastNodes(of), Shares: pastShares(of), SilentSchedds: of.SilentSchedds}
	addWaiting(out, of)
	return out
}

// pastNodes are the machines by name.
func pastNodes(of *cellstate.CellCheckpoint) []document.Node {
	drains := map[string]string{}
	for _, d := range of.Drains {
		if d.From.IsZero() || !of.Now.Before(d.From) {
			drains[d.Node] = cmp.Or(d.Reason, "no reason was given")
		}
	}
	nodes := make([]document.Node, len(of.Machines))
	for i, m := range of.Machines {
		_, isDesktop := m.Ad.Lookup(roost.AttrOwnerBusy)
		n := cellhistory.NodeOf(document.NodeOf(m.Ad), isDesktop)
		n.Name = m.Name
		if n.Drain = cmp.Or(drains[m.Name], drains[m.Host]); n.Drain != "" {
			n.State = cellhistory.Drained
		}
		nodes[i] = n
	}
	slices.SortFunc(nodes, func(a, b document.Node) int { return document.CompareNames(a.Name, b.Name) })
	return nodes
}

// pastShares are the shares of all submitters.
func pastShares(p *cellstate.CellCheckpoint) ledger.ShareReport {
	use := ledger.PoolUse{Usage: maps.Clone(p.ClaimHolders),
		HasWaiting: map[fairshare.Submitter]bool{}}
	if use.Usage == nil {
		use.Usage = map[fairshare.Submitter]roost.Resources{}
	}
	for _, m := range p.Machines {
		use.Total, use.Free = use.Total.Add(m.Total), use.Free.Add(m.Free)
	}
	for who, r := range p.UsageByGrants {
		use.Usage[who] = use.Usage[who].Add(r)
	}
	for _, a := range p.Requests {
		if a.OwnWanted > 0 {
			use.HasWaiting[a.Submitter] = true
		}
	}
	return use.Shares(p.Now, p.Ledger)
}

// addWaiting adds the requests of which tasks waited, with why.
func addWaiting(to *cellhistory.PastCell, p *cellstate.CellCheckpoint) {
	to.Waiting = []cellhistory.PastRequest{}
	var waiting []*cellstate.PendingRequest
	for _, a := range p.Requests {
		if a.OwnWanted > 0 {
			waiting = append(waiting, a)
		}
	}
	slices.SortStableFunc(waiting, func(a, b *cellstate.PendingRequest) int { return cmp.Compare(a.Oldest, b.Oldest) })
	if len(waiting) > maxPastRequests {
		to.MoreWaiting, waiting = len(waiting)-maxPastRequests, waiting[:maxPastRequests]
	}
	for _, a := range waiting {
		a.Explain = true
	}
	plan := match.NewMatcher().Plan(p.Plan())
	policy := cellstate.NewPolicy(p.Ledger)
	for _, a := range waiting {
		r := cellhistory.PastRequest{Schedd: a.Key.Schedd, Request: a.Key.ID, Owner: a.Submitter.Owner,
			Group: a.Submitter.Group, Band: a.Band.String(), Queue: a.Queue, Tasks: a.OwnWanted,
			Jobs: pastJobs(p, a), Why: policy.StopReason(a.Queue)}
		if a.Oldest != 0 {
			at := time.Unix(0, a.Oldest).UTC()
			r.Since = &at
		}
		for _, u := range plan.Unplaced {
			if u.Request == &a.Request && u.Explanation != nil {
				r.Why, r.Advice = u.Explanation.Summary, u.Explanation.Advice
			}
		}
		to.Waiting = append(to.Waiting, r)
	}
}

// pastJobs are the first jobs whose tasks were in a request and waited.
func pastJobs(p *cellstate.CellCheckpoint, a *cellstate.PendingRequest) []string {
	jobs := []string{}
	for i := range p.Jobs {
		j := &p.Jobs[i]
		if _, host, _ := strings.Cut(j.ID, "."); j.Waiting > 0 && j.Request == a.Key.ID && host == a.Key.Schedd &&
			len(jobs) < maxPastJobs {
			jobs = append(jobs, j.ID)
		}
	}
	return jobs
}
