package whatif

import (
	"fmt"
	"slices"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/negotiator/cellstate"
	"github.com/roost-batch/roost/negotiator/fairshare"
	"github.com/roost-batch/roost/negotiator/match"
)

// maxFit is the largest number of tasks that RoomNow tries.
const maxFit = 1_000_000

// RoomAnswer is how many tasks of a job would start at once.
type RoomAnswer struct {
	Tasks          int                    // tasks that find free room
	WithPreemption int                    // further tasks that find room by preemption
	Evicted        int                    // number of victims of that preemption
	Machines       []MachineTasks         // placements by machine, most tasks first
	Explanation    *match.WaitExplanation // why no more tasks fit
	Digest         uint64
}

// MachineTasks is how many tasks a machine gets.
type MachineTasks struct {
	Machine        string
	Tasks          int // tasks that find free room
	WithPreemption int // further tasks that find room by preemption
}

// Scope says which resources of a cell a job may use.
type Scope uint8

// The scopes.
const (
	FreeNow      Scope = iota // what is free now
	AfterWaiting              // what is left after all waiting requests that come first
	EmptyCell                 // all machines, without claims
)

// RoomNow returns how many tasks of a job would start now if it were submitted
// repeatedly. For a job with several kinds of tasks the answer is about the first kind.
func RoomNow(of *cellstate.CellCheckpoint, job *cellstate.PendingRequest, where Scope) (*RoomAnswer, error) {
	p, err := NewSimulation(of, ByWalltime)
	if err != nil {
		return nil, err
	}
	a, err := admitToQueue(of, job)
	if err != nil {
		return nil, err
	}
	a.GangRequest, a.OwnWanted, a.Explain = 0, maxFit, true
	if a.Gang > 1 {
		a.OwnWanted = maxFit / a.Gang * a.Gang
	}
	if where != AfterWaiting {
		for _, other := range p.Requests {
			other.OwnWanted = 0
		}
	}
	if where == EmptyCell {
		p.evictAll()
	}
	p.Requests = append(p.Requests, a)
	p.byKey[a.Key] = a
	if err := p.chargeLedger(); err != nil {
		return nil, err
	}
	s := p.Plan()
	if len(s.Requests) == 0 || !slices.Contains(s.Requests, &a.Request) {
		policy := cellstate.NewPolicy(p.Ledger)
		return nil, fmt.Errorf("%w: %s", roost.Conflict, policy.StopReason(a.Queue))
	}
	plan := p.matcher.Plan(s)
	room := &RoomAnswer{}
	on := map[string]*MachineTasks{}
	for _, g := range plan.Grants {
		p.addToDigest('g', g.Machine.Name, uint64(g.Units))
		if g.Request != &a.Request || g.Waiting {
			continue
		}
		there := on[g.Machine.Name]
		if there == nil {
			there = &MachineTasks{Machine: g.Machine.Name}
			on[g.Machine.Name] = there
		}
		if len(g.Victims) > 0 {
			room.WithPreemption += g.Units
			room.Evicted += len(g.Victims)
			there.WithPreemption += g.Units
			continue
		}
		room.Tasks += g.Units
		there.Tasks += g.Units
	}
	for _, m := range p.Machines {
		if there := on[m.Name]; there != nil {
			room.Machines = append(room.Machines, *there)
		}
	}
	slices.SortStableFunc(room.Machines, func(x, y MachineTasks) int { return y.Tasks - x.Tasks })
	for _, u := range plan.Unplaced {
		if u.Request == &a.Request {
			room.Explanation = u.Explanation
		}
	}
	room.Digest = p.Digest()
	return room, nil
}

// evictAll removes all claims.
func (p *Simulation) evictAll() {
	for i, m := range p.Machines {
		p.Machines[i] = m.Emptied()
	}
	for _, a := range p.Requests {
		a.Claims, a.RunningCount = 0, 0
	}
	p.ClaimHolders, p.LimitsUsed, p.LastRunning = map[fairshare.Submitter]roost.Resources{}, map[string]int{}, nil
}
